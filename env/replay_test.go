package env_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
)

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const header = "source,published_unix,utility\n"

// The replay against the obvious one: the part's publications are held, and
// each decision adds up what waits.
func TestReplayAgainstPublicationsOneByOne(t *testing.T) {
	type pub struct {
		source string
		at     int64
		x      float64
	}
	var all []pub
	var b strings.Builder
	b.WriteString("utility,ignored,published_unix,source\r\n\n")
	r := stream.New(3, stream.Test)
	for at := int64(1000); at < 300_000; at += int64(r.ExpFloat64() * 400) {
		p := pub{[]string{"b", "a", "c"}[r.Intn(3)], at, math.Floor(r.ExpFloat64() * 50)}
		if p.source == "c" && at < 200_000 {
			p.source = "a" // c appears in the second half only
		}
		all = append(all, p)
		fmt.Fprintf(&b, "%v,x,%d,%s\r\n", p.x, p.at, p.source)
	}
	const c, length = 0.3, 5400.0
	first, last := float64(all[0].at), float64(all[len(all)-1].at)
	for _, part := range []env.Part{"", env.PartMeasured, env.PartFitting, env.PartWhole} {
		from, to := first, last
		split := first + 0.25*(last-first)
		if part == "" || part == env.PartMeasured {
			from = split
		} else if part == env.PartFitting {
			to = split
		}
		for _, path := range []string{
			write(t, "r.csv", b.String()),
			write(t, "r.csv.gz", string(gzipped(t, []byte(b.String())))),
		} {
			w, in, err := openReplay(path, env.ReplayOptions{
				Epoch: 90 * time.Minute, Decay: c, Budget: 2, Split: 0.25, Part: part, Items: true, State: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			epochs := int((to - from) / length)
			terms := w.Terms()
			if w.Epochs() != epochs || terms.Start != int64(math.Floor(from+length)) || terms.Length != length ||
				fmt.Sprint(terms.Names) != "[a b c]" {
				t.Fatalf("part %q: %d epochs, terms %+v; want %d epochs from %v", part, w.Epochs(), terms, epochs, from)
			}
			// The fit.
			if in.ID != "r" || in.Sources[2].Rate != 0 || in.Sources[2].Interest != 0 {
				t.Errorf("fitted instance %q, source of the second half %+v", in.ID, in.Sources[2])
			}
			var n, sum float64
			for _, p := range all {
				if p.source == "b" && float64(p.at) < split {
					n++
					sum += p.x
				}
			}
			near(t, "fitted rate", in.Sources[1].Rate, n/((split-first)/length), 1e-12)
			near(t, "fitted interest", in.Sources[1].Interest, sum/n, 1e-12)
			near(t, "decay per epoch", in.Sources[1].Decay, 0.45, 1e-12)
			// The play.
			crawled := map[string]float64{}
			for e := range epochs {
				now := from + float64(e+1)*length
				var crawl []int
				for i := range 3 {
					name := terms.Names[i]
					since, ok := crawled[name]
					if !ok {
						since = from
					}
					var want float64
					var items int
					for _, p := range all {
						if p.source == name && float64(p.at) >= since && float64(p.at) < now {
							want += p.x * math.Exp(-c*(now-float64(p.at))/3600)
							items++
						}
					}
					if got := w.View().State[i]; math.Abs(got-want) > 1e-11*want {
						t.Fatalf("part %q, epoch %d, source %s: state is %v, want %v", part, e, name, got, want)
					}
					if len(crawl) < 2 && r.Intn(3) == 0 {
						crawl = append(crawl, i)
						crawled[name] = now
					}
				}
				if _, err := w.Step(crawl); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if _, err := w.Step(nil); err != io.EOF {
					t.Errorf("after the last epoch the error is %v; want io.EOF", err)
				}
			}
		}
	}
}

// A source shows only what is not negligible yet.
func TestReplayDropsWhatIsNegligible(t *testing.T) {
	var b strings.Builder
	b.WriteString(header)
	for k := range 20_000 {
		fmt.Fprintf(&b, "a,%d,1\nb,%d,1\n", k*3600, k*3600)
	}
	w, _, err := openReplay(write(t, "long.csv", b.String()),
		env.ReplayOptions{Epoch: time.Hour, Decay: 0.5, Budget: 1, Items: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 9990 {
		if _, err := w.Step([]int{0}); err != nil {
			t.Fatal(err)
		}
	}
	got := must(w.Step([]int{1}))
	// 2⁻⁶⁰ is reached after 60 ln 2/.5 = 83.2 hours.
	if n := len(got[0].Items); n != 83 {
		t.Errorf("a crawl after %d epochs shows %d items; want 83", got[0].Age, n)
	}
	near(t, "interest", got[0].Interest, math.Exp(-0.25)/(1-math.Exp(-0.5)), 1e-9)
}

func TestRecordingErrors(t *testing.T) {
	rows := header + "a,0,1\nb,3600,2\na,7200,1\n"
	whole := string(gzipped(t, []byte(rows)))
	good := env.ReplayOptions{Epoch: time.Hour, Decay: 1, Budget: 1}
	for _, c := range []struct {
		name, text, want string
		o                env.ReplayOptions
	}{
		{"empty.csv", "", "empty.csv:1: the file is empty", good},
		{"header.csv", header, "header.csv:1: the recording has no row", good},
		{"column.csv", "source,utility\na,1\n",
			`column.csv:1: column "published_unix or published" is missing in the header "source,utility"; ` +
				"needed are source and published_unix or published, separated by commas, without blanks", good},
		{"negative.csv", header + "a,5,-1\n",
			`negative.csv:2: utility is "-1"; allowed is a finite number, 0 or more`, good},
		{"nan.csv", header + "a,5,NaN\n", `nan.csv:2: utility is "NaN"`, good},
		{"inf.csv", header + "a,5,1e400\n", `inf.csv:2: utility is "1e400"`, good},
		{"number.csv", header + "\na,5,1\na,6,x\n", `number.csv:4: utility is "x"`, good},
		{"time.csv", header + "a,1.5,1\n", `time.csv:2: published_unix is "1.5"; ` +
			"allowed is a date such as 2026-11-20T10:00:00Z, or a whole number of seconds", good},
		{"far.csv", header + "a,9223372036854775807,1\n", `far.csv:2: published_unix is "9223372036854775807"`, good},
		{"few.csv", header + "a,5\n", "few.csv:2: number of fields is 2; the header has 3", good},
		{"name.csv", header + ",5,1\n", "name.csv:2: source is empty", good},
		{"quote.csv", header + "\"a,5,1\n", "quote.csv:2: extraneous or missing \" in quoted-field", good},
		{"quote2.csv", header + "\"a\"b,5,1\n", "quote2.csv:2: extraneous or missing \" in quoted-field", good},
		{"cut.csv.gz", whole[:len(whole)-9], "the compressed data end early; the file is truncated", good},
		{"cut2.csv.gz", whole[:5], "cut2.csv.gz:1: the compressed data end early", good},
		{"sum.csv.gz", string(gzipped(t, []byte(rows)))[:60] + "xxxxxxxx", "cannot read: ", good},
		{"epoch.csv", rows, "the fitting part lasts 1h0m0s and has no whole epoch of 24h0m0s",
			env.ReplayOptions{Epoch: 24 * time.Hour, Decay: 1, Budget: 1}},
		{"part.csv", rows, "the fitting part lasts 1h0m0s and has no whole epoch of 1h30m0s",
			env.ReplayOptions{Epoch: 90 * time.Minute, Decay: 1, Budget: 1}},
		{"part2.csv", rows, "the measured part lasts 24m0s and has no whole epoch of 1h0m0s",
			env.ReplayOptions{Epoch: time.Hour, Decay: 1, Budget: 1, Split: 0.8}},
		{"zero.csv", rows, "has no whole epoch of 0s", env.ReplayOptions{Decay: 1, Budget: 1}},
		{"decay.csv", rows, "decay is NaN; allowed is a finite rate per epoch above 0",
			env.ReplayOptions{Epoch: time.Hour, Decay: math.NaN(), Budget: 1}},
		{"split.csv", rows, "the measured part lasts 0s and has no whole epoch",
			env.ReplayOptions{Epoch: time.Hour, Decay: 1, Budget: 1, Split: 1}},
		{"budget.csv", rows, "budget is 0; allowed is above 0", env.ReplayOptions{Epoch: time.Hour, Decay: 1}},
	} {
		_, _, err := openReplay(write(t, c.name, c.text), c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v; want one line with %q", c.name, err, c.want)
		}
	}
	_, err := env.ReadRecording(context.Background(), filepath.Join(t.TempDir(), "none.csv"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	// Rows may come in any order, and items are worth 1 where no column says more.
	rec := must(env.PublishedColumns.Parse(context.Background(), "any",
		strings.NewReader("published_unix,source\n7200,b\n0,a\n3600,b\n")))
	var got string
	rec.Each(func(i int, at int64, utility float64) { got += fmt.Sprint(rec.Names[i], at, utility, ";") })
	if want := "a0 1;b3600 1;b7200 1;"; got != want || rec.First != 0 || rec.Last != 7200 {
		t.Errorf("publications %q from %d to %d; want %q", got, rec.First, rec.Last, want)
	}
	// Columns may be called otherwise, and times be dates.
	named := env.Columns{Source: "feed", Time: "date or day", Utility: "votes"}
	rec = must(named.Parse(context.Background(), "any", strings.NewReader("votes,day,feed\n"+
		"1,1970-01-01T01:00:00+01:00,a\n2,1970-01-01 02:00:00.5+01,a\n3,1970-01-01 02:00:00,a\n4,10800,a\n")))
	got = ""
	rec.Each(func(_ int, at int64, utility float64) { got += fmt.Sprint(at, utility, ";") })
	if want := "0 1;3600 2;7200 3;10800 4;"; got != want {
		t.Errorf("publications %q; want %q", got, want)
	}
	// A gzip file is one whatever its name says.
	zipped := write(t, "zipped.csv", string(gzipped(t, []byte(rows))))
	if rec, err := env.ReadRecording(context.Background(), zipped); err != nil || rec.Rows != 3 || rec.Last != 7200 {
		t.Errorf("recording %+v, error %v", rec, err)
	}
}

// A few items far from the rest are dated wrongly; a pause in the middle is none of
// that.
func TestPlausible(t *testing.T) {
	const year = 365 * 86400
	regular := func(from, to int64) (times []int64) {
		for at := from; at <= to; at += 7200 {
			times = append(times, at)
		}
		return times
	}
	start := int64(46 * year)
	end := start + 2*year
	for _, c := range []struct {
		what        string
		times       []int64
		first, last int64
	}{
		{"regular", regular(start, end), start, end},
		{"1970", append(regular(start, end), 0, 1, 3*86400), start, end},
		{"next year", append(regular(start, end), end+year), start, end},
		{"1970 and next year", append(regular(start, end), 0, end+year), start, end},
		{"half a year before, kept, and half a year behind",
			append(regular(start, end-year), start-year/2, end), start - year/2, end - year},
		{"halves", append(regular(0, year), regular(10*year, 11*year)...), 0, 11 * year},
		{"two", []int64{0, year}, 0, year},
	} {
		var text strings.Builder
		text.WriteString("source,published\n")
		for _, at := range c.times {
			fmt.Fprintf(&text, "a,%d\n", at)
		}
		rec := must(env.PublishedColumns.Parse(context.Background(), "any", strings.NewReader(text.String())))
		rec = rec.Plausible()
		if first, last := rec.First, rec.Last; first != c.first || last != c.last {
			t.Errorf("%s: %d to %d; want %d to %d", c.what, first, last, c.first, c.last)
		}
	}
}

// Any recording gives one line that begins with its name, or publications in
// order that can be fitted and replayed; compressed, it gives the same.
func FuzzRecording(f *testing.F) {
	for _, text := range []string{
		header + "a,0,1\n\"b,\"\"\",3600,2\na,7200,1\n",
		"\ufeffutility,source,published_unix\r\n1,a,5\r\n",
		"source,published_unix\na,7200\na,0\n",
		"published,source\n2026-11-20T10:00:00Z,a\n2026-11-20 11:00:00.5+05:30,a\n",
		"\x1f\x8b\x08\x00",
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Add(gzipped(f, []byte(header+"a,0,1\na,99999,1\n")), false)
	f.Fuzz(func(t *testing.T, data []byte, zip bool) {
		read := func(data []byte) (*env.Recording, string) {
			rec, err := env.PublishedColumns.Parse(context.Background(), "f.csv", bytes.NewReader(data))
			if err != nil {
				return nil, err.Error()
			}
			return rec, ""
		}
		rec, text := read(data)
		if zip && !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			if again, text2 := read(gzipped(t, data)); text2 != text || !reflect.DeepEqual(again, rec) {
				t.Fatalf("compressed: %+v, %q; plain: %+v, %q", again, text2, rec, text)
			}
		}
		if rec == nil {
			if !strings.HasPrefix(text, "f.csv") || strings.Contains(text, "\n") {
				t.Errorf("error %q is not one line that names the file", text)
			}
			return
		}
		last, n := int64(math.MinInt64), 0
		rec.Each(func(i int, at int64, utility float64) {
			if at < last || i < 0 || i >= len(rec.Names) || !(utility >= 0) || math.IsInf(utility, 0) {
				t.Fatalf("publication of source %d at %d worth %v behind one at %d", i, at, utility, last)
			}
			last, n = at, n+1
		})
		if n != rec.Rows || n < 1 || rec.Last < rec.First || !slices.IsSorted(rec.Names) {
			t.Fatalf("recording %+v of %d publications", rec, n)
		}
		o := env.ReplayOptions{Epoch: time.Hour, Decay: 0.175, Split: 0.5, Budget: 1}
		in, err := rec.Fit(o)
		if err != nil {
			return
		}
		if err := in.Validate(); err != nil {
			t.Fatalf("fitted: %v", err)
		}
		if world, err := env.NewReplay(rec, in, o); err == nil {
			for range 3 {
				crawls, err := world.Step([]int{0})
				if err != nil {
					break
				}
				for _, c := range crawls {
					if !(c.Interest >= 0) {
						t.Fatalf("crawl %+v", c)
					}
				}
			}
		}
	})
}

// recorded returns the path of a recording of the shared data, which are not
// part of the project.
func recorded(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs the recording: %v", err)
	}
	return path
}

// The reference figures of the recordings: epochs of one hour, decay .175 per
// hour, budget 5, fitted on the first half of the time span, measured on the
// second, interest per epoch.
//
// Round robin on hn is another matter. It comes round its 120 sources in 24
// epochs of one hour, so that each source is crawled at one hour of the day
// for good, and what it earns depends on which source has which hour: with the
// sources by name 46.3; in other orders and starting hours from 39 to 56. The
// reference, 41, is within that range, in an order that is not recorded.
func TestRecordings(t *testing.T) {
	for _, c := range []struct {
		name string
		want [4]float64
		tol  [4]float64
	}{
		{"trace_fbmedia2016.csv.gz",
			[4]float64{201_961, 259_419, 268_391, 381_978}, [4]float64{0.01, 1e-5, 1e-5, 1e-5}},
		{"trace_hn.csv.gz",
			[4]float64{46.32, 96.46, 102.64, 181.04}, [4]float64{1e-3, 1e-3, 1e-3, 1e-3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := recorded(t, c.name)
			rec := must(env.ReadRecording(context.Background(), path))
			o := env.ReplayOptions{Epoch: time.Hour, Decay: 0.175, Budget: 5, State: true}
			in := must(rec.Fit(o))
			for k, a := range []env.Agent{
				env.NewAgent(baselines.NewRoundRobin(in.Terms())),
				env.NewAgent(baselines.NewGreedy(in)),
				env.NewAgent(baselines.NewWhittle(in)),
				env.NewAgent(baselines.NewWhittleObserved(in, false)),
			} {
				w := must(env.NewReplay(rec, in, o))
				out := must(experiments.Loop(w, a, 0, nil))
				what := []string{"round robin", "greedy by age", "Whittle by age", "Whittle, state observed"}[k]
				t.Logf("%s: %.2f over %d epochs", what, out.Reward, out.Epochs)
				near(t, what, out.Reward, c.want[k], c.tol[k])
			}
		})
	}
}

func BenchmarkReplay(b *testing.B) {
	path := recorded(b, "trace_fbmedia2016.csv.gz")
	rec := must(env.ReadRecording(context.Background(), path))
	o := env.ReplayOptions{Epoch: time.Hour, Decay: 0.175, Budget: 5, Items: true}
	in := must(rec.Fit(o))
	for b.Loop() {
		w := must(env.NewReplay(rec, in, o))
		if _, err := experiments.Loop(w, env.NewAgent(baselines.NewWhittle(in)), 0, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rec.Rows), "ns/publication")
}

// TestReplayShows: a feed shows its last items at the first crawl, also those from
// before the part, and each of them once.
func TestReplayShows(t *testing.T) {
	var b strings.Builder
	b.WriteString(header)
	for k := range 40 { // every half hour, in turn
		fmt.Fprintf(&b, "%s,%d,1\n", []string{"a", "b"}[k%2], 1800*k)
	}
	for _, shows := range []int{0, 3} {
		w, _, err := openReplay(write(t, "r.csv", b.String()),
			env.ReplayOptions{Epoch: time.Hour, Decay: 1, Budget: 2, Items: true, State: true, Shows: shows})
		if err != nil {
			t.Fatal(err)
		}
		state := slices.Clone(w.View().State)
		got, err := w.Step([]int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range got {
			var sum float64
			for _, it := range c.Items {
				sum += it.Interest
			}
			if len(c.Items) != 1+shows || math.Abs(sum-c.Interest) > 1e-12 || math.Abs(sum-state[i]) > 1e-12 {
				t.Errorf("showing %d, source %d: %d items of %v; want %d of %v, the state %v",
					shows, i, len(c.Items), sum, 1+shows, c.Interest, state[i])
			}
		}
		if got, err = w.Step([]int{0}); err != nil || len(got[0].Items) != 1 {
			t.Errorf("showing %d, second crawl: %+v, %v; want one item", shows, got, err)
		}
	}
}

// Arrivals are what crawls of all sources in each epoch bring, but for what is negligible.
func TestArrivals(t *testing.T) {
	var b strings.Builder
	b.WriteString(header)
	r := stream.New(5, stream.Test)
	for at := int64(1000); at < 300_000; at += 150 * int64(r.ExpFloat64()*4) { // some at a decision
		fmt.Fprintf(&b, "%s,%d,%v\n", []string{"a", "b", "c"}[r.Intn(3)], at, math.Floor(r.ExpFloat64()*50))
	}
	path := write(t, "r.csv", b.String())
	for _, o := range []env.ReplayOptions{
		{Part: env.PartWhole}, {Part: env.PartMeasured}, {Part: env.PartMeasured, Shows: 4}, {Part: env.PartFitting},
	} {
		o.Epoch, o.Decay, o.Budget = 20*time.Minute, .3, 3
		w, _, err := openReplay(path, o)
		if err != nil {
			t.Fatal(err)
		}
		arrivals := must(must(env.ReadRecording(context.Background(), path)).Arrivals(o))
		for n := range w.Epochs() {
			got := must(w.Step([]int{0, 1, 2}))
			for i, c := range got {
				var want float64
				if of := arrivals[i]; len(of) > 0 && of[0].Epoch == n {
					want, arrivals[i] = of[0].Interest, of[1:]
				}
				if math.Abs(c.Interest-want) > 1e-12*want {
					t.Fatalf("%+v, epoch %d, source %d: %v arrives, a crawl brings %v", o, n, i, want, c.Interest)
				}
			}
		}
		for i, of := range arrivals {
			if len(of) > 0 {
				t.Errorf("%+v, source %d: %d arrivals after the last epoch", o, i, len(of))
			}
		}
	}
}

// TestReplayScrolls: a source shows its last items only, also to the true state; a
// crawl that finds nothing but new ones says so.
func TestReplayScrolls(t *testing.T) {
	var b strings.Builder
	b.WriteString(header)
	for k := range 80 {
		fmt.Fprintf(&b, "a,%d,%d\nb,%d,1\n", 1800*k, k+1, 1800*k+900)
	}
	path := write(t, "r.csv", b.String())
	o := env.ReplayOptions{Epoch: time.Hour, Decay: .1, Budget: 2, Items: true, State: true, Part: env.PartWhole}
	all, _, err := openReplay(path, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Scrolls, o.Shows = true, 4
	few, _, err := openReplay(path, o)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 30 {
		crawl := []int{}
		if n%7 == 1 || n%7 == 2 || n%7 == 6 { // after two epochs, that is four items, one and four
			crawl = []int{0, 1}
		}
		state := slices.Clone(few.View().State)
		want, got := must(all.Step(crawl)), must(few.Step(crawl))
		for k, c := range got {
			items := want[k].Items
			truncated := len(items) >= 4
			items = items[max(0, len(items)-4):]
			var sum float64
			for _, it := range items {
				sum += it.Interest
			}
			if !slices.Equal(c.Items, items) || c.Truncated != truncated ||
				math.Abs(sum/c.Interest-1) > 1e-12 || state[c.Source] != c.Interest {
				t.Errorf("epoch %d, source %d: %+v, state %v; want the last of %+v",
					n, k, c, state[c.Source], want[k])
			}
		}
	}
}

// reporter notes what it observes of the items of one source.
type reporter struct{ log []string }

func (r *reporter) Select(dst []int, _ *env.Online) []int { return dst }

func (r *reporter) Update(crawls []env.Crawled, next *env.Online) {
	for _, c := range crawls {
		r.log = append(r.log, fmt.Sprint(next.Epoch, " found ", c.Interest, c.Items))
	}
}

func (r *reporter) Report(i int, it env.Item) { r.log = append(r.log, fmt.Sprint("report ", i, it)) }

// summing notes the harvests that it observes, and by how much they change later.
type summing struct {
	harvests []float64
	scale    float64
}

func (s *summing) Rescale(_ int, by float64) { s.scale *= by }

func (s *summing) Select(dst []int, _ *env.Online) []int { return dst }

func (s *summing) Update(crawls []env.Crawled, _ *env.Online) {
	for _, c := range crawls {
		s.harvests = append(s.harvests, c.Interest)
	}
}

// To a learner of whole harvests an item that is not known yet is worth the mean of those
// of its source that are, and of one more like the mean of the instance.
func TestLateHarvests(t *testing.T) {
	in := env.Instance{Sources: []env.Source{
		env.NewSource("a", 1, math.Ln2, 2),
		env.NewSource("b", 3, math.Ln2, 6), // 5 in the mean
	}}
	s := &summing{scale: 1}
	a := env.NewAgent[env.Online](s).WithRescale(s.Rescale).Late(2, in)
	for n := range 4 {
		v := &env.Observed{}
		v.Epoch = n + 1
		// 8 and 20 when they were published; of the older ones too little is left to say what they were worth
		items := []env.Item{
			{Age: 1500}, {Age: 1020, Interest: 8 * math.Pow(2, -1020)}, {Age: 3, Interest: 1}, {Age: 1, Interest: 10},
		}
		a.Update([]env.Crawled{{Source: 1, Items: items}}, v)
	}
	want := []float64{1 + (5.+8)/2/2, 1 + (5.+8+8+20)/4/2, 1 + (5.+3*8+2*20)/6/2, 1 + (5.+4*8+3*20)/8/2}
	for k, got := range s.harvests {
		if math.Abs(got/want[k]-1) > 1e-12 {
			t.Errorf("harvests %v; want %v", s.harvests, want)
			break
		}
	}
	if mean := (5. + 4*8 + 4*20) / 9; math.Abs(5*s.scale/mean-1) > 1e-12 {
		t.Errorf("harvests are scaled by %v in all; the mean went from 5 to %v", s.scale, mean)
	}
}

// What items are worth is observed when they are old enough, and by then the interest that
// they had when they were crawled.
func TestLate(t *testing.T) {
	r := &reporter{}
	a := env.NewAgent[env.Online](r).WithReport(r.Report).Late(3, env.Instance{})
	for n := range 6 {
		v := &env.Observed{}
		v.Epoch = n + 1
		var crawls []env.Crawled
		if n == 1 {
			crawls = []env.Crawled{{
				Source:   7,
				Interest: 7,
				Items:    []env.Item{{Age: 3, Interest: 4}, {Age: 1.5, Interest: 2}, {Age: .5, Interest: 1}},
			}}
		}
		a.Update(crawls, v)
		r.log = append(r.log, fmt.Sprint("epoch ", v.Epoch))
	}
	want := "epoch 1, 2 found 4 [{3 4} {1.5 NaN} {0.5 NaN}], " +
		"epoch 2, report 7 {1.5 2}, epoch 3, report 7 {0.5 1}, epoch 4, epoch 5, epoch 6"
	if got := strings.Join(r.log, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A row that is there twice, field by field, counts once, and is counted as repeated;
// rows that differ in any column are two items.
func TestRepeatedRows(t *testing.T) {
	const text = "source,published,utility,id\n" +
		"a,1000,1,x\nb,1000,1,x\na,1000,1,x\na,1000,1,y\na,1000,2,x\na,2000,1,x\nb,1000,1,x\na,1000,1,x\n"
	rec, err := env.PublishedColumns.Parse(t.Context(), "log.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	rec.Each(func(i int, at int64, utility float64) { got = append(got, fmt.Sprint(rec.Names[i], at, utility)) })
	want := []string{"a1000 1", "b1000 1", "a1000 1", "a1000 2", "a2000 1"}
	if fmt.Sprint(got) != fmt.Sprint(want) || rec.Rows != 5 || rec.Repeated != 3 {
		t.Errorf("%q, %d rows, %d repeated; want %q and 3", got, rec.Rows, rec.Repeated, want)
	}
}
