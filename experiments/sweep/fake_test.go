package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ephemera/env/stream"
	"ephemera/experiments"
)

// fake is an experiment with the shape of the real one: a selector,
// settings of their own for each algorithm, failures on demand.
type fake struct{ pause time.Duration }

func (fake) Selector() Key {
	return Key{Name: "learner.algorithm", Default: "paper", Allowed: []string{"paper", "priced", "whittle"}}
}

func (fake) Keys(selected string) []Key {
	keys := []Key{
		{Name: "steps", Default: int64(100)},
		{Name: "instance.id", Default: "paper", Allowed: []string{"paper", "wide"}, Problem: true},
		{Name: "instance.budget", Default: 1.0},
		{Name: "fail", Default: "", Allowed: []string{"", "error", "panic", "odd"}},
		{Name: "label", Default: ""},
	}
	if selected != "whittle" {
		kappa := map[string]float64{"paper": 2, "priced": 6}[selected]
		keys = append(keys, Key{Name: "learner.kappa", Default: kappa}, Key{Name: "learner.gamma", Default: 0.05})
	}
	if selected == "priced" {
		keys = append(keys, Key{Name: "learner.anneal", Default: false})
	}
	return keys
}

func (fake) Check(c *Cell) error {
	if c.Has("learner.kappa") && !(c.Float("learner.kappa") > 0) {
		return &experiments.SettingError{Key: "learner.kappa", Err: fmt.Errorf("learner.kappa: %v; allowed is above 0", c.Float("learner.kappa"))}
	}
	return nil
}

func (fake) Figures() []Figure {
	return []Figure{{Name: "reward", Unit: "interest per epoch"}, {Name: "crawls", Unit: "crawls per epoch"}, {Name: "ratio"}}
}

func (fake) CurveFigures() []Figure { return []Figure{{Name: "reward"}, {Name: "crawls"}} }

func (f fake) Run(ctx context.Context, c *Cell, seed uint64) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	time.Sleep(f.pause)
	switch mode := c.Text("fail"); {
	case mode == "error" && seed == 2:
		return Result{}, errors.New("the learner\ndiverged")
	case mode == "panic":
		var none []int
		_ = none[seed]
	case mode == "odd":
		return Result{Row: []float64{1}}, nil
	}
	rng := stream.New(seed, stream.Test)
	kappa := 9.0
	if c.Has("learner.kappa") {
		kappa = c.Float("learner.kappa")
	}
	reward := 100 + 10*kappa + rng.NormFloat64()
	r := Result{Row: []float64{reward, 1 / kappa, math.NaN()}}
	if seed != 3 || c.Text("instance.id") == "wide" {
		r.Row[2] = reward / 200
	}
	for n := 1; n <= c.Int("steps"); n *= 2 {
		r.Curve = append(r.Curve, Point{n, []float64{reward * (1 - 1/float64(n+1)), math.Inf(1)}})
	}
	r.Learned = []Pair{{"threshold", "1", 0, kappa, 3}, {"index", "a, \"b\"", 2, reward, 100}}
	return r, nil
}

const kappaTOML = `
question = "How does κ set the number of crawls?"
seeds = 6
metric = "reward"
reference = "kappa/2"

[learner]
kappa = [0.5, 1, 2, 4, 8]
`

func mustLoad(t testing.TB, text string, set ...string) *Config {
	t.Helper()
	c, err := Load(fake{}, "kappa.toml", []byte(text), set)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustRun(t testing.TB, c *Config, o Options) Report {
	t.Helper()
	rep, err := Run(context.Background(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// finals returns the final files of a directory.
func finals(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

func sameFiles(t testing.TB, got, want map[string]string) {
	t.Helper()
	for name, w := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		} else if g != w {
			t.Errorf("%s differs:\n%.600s\nwant\n%.600s", name, g, w)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is there; the other run did not leave it", name)
		}
	}
}

// swept runs a configuration in a directory of its own.
func swept(t testing.TB, text string) (c *Config, dir string) {
	t.Helper()
	c, dir = mustLoad(t, text), t.TempDir()
	mustRun(t, c, Options{Dir: dir})
	return c, dir
}

// summary reads the summary of a directory.
func summary(t testing.TB, dir string) *Summary {
	t.Helper()
	s, err := ReadSummary(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// refused checks that an error says all of the words.
func refused(t testing.TB, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v; want %q", err, w)
		}
	}
}

// writeFile and removeFile change a directory by hand.
func writeFile(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, data, 0o666)); err != nil {
		t.Fatal(err)
	}
}

func removeFile(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
