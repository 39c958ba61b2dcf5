package cells

import (
	"context"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/configs"
	"ephemera/experiments/sweep"
)

func load(t testing.TB, text string, set ...string) (*Schema, *sweep.Config) {
	t.Helper()
	s := New()
	c, err := sweep.Load(s, s, "test.toml", []byte(text), set)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// column returns the position of a figure.
func column(t testing.TB, name string) int {
	t.Helper()
	for i, f := range New().Figures() {
		if f.Name == name {
			return i
		}
	}
	t.Fatalf("no figure %q", name)
	return 0
}

// Every algorithm and policy of the catalogue runs at its defaults.
func TestCatalogue(t *testing.T) {
	s := New()
	names := s.Selector().Allowed
	list := "[\"" + strings.Join(names, "\", \"") + "\"]"
	c, err := sweep.Load(s, s, "all.toml", []byte("steps = 60\nlearner.algorithm = "+list), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Cells) != len(names) {
		t.Fatalf("%d cells of %d names", len(c.Cells), len(names))
	}
	w := s.Worker()
	for i := range c.Cells {
		res, err := w.Run(context.Background(), &c.Cells[i], 1)
		if err != nil {
			t.Errorf("%s: %v", c.Cells[i].ID, err)
			continue
		}
		if len(res.Row) != len(s.Figures()) || res.Curve[len(res.Curve)-1].Epoch != 60 {
			t.Errorf("%s: %d figures, curve %v", c.Cells[i].ID, len(res.Row), res.Curve)
		}
		for j, f := range s.Figures() {
			if math.IsNaN(res.Row[j]) || res.Row[j] < 0 {
				t.Errorf("%s: %s is %v", c.Cells[i].ID, f.Name, res.Row[j])
			}
		}
	}
}

// Figures are those of the loop run by hand.
func TestFigures(t *testing.T) {
	s, c := load(t, "steps = 1000\nlearner.algorithm = \"whittle\"\n")
	res, err := s.Worker().Run(context.Background(), &c.Cells[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	// TCNS, section IX: exact Whittle earns 260.30 in 1000 steps.
	if v := res.Row[column(t, "learned_reward")]; math.Abs(v-260.30) > 0.005 {
		t.Errorf("exact Whittle earns %v in 1000 steps; TCNS has 260.30", v)
	}
	for _, name := range []string{"learned_ratio", "learning_ratio", "learned_crawls"} {
		if v := res.Row[column(t, name)]; math.Abs(v-1) > 1e-12 {
			t.Errorf("%s of exact Whittle is %v; want 1", name, v)
		}
	}

	// A learner in a world that the seed changes, with an evaluation of
	// another length.
	s, c = load(t, "learner.algorithm = \"paper\"\nsteps = 700\nevaluation = 300\nworld.kind = \"poisson\"\nlearner.act = \"budget\"\n")
	if res, err = s.Worker().Run(context.Background(), &c.Cells[0], 5); err != nil {
		t.Fatal(err)
	}
	in := env.Paper(1)
	world, err := env.NewPoisson(in, 5, env.PoissonOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := experiments.Run(world, env.NewAgent(baselines.NewWhittle(in)), 300, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := res.Row[column(t, "whittle_reward")]; math.Abs(v-out.Reward) > 1e-9 {
		t.Errorf("Whittle over the evaluation: %v; by hand %v", v, out.Reward)
	}
	if v := res.Row[column(t, "learned_reward")] / out.Reward; math.Abs(v-res.Row[column(t, "learned_ratio")]) > 1e-9 {
		t.Errorf("learned ratio %v; want %v", res.Row[column(t, "learned_ratio")], v)
	}
	// The curve adds up to the run.
	var reward, crawls float64
	last := 0
	for _, p := range res.Curve {
		reward += p.Values[1] * float64(p.Epoch-last)
		crawls += p.Values[2] * float64(p.Epoch-last)
		last = p.Epoch
	}
	if last != 700 || math.Abs(reward/700-res.Row[column(t, "learning_reward")]) > 1e-9 || math.Abs(crawls/700-res.Row[column(t, "learning_crawls")]) > 1e-9 {
		t.Errorf("the curve has %v interest and %v crawls per epoch; the run %v", reward/700, crawls/700, res.Row)
	}
}

func TestMilestones(t *testing.T) {
	if got := milestones(20); !slices.Equal(got, []int{1, 2, 3, 4, 6, 7, 10, 13, 18, 20}) {
		t.Errorf("milestones(20) = %v", got)
	}
	if got := milestones(1); !slices.Equal(got, []int{1}) {
		t.Errorf("milestones(1) = %v", got)
	}
	if got := milestones(10000); len(got) > 4*perDecade+1 || got[len(got)-1] != 10000 || !slices.IsSorted(got) {
		t.Errorf("milestones(10000) = %v", got)
	}
}

// The result depends on cell and seed only, not on what the worker ran before.
func TestWorkerHasNoMemory(t *testing.T) {
	s, c := load(t, "learner.algorithm = \"paper\"\nsteps = 400\nworld.kind = \"poisson\"\nlearner.kappa = [0.1, 2]\nworld.marks = [\"constant\", \"per-item\"]\n")
	used := s.Worker()
	for seed := uint64(1); seed < 4; seed++ {
		for i := range c.Cells {
			a, err := used.Run(context.Background(), &c.Cells[i], seed)
			if err != nil {
				t.Fatal(err)
			}
			b, err := New().Worker().Run(context.Background(), &c.Cells[i], seed)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("%s, seed %d: %v and %v", c.Cells[i].ID, seed, a.Row, b.Row)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"learner.kappa = -1\nlearner.algorithm = \"paper\"\n", "test.toml:1:1: learner.kappa: algorithm \"paper\": kappa is -1; allowed is a finite number above 0"},
		{"learner.algorithm = \"paper\"\nlearner.a = \"fast\"\n", "test.toml:2:1: learner.a: "},
		{"learner.act = \"both\"\nlearner.algorithm = \"paper\"\n", "test.toml:1:1: learner.act: "},
		{"instance.budget = 9\n", "test.toml:1:1: instance.budget: instance \"paper\": budget is 9"},
		{"instance.name = \"pape\"\n", "test.toml:1:1: instance.name: unknown instance \"pape\""},
		{"steps = 0\n", "test.toml:1:1: steps: 0 epochs; allowed is 1 or more"},
		{"evaluation = -1\n", "test.toml:1:1: evaluation: -1 epochs"},
		{"world.kind = \"poisson\"\nworld.marks = \"loud\"\n", "test.toml:2:1: world.marks: "},
		{"world.kind = \"poisson\"\nworld.marks = \"lognormal\"\nworld.sigma = -1\n", "test.toml:3:1: world.sigma: "},
		{"learner.algorithm = \"optimum\"\ninstance.name = \"lognormal:9\"\n", "test.toml:1:1: learner.algorithm: optimum does not run on lognormal/9/1"},
		{"learner.capa = 3\n", "is it learner.kappa?"},
		{"learner.algorithm = \"papre\"\n", "test.toml:1:1: learner.algorithm is \"papre\"; allowed are priced"},
	} {
		s := New()
		_, err := sweep.Load(s, s, "test.toml", []byte(c.text), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v\nwant %s", c.text, err, c.want)
		}
	}
}

// The exact threshold is where the index reaches the price.
func TestExactThreshold(t *testing.T) {
	for _, s := range env.Paper(1).Sources {
		for _, price := range []float64{1, 20, 60} {
			x := exactThreshold(s, price)
			if s.Ceiling()/s.Cost <= price {
				if x != s.Ceiling() {
					t.Errorf("source %s, price %v: %v; want the ceiling", s.Name, price, x)
				}
			} else if v := baselines.WhittleIndex(s, x); math.Abs(v-price) > 1e-6*price {
				t.Errorf("source %s: index %v at the threshold of price %v", s.Name, v, price)
			}
		}
	}
}

func TestLearnedPairs(t *testing.T) {
	s, c := load(t, "steps = 100\nlearner.algorithm = \"paper\"\n")
	res, err := s.Worker().Run(context.Background(), &c.Cells[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	in := env.Paper(1)
	if len(res.Learned) != 4 {
		t.Fatalf("%d learned quantities; want a threshold per source", len(res.Learned))
	}
	for i, p := range res.Learned {
		if lo, hi := in.Sources[i].Gain(), in.Sources[i].Ceiling(); p.What != "threshold" || p.Learned < lo || p.Learned > hi {
			t.Errorf("threshold %+v; the projection is on [%v, %v]", p, lo, hi)
		}
	}
}

// Every configuration of the project loads, asks a question, and names cells
// that can be run.
func TestConfigurations(t *testing.T) {
	for _, name := range configs.Names() {
		data, err := configs.Files.ReadFile(name + ".toml")
		if err != nil {
			t.Fatal(err)
		}
		s := New()
		c, err := sweep.Load(s, s, name+".toml", data, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(c.Question, "?") {
			t.Errorf("%s begins with %q; a configuration begins with the question that it asks", name, c.Question)
		}
		w := s.Worker()
		for i := range c.Cells {
			if i > 0 && i < len(c.Cells)-1 && i%7 != 0 {
				continue
			}
			short, _ := Probe(&c.Cells[i])
			if _, err := w.Run(context.Background(), short.With("steps", int64(30)).With("evaluation", int64(0)), 1); err != nil {
				t.Errorf("%s, %s: %v", name, c.Cells[i].ID, err)
			}
		}
	}
}

// Training must build with nothing that draws or drives a browser.
func TestTrainImportsNoPlot(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "ephemera/cmd/train").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	if !strings.Contains(string(out), "ephemera/experiments") {
		t.Fatalf("dependencies of cmd/train: %s", out)
	}
	for _, bad := range []string{"gonum.org/v1/plot", "chromedp", "parquet", "ephemera/experiments/sweep"} {
		if strings.Contains(string(out), bad) {
			t.Errorf("cmd/train imports %s", bad)
		}
	}
}

// BenchmarkSweep measures the sweep over κ on one worker and on two, in turns.
// The least time of each counts, so that the ratio tells little of what else
// the machine does.
func BenchmarkSweep(b *testing.B) {
	data, err := configs.Files.ReadFile("kappa.toml")
	if err != nil {
		b.Fatal(err)
	}
	s := New()
	c, err := sweep.Load(s, s, "kappa.toml", data, []string{"seeds=60"})
	if err != nil {
		b.Fatal(err)
	}
	least := [3]time.Duration{}
	for b.Loop() {
		for workers := 1; workers <= 2; workers++ {
			dir := filepath.Join(b.TempDir(), "out")
			began := time.Now()
			rep, err := sweep.Run(context.Background(), c, s, sweep.Options{Dir: dir, Workers: workers, Log: io.Discard})
			if err != nil || rep.Missing > 0 {
				b.Fatal(err, rep)
			}
			if d := time.Since(began); least[workers] == 0 || d < least[workers] {
				least[workers] = d
			}
		}
	}
	runs := float64(c.Jobs())
	b.ReportMetric(runs/least[1].Seconds(), "runs/s-on-1")
	b.ReportMetric(runs/least[2].Seconds(), "runs/s-on-2")
	b.ReportMetric(least[1].Seconds()/least[2].Seconds(), "times")
}
