package env_test

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"ephemera/env"
)

const oneSource = "budget = 1\n[[source]]\nname = \"a\"\nrate = 1\ndecay = 2\ninterest = 3\n"

func TestInstanceFile(t *testing.T) {
	in, err := env.Load(write(t, "two.toml", "\ufeff"+oneSource+
		"\n[[source]] # with all keys\nname = 'b'\nrate = 0\ndecay = 1e-3\ninterest = 0\nwindow = 2.5\ncost = 5\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := env.Instance{ID: "two", Budget: 1, Sources: []env.Source{
		env.NewSource("a", 1, 2, 3),
		{Name: "b", Rate: 0, Decay: 1e-3, Interest: 0, Window: 2.5, Cost: 5},
	}}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("loaded %+v, want %+v", in, want)
	}
	in = must(env.Load(write(t, "change.toml", oneSource+`
[[change]]
at = 5
[[change.source]]
name = 'a'
rate = 9
[[change]]
at = 7
[[change.source]]
name = 'a'
interest = 2
`)))
	if s := in.Phases()[2].Instance.Sources[0]; s.Rate != 9 || s.Interest != 2 || s.Decay != 2 {
		t.Errorf("after two changes the source is %+v", s)
	}
	in = must(env.Unmarshal("f.toml", []byte(oneSource+`law = 'power'
shape = 1.5
[[change]]
at = 5
[[change.source]]
name = 'a'
law = 'power'
rate = 2
[[change]]
at = 6
[[change.source]]
name = 'a'
law = 'hump'
`)))
	for k, want := range []string{"power 1.5", "power 1.5", "hump 0"} {
		if s := in.Phases()[k].Instance.Sources[0]; fmt.Sprint(s.Law, " ", s.Shape) != want {
			t.Errorf("after %d changes law and shape are %s %v; want %s", k, s.Law, s.Shape, want)
		}
	}
	if in, err := env.Load(write(t, "named.toml", "id = \"x\"\n"+oneSource)); err != nil || in.ID != "x" {
		t.Errorf("id is %q, error %v", in.ID, err)
	}
	_, err = env.Load(filepath.Join(t.TempDir(), "none.toml"))
	if err == nil || !strings.Contains(err.Error(), "none.toml") {
		t.Errorf("absent file: error is %v; want one that names none.toml", err)
	}
}

func TestInstanceFileErrors(t *testing.T) {
	without := func(key string) string {
		var keep []string
		for line := range strings.Lines(oneSource) {
			if !strings.HasPrefix(line, key) {
				keep = append(keep, line)
			}
		}
		return strings.Join(keep, "")
	}
	with := func(line string) string { return without(strings.Fields(line)[0]) + line + "\n" }
	const changeOfSource = "[[change]]\nat = 5\n[[change.source]]\n"
	const unknownKey = "unknown key; allowed are id, budget, per_host, [[source]] with name, rate"
	for _, c := range []struct{ text, want string }{
		{"", "f.toml: there is no [[source]]; needed is one at least"},
		{without("budget"), "f.toml: budget is missing; needed is what the crawls of an epoch may cost"},

		{without("name"), "f.toml: source 1 lacks the key name; needed are name, rate, decay and interest"},
		{without("interest"), "f.toml: source 1 lacks the key interest;"},
		{with("law = 'gamma'"), `law is "gamma"; allowed are exponential, power, `},
		{with("shape = 2"), "shape is 2; it belongs to law power or delay, and the law is exponential"},
		{with("law = 'power'\nshape = 1"), "shape is 1; allowed is a finite number above 1"},
		{with("law = 'power'\nshape = 0"), "source 1 has shape = 0; allowed is a number above 0"},
		{with("batch = 0"), "source 1 has batch = 0; allowed is a number above 0"},
		{with("host = 'a'"), "a source has a host, and per_host is missing; needed are the crawls of a host"},
		{"per_host = 1\n" + oneSource, "per_host is 1, and no source has a host; needed is a host of a source"},
		{with("batch = -1"), "batch is -1; allowed are 1 to 10000 items"},
		{with("batch = 1.5"), `f.toml:7:9: key "source.batch": cannot decode TOML float; needed is a whole number`},
		{with("colour = 3"), `f.toml:7:1: key "source.colour": ` + unknownKey},
		{"bugdet = 1\n" + oneSource, `f.toml:1:1: key "bugdet": ` + unknownKey},
		{with("rate = 'x'"), `f.toml:6:8: key "source.rate": cannot decode TOML string; needed is a number`},
		{with("rate = true"), `f.toml:6:8: key "source.rate": cannot decode TOML boolean`},
		{with("name = 3"), `f.toml:6:8: key "source.name": cannot decode TOML integer; needed is a text in quotes`},
		{with("rate = nan"), `f.toml: instance "f", source 1 ("a"): rate is NaN; ` +
			"allowed is a finite number of items per epoch, 0 or more"},
		{with("decay = 0"), "decay is 0; allowed is a finite rate per epoch above 0"},
		{with("interest = inf"), "interest is +Inf"},
		{with("window = 0"), "window is 0; allowed is a number of epochs above 0, or inf"},
		{with("cost = inf"), "cost is +Inf"},
		{with("rate = 1e999"), `f.toml:6:8: key "source.rate"`},
		{with("rate ="), "f.toml:6:"},
		{"budget = nan\n" + without("budget"), `budget is NaN; allowed is above 0 and at most 1`},
		{"budget = 0\n" + without("budget"), `budget is 0; allowed is above 0 and at most 1`},
		{"budget = 2\n" + without("budget"), `f.toml: instance "f": budget is 2; ` +
			"allowed is above 0 and at most 1, the cost of crawling every source"},
		{oneSource + oneSource[len("budget = 1\n"):],
			`f.toml: sources 1 and 2 have the same name, "a"; each name is allowed once`},
		{"budget = 1\n" + oneSource, "f.toml:2:1:"},
		{oneSource + "[[source]]\nname = 'p'\nchange = 0.5\nimportance = 1\n",
			"f.toml: source 2 is a page, and source 1 is not; allowed are pages alone, or none"},
		{"budget = 1\nsource = 3\n", `f.toml:2:10: key "source"`},
		{"budget = 1\nsource = [{name = 'a'}]\n", "f.toml: source 1 lacks the key rate;"},
		{"\x00", "f.toml:1:1: invalid character"},
		{"budget = 1\n[[source", "f.toml:2:"},
		{with("[[change]]\nat = 0\nshuffle = true"),
			`f.toml: instance "f", change 1: at is 0; allowed are epochs above 0`},
		{with("[[change]]\nat = 5"), "change 1: needed is either shuffle = true or new values of sources"},
		{with(changeOfSource + "rate = 2"), `change 1, source "": there is no source of this name`},
		{with(changeOfSource + "name = 'b'"), `change 1, source "b": there is no source of this name`},
		{with(changeOfSource + "name = 'a'\nimportance = 5"), `f.toml: change 1, source "a" has the key importance;`},
		{with(changeOfSource + "name = 'a'"), `f.toml: change 1, source "a": there is no new value; needed is one`},
		{with(changeOfSource + "name = 'a'\ncost = 2"),
			`change 1, source "a": cost is 2; allowed is 1, as costs do not change`},
		{"per_host = 1\n" + with("host = 'x'\n"+changeOfSource+"name = 'a'\nhost = 'y'"),
			`change 1, source "a": host is "y"; allowed is "x", as hosts do not change`},
		{with(changeOfSource + "name = 'a'\nrate = -2"), `change 1, source "a": rate is -2`},
		{with(changeOfSource + "name = 'a'\nbatch = 0"),
			"f.toml: change 1, source \"a\" has batch = 0; allowed is a number above 0"},
		{with(changeOfSource + "name = 'a'\nrate = 2\n[[change.source]]\nname = 'a'\ndecay = 1"),
			`f.toml: change 1 has two [[change.source]] of the name "a"; allowed is one`},
		{with("[[change]]\nwhen = 5"), `f.toml:8:1: key "change.when": ` + unknownKey},
		{with(changeOfSource + "speed = 5"), `key "change.source.speed": ` + unknownKey},
	} {
		_, err := env.Unmarshal("f.toml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error is %v; want one line with %q", c.text, err, c.want)
		}
	}
	// inf and what is absent are the same window.
	in, err := env.Unmarshal("f.toml", []byte(with("window = inf")))
	if err != nil || !math.IsInf(in.Sources[0].Window, 1) {
		t.Errorf("window inf: %v, error %v", in.Sources, err)
	}
}

// An instance that is written as TOML is read to the last bit.
func TestInstanceFileRoundTrip(t *testing.T) {
	for _, in := range []env.Instance{
		env.Paper(2),
		env.Lognormal(20, 5, 1),
		env.Wide(20, 5, 2),
		env.Mixed(20, 5, 3),
		env.Drift(20, 5, 4).WithLaw("mixture", 1),
		changing(),
	} {
		roundTrip(t, in)
	}
	rapid.Check(t, func(t *rapid.T) {
		positive := rapid.Float64Range(1e-9, 1e9)
		in := env.Instance{ID: rapid.String().Draw(t, "id")}
		names := rapid.SliceOfNDistinct(rapid.String(), 1, 5, rapid.ID).Draw(t, "names")
		for _, name := range names {
			rate := rapid.Float64Range(0, 1e9).Draw(t, "rate")
			s := env.NewSource(name, rate, positive.Draw(t, "decay"), positive.Draw(t, "interest"))
			if rapid.Bool().Draw(t, "windowed") {
				s.Window = positive.Draw(t, "window")
			}
			s.Cost = positive.Draw(t, "cost")
			if s.Law = rapid.SampledFrom(append(env.Laws(), "")).Draw(t, "law"); s.Law == env.LawPower {
				s.Shape = rapid.SampledFrom([]float64{0, 1.01, 1.5, 9}).Draw(t, "shape")
			}
			if s.Unbounded() {
				s.Window = math.Inf(1)
			}
			s.Batch = rapid.IntRange(0, 50).Draw(t, "batch")
			in.Sources = append(in.Sources, s)
		}
		in.Budget = in.TotalCost()
		roundTrip(t, in)
	})
}

func roundTrip(t interface {
	Fatalf(string, ...any)
}, in env.Instance) {
	data, err := toml.Marshal(in)
	if err != nil {
		t.Fatalf("%v", err)
	}
	got, err := env.Unmarshal("f.toml", data)
	if err != nil || !reflect.DeepEqual(got, in) {
		t.Fatalf("%v: read %+v, written %+v\n%s", err, got, in, data)
	}
}

// Any file gives one line that names it, or an instance that is valid, whose
// sources have finite states, and that reads back as it is written.
func FuzzInstanceFile(f *testing.F) {
	f.Add([]byte(oneSource))
	f.Add([]byte("budget = 1\nsource = [{name = 'a', rate = 1, decay = 1, interest = 1}]"))
	odd := strings.Repeat("\\U0010ffff", 3000) // quoted, a character is ten
	f.Add([]byte("id = \"" + odd + "\"\nbudget = 2\n[[source]]\nname = 'a'\nrate = 1\ndecay = 1\ninterest = 1\n"))
	f.Add([]byte("[\"" + odd + "\"]\n[\"" + odd + "\"]\n"))
	f.Add([]byte("id = \"\\u001b\"\nbudget = 1e-3\n" +
		"[[source]]\nname = 'a'\nrate = 1e308\ndecay = 1e-308\ninterest = 1e308\ncost = 0.001\nwindow = inf\n"))
	f.Add([]byte("id = \"" + odd + "\"\nbudget = 1\n[[source]]\nname = \"" + odd + "\"\n" +
		"rate = -1\ndecay = 1\ninterest = 1\n"))
	f.Add([]byte("id = \"" + odd + "\"\nbudget = 9\n[[source]]\nname = \"" + odd + "\"\n" +
		"rate = 1\ndecay = 1\ninterest = 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := env.Unmarshal("f.toml", data)
		if err != nil {
			text := err.Error()
			if !strings.HasPrefix(text, "f.toml:") || strings.Contains(text, "\n") || len(text) > 2000 {
				t.Errorf("error %q is not one line that names the file", text)
			}
			return
		}
		if err := in.Validate(); err != nil {
			t.Errorf("an invalid instance was read: %v", err)
		}
		for _, s := range in.Sources {
			for _, v := range []float64{s.Factor(), s.Gain(), s.Ceiling()} {
				if !(v >= 0) || math.IsInf(v, 0) {
					t.Errorf("%+v: factor %v, gain %v, ceiling %v", s, s.Factor(), s.Gain(), s.Ceiling())
				}
			}
		}
		roundTrip(t, in)
	})
}
