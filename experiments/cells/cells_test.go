package cells

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/configs"
	"ephemera/experiments/sweep"
	"ephemera/learner"
	"ephemera/learner/paper"
)

func load(t testing.TB, text string, set ...string) (*Schema, *sweep.Config) {
	t.Helper()
	s := New()
	c, err := sweep.Load(s, "test.toml", []byte(text), set)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// ran runs a cell.
func ran(t testing.TB, s *Schema, c *sweep.Cell, seed uint64) sweep.Result {
	t.Helper()
	res, err := s.Run(context.Background(), c, seed)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// refused checks that a configuration is refused with these words.
func refused(t *testing.T, text, want string) {
	t.Helper()
	if _, err := sweep.Load(New(), "test.toml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%q: %v\nwant %s", text, err, want)
	}
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
	names := New().Selector().Allowed
	s, c := load(t, "steps = 60\ninstance.name = \"mixed:4\"\ninstance.budget = 3\nlearner.algorithm = [\""+strings.Join(names, "\", \"")+"\"]")
	if len(c.Cells) != len(names) {
		t.Fatalf("%d cells of %d names", len(c.Cells), len(names))
	}
	for i := range c.Cells {
		res, err := s.Run(context.Background(), &c.Cells[i], 1)
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

// A reading sets what the other settings are where they are not given, and cells
// are told apart by it alone.
func TestReadings(t *testing.T) {
	s, c := load(t, `
steps = 60
learner.algorithm = "paper"
learner.reading = ["printed", "crawled", "ages"]
learner.b = ["1/(n+1)", "0.01"]
`)
	var ids []string
	for i := range c.Cells {
		cell := &c.Cells[i]
		ids = append(ids, cell.ID)
		settings, err := choose("paper").settings(cell)
		if err != nil {
			t.Fatal(err)
		}
		var want paper.Settings
		if err := want.SetReading(cell.Text("learner.reading")); err != nil {
			t.Fatal(err)
		}
		if err := want.B.UnmarshalText([]byte(cell.Text("learner.b"))); err != nil {
			t.Fatal(err)
		}
		if got := *settings.(*paper.Settings); got != want {
			t.Errorf("%s: %+v, want %+v", cell.ID, got, want)
		}
		if cell.Float("learner.kappa") != want.Kappa || cell.Text("learner.margin") != want.Margin {
			t.Errorf("%s shows kappa %v and margin %s; the learner has %v and %s", cell.ID, cell.Value("learner.kappa"), cell.Text("learner.margin"), want.Kappa, want.Margin)
		}
	}
	if want := []string{"b/1_(n+1)/reading/printed", "b/0.01/reading/printed"}; len(ids) != 6 || !strings.Contains(strings.Join(ids, " "), "reading/ages") || strings.Contains(strings.Join(ids, " "), "kappa") {
		t.Errorf("cells are %v; want six such as %v", ids, want)
	}
	// What the sweep writes down loads to the same cells, so that it can go on.
	dir := t.TempDir()
	for _, want := range []int{6, 0} {
		if rep, err := sweep.Run(context.Background(), c, sweep.Options{Dir: dir}); err != nil || rep.Ran != want {
			t.Errorf("%+v, %v; want %d runs", rep, err, want)
		}
	}
	if again, err := sweep.LoadFile(s, filepath.Join(dir, "config.toml"), nil); err != nil || again.Hash() != c.Hash() {
		t.Errorf("loaded again: %v, %v", again, err)
	}
	for _, want := range []string{"loud", "printed"} {
		refused(t, "learner.algorithm = \"paper\"\nlearner.reading = \"loud\"", want)
	}
}

// Figures are those of the loop run by hand.
func TestFigures(t *testing.T) {
	s, c := load(t, "steps = 1000\nlearner.algorithm = \"whittle\"\n")
	res := ran(t, s, &c.Cells[0], 1)
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
	res = ran(t, s, &c.Cells[0], 5)
	in := env.Paper(1)
	world, err := env.NewPoisson(in, 5, env.PoissonOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := experiments.Loop(world, env.NewAgent(baselines.NewWhittle(in)), 300, nil)
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
	if got := experiments.Milestones(20); !slices.Equal(got, []int{1, 2, 3, 4, 6, 7, 10, 13, 18, 20}) {
		t.Errorf("experiments.Milestones(20) = %v", got)
	}
	if got := experiments.Milestones(1); !slices.Equal(got, []int{1}) {
		t.Errorf("experiments.Milestones(1) = %v", got)
	}
	if got := experiments.Milestones(10000); len(got) > 4*8+1 || got[len(got)-1] != 10000 || !slices.IsSorted(got) {
		t.Errorf("experiments.Milestones(10000) = %v", got)
	}
}

// The result depends on cell and seed only, not on what ran before.
func TestRunsHaveNoMemory(t *testing.T) {
	s, c := load(t, "learner.algorithm = \"paper\"\nsteps = 400\nworld.kind = \"poisson\"\nlearner.kappa = [0.1, 2]\nworld.marks = [\"constant\", \"per-item\"]\n")
	for seed := uint64(1); seed < 4; seed++ {
		for i := range c.Cells {
			a := ran(t, s, &c.Cells[i], seed)
			b := ran(t, New(), &c.Cells[i], seed)
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("%s, seed %d: %v and %v", c.Cells[i].ID, seed, a.Row, b.Row)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"learner.kappa = -1\nlearner.algorithm = \"paper\"\n", "test.toml:1:1: learner.kappa: paper: kappa is -1; allowed is a finite number above 0"},
		{"learner.algorithm = \"paper\"\nlearner.a = \"fast\"\n", "test.toml:2:1: learner.a: "},
		{"learner.act = \"both\"\nlearner.algorithm = \"paper\"\n", "test.toml:1:1: learner.act: "},
		{"instance.budget = 9\n", "test.toml:1:1: instance.budget: instance \"paper\": budget is 9"},
		{"instance.name = \"mixed:1:2\"\ninstance.budget = 4\n", "test.toml:2:1: instance.budget: instance \"mixed/1/2\": budget is 4"},
		{"instance.name = \"pape\"\n", "test.toml:1:1: instance.name: unknown instance \"pape\""},
		{"learner.algorithm = \"lspe@online\"\nworld.kind = \"mean\"\n", "test.toml:2:1: world.kind: mean has no items, which an online learner learns from; use poisson"},
		{"steps = 0\n", "test.toml:1:1: steps: 0 epochs; allowed is 1 or more"},
		{"evaluation = -1\n", "test.toml:1:1: evaluation: -1 epochs"},
		{"world.kind = \"poisson\"\nworld.marks = \"loud\"\n", "test.toml:2:1: world.marks: "},
		{"world.kind = \"poisson\"\nworld.marks = \"lognormal\"\nworld.sigma = -1\n", "test.toml:3:1: world.sigma: "},
		{"world.marks = \"x\"\n", "test.toml:1:1: world.marks: it belongs to world.kind = \"poisson\"; this cell has \"mean\""},
		{"world.sigma = -1\n", "test.toml:1:1: world.sigma: it belongs to world.kind = \"poisson\"; this cell has \"mean\""},
		{"learner.algorithm = \"optimum\"\ninstance.name = \"lognormal:9\"\n", "test.toml:1:1: learner.algorithm: optimum does not run on lognormal/9/1"},
		{"learner.capa = 3\n", "test.toml:1:1: unknown key \"learner.capa\"; allowed are name"},
		{"learner.algorithm = \"papre\"\n", "test.toml:1:1: learner.algorithm is \"papre\"; allowed are lspe"},
	} {
		refused(t, c.text, c.want)
	}
}

// Policies are given the law of the items.
func TestLaw(t *testing.T) {
	s, c := load(t, "learner.algorithm = \"stochastic\"\nsteps = 400\nworld.kind = \"poisson\"\nworld.marks = [\"constant\", \"lognormal\"]\nworld.sigma = 0.7\ninstance.budget = 1\n")
	in := env.Paper(1)
	for i, marks := range []env.Marks{env.MarksConstant, env.MarksLogNormal} {
		res := ran(t, s, &c.Cells[i], 3)
		world, err := env.NewPoisson(in, 3, env.PoissonOptions{Marks: marks, Sigma: 0.7, State: true})
		if err != nil {
			t.Fatal(err)
		}
		p, err := baselines.NewStochasticWhittle(in, baselines.StochasticOptions{Marks: marks, Sigma: 0.7})
		if err != nil {
			t.Fatal(err)
		}
		want, err := experiments.Loop(world, env.NewAgent(p), 400, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Row[column(t, "learned_reward")]; got != want.Reward {
			t.Errorf("%s: %v in a sweep and %v by hand", marks, got, want.Reward)
		}
	}
}

// writeRecording writes one of three sources over 20 days of two hours each.
func writeRecording(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("source,published_unix,utility\n")
	for h := range 20 * 24 {
		fmt.Fprintf(&b, "%c,%d,%d\n", 'a'+h%3, 1_600_000_000+3600*h, 1+h*h%11)
	}
	path := filepath.Join(t.TempDir(), "r.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// A recording is a world of sweeps, with the figures of the loop run by hand,
// and is read once: what becomes of the file does not matter.
func TestReplay(t *testing.T) {
	path := writeRecording(t)
	s, c := load(t, fmt.Sprintf("learner.algorithm = [\"greedy\", \"certainty\"]\nworld.kind = \"replay\"\nworld.trace = %q\nworld.epoch = \"2h\"\nworld.decay = 0.1\nworld.split = 0.25\nworld.warm = [false, true]\ninstance.budget = [1, 2]\n", filepath.ToSlash(path)))
	rec, err := env.ReadRecording(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if len(c.Inputs) != 1 || len(c.Cells) != 8 {
		t.Fatalf("%d inputs and %d cells", len(c.Inputs), len(c.Cells))
	}
	earned := map[float64]bool{}
	for i := range c.Cells {
		cell := &c.Cells[i]
		o := env.ReplayOptions{Epoch: 2 * time.Hour, Decay: 0.1, Split: 0.25, Budget: cell.Float("instance.budget")}
		// 19 days and 23 hours have 239 epochs, three quarters of them measured: 179
		// whole ones from the split on, or all that end behind it.
		epochs := 179
		if cell.Value("world.warm").(bool) {
			o.Part, epochs = env.PartWhole, 180
		}
		scene, err := experiments.ReplayScene(rec, o)
		if err != nil {
			t.Fatal(err)
		}
		chosen := choose(cell.Text(selector))
		played, err := scene.Play(context.Background(), experiments.Play{Entry: chosen.entry, Level: chosen.level})
		if err != nil {
			t.Fatal(err)
		}
		res, want := ran(t, s, cell, 1), played.Learned
		earned[want.Reward] = true
		if got := res.Row[column(t, "learned_reward")]; got != want.Reward || want.Epochs != epochs || res.Curve[len(res.Curve)-1].Epoch != epochs {
			t.Errorf("%s earns %v in %v; by hand %v in %d", cell.ID, got, res.Curve[len(res.Curve)-1], want.Reward, want.Epochs)
		}
		if got := res.Row[column(t, "learning_ratio")]; !(got > 0.5 && got < 2) {
			t.Errorf("%s earns %v of what Whittle does", cell.ID, got)
		}
		at, err := s.site(cell)
		if err != nil {
			t.Fatal(err)
		}
		if steps, eval := at.epochs(cell); steps != epochs || eval != epochs {
			t.Errorf("%s runs %d and %d epochs; the recording has %d", cell.ID, steps, eval, epochs)
		}
	}
	if len(earned) != 8 {
		t.Errorf("%d cells earn as much as another one", 8-len(earned))
	}
}

// What a recording holds is part of what a sweep is: with one row more it is
// another one.
func TestRecordingIsIdentity(t *testing.T) {
	path := writeRecording(t)
	text := fmt.Sprintf("learner.algorithm = \"greedy\"\nworld.kind = \"replay\"\nworld.trace = %q\n", filepath.ToSlash(path))
	_, before := load(t, text)
	_, same := load(t, text)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "a,1700000000,3")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, after := load(t, text)
	if same.Hash() != before.Hash() || after.Hash() == before.Hash() || after.Cells[0].Hash == before.Cells[0].Hash {
		t.Errorf("hashes %s, %s and, of another recording, %s", before.Hash(), same.Hash(), after.Hash())
	}
	dir := t.TempDir()
	if _, err := sweep.Run(context.Background(), before, sweep.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if _, err := sweep.Run(context.Background(), after, sweep.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "what "+filepath.ToSlash(path)+" holds") {
		t.Errorf("with another recording: %v", err)
	}
}

func TestReplayErrors(t *testing.T) {
	path := filepath.ToSlash(writeRecording(t))
	whole := fmt.Sprintf("world.kind = \"replay\"\nworld.trace = %q\n", path)
	for _, c := range []struct{ text, want string }{
		{"world.kind = \"replay\"\n", "test.toml:1:1: world.kind: replay needs a recording; world.trace names one"},
		{fmt.Sprintf("world.trace = %q\n", path), "test.toml:1:1: world.trace: it belongs to world.kind = \"replay\"; this cell has \"mean\""},
		{"world.trace = \"none.csv\"\n", "test.toml:1:1: world.trace: stat none.csv: no such file"},
		{whole + "instance.name = \"wide:9\"\n", "test.toml:3:1: instance.name: \"wide:9\"; a recording brings sources of its own"},
		{whole + "world.epoch = \"1 h\"\n", "test.toml:3:1: world.epoch: epoch is \"1 h\"; allowed is a length of time of 1s or more"},
		{whole + "world.marks = \"lognormal\"\n", "test.toml:3:1: world.marks: it belongs to world.kind = \"poisson\""},
		{"world.decay = 0.2\n", "test.toml:1:1: world.decay: it belongs to world.kind = \"replay\"; this cell has \"mean\""},
		{whole + "world.epoch = \"900h\"\n", "test.toml:3:1: world.epoch: "},
		{whole + "world.epoch = \"900h\"\n", "epoch is 900h0m0s, longer than the recording"},
		{whole + "world.decay = 0\n", "test.toml:3:1: world.decay: decay is 0; allowed is a finite rate per hour above 0"},
		{whole + "world.split = 1\n", "test.toml:3:1: world.split: split is 1; allowed is above 0 and below 1"},
		{whole + "instance.budget = 4\n", "test.toml:3:1: instance.budget: "},
		{whole + "learner.algorithm = \"stochastic\"\n", "test.toml:3:1: learner.algorithm: stochastic does not run on r in world replay: it needs to know the law"},
	} {
		refused(t, c.text, c.want)
	}
}

// Thresholds are kept as states, beside the state at which the exact index
// reaches the price.
func TestLearnedPairs(t *testing.T) {
	in := env.Paper(1)
	_, price := index.Bound(in)
	aged := func(l learner.Learner, i int) float64 { // x = u*(1 − e^(−dθ))
		s := in.Sources[i]
		return s.Ceiling() * (1 - math.Exp(-s.Decay*l.(experiments.Aged).ThresholdAge(i)))
	}
	for name, state := range map[string]func(l learner.Learner, i int) float64{
		"paper": func(l learner.Learner, i int) float64 {
			others := -in.Sources[i].Gain()
			for _, s := range in.Sources {
				others += s.Gain()
			}
			return l.(interface {
				Threshold(i int, others float64) float64
			}).Threshold(i, others)
		},
		"lspe":          aged,
		"lspe@observed": func(l learner.Learner, i int) float64 { return l.(experiments.Priced).InverseIndex(i) },
		"lspe@online":   aged,
	} {
		text := "steps = 500\nlearner.algorithm = \"" + name + "\"\n"
		if name == "paper" {
			text += "learner.reading = \"scale-free\"\n" // with thresholds within their bounds, where the other sources matter
		}
		s, cfg := load(t, text)
		at, err := s.site(&cfg.Cells[0])
		if err != nil {
			t.Fatal(err)
		}
		c := choose(name)
		settings, err := c.settings(&cfg.Cells[0])
		if err != nil {
			t.Fatal(err)
		}
		played, err := at.scene.Play(context.Background(), experiments.Play{Entry: c.entry, Settings: settings, Level: c.level, Seed: 1, Epochs: 500, Evaluation: -1})
		if err != nil {
			t.Fatal(err)
		}
		res := ran(t, s, &cfg.Cells[0], 1)
		thresholds := slices.DeleteFunc(res.Learned, func(p sweep.Pair) bool { return p.What != "threshold" })
		if len(thresholds) != 4 {
			t.Fatalf("%s: %d thresholds; want one per source", name, len(thresholds))
		}
		for i, p := range thresholds {
			s := in.Sources[i]
			if want := state(played.Trainee, i); math.Abs(p.Learned-want) > 1e-9*want || want >= s.Ceiling() && i < 2 && name != "paper" {
				t.Errorf("%s: threshold %+v; the learner has %v", name, p, want)
			}
			// The exact index is the price there, or below it everywhere.
			if index := index.Whittle(s, p.Exact*(1-1e-9)); p.Exact < s.Ceiling() && math.Abs(index-price) > 1e-5*price || p.Exact > s.Ceiling() || p.Exact == s.Ceiling() && index > price*(1+1e-9) {
				t.Errorf("%s: source %d: index %v at the exact threshold %v; the price is %v", name, i, index, p.Exact, price)
			}
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
		c, err := sweep.Load(s, name+".toml", data, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(c.Question, "?") {
			t.Errorf("%s begins with %q; a configuration begins with the question that it asks", name, c.Question)
		}
		for i := range c.Cells {
			if i > 0 && i < len(c.Cells)-1 && i%7 != 0 {
				continue
			}
			at, err := s.site(&c.Cells[i])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.run(context.Background(), at, &c.Cells[i], 1, 30, 30); err != nil {
				t.Errorf("%s, %s: %v", name, c.Cells[i].ID, err)
			}
		}
	}
}

// The estimate of a sweep times one run of those that take as long.
func TestEstimate(t *testing.T) {
	ran := 0
	before := experiments.Catalogue
	defer func() { experiments.Catalogue = before }()
	experiments.Catalogue = append(slices.Clip(before), experiments.Entry{Name: "slow", New: func(k experiments.Known, _ any) (env.Agent, error) {
		ran++
		time.Sleep(2 * time.Millisecond)
		return env.NewAgent(baselines.NewRoundRobin(k.Terms)), nil
	}})
	s, c := load(t, "seeds = 10\nsteps = [800, 1600]\nlearner.algorithm = \"slow\"\ninstance.budget = [1, 2]\n")
	got, err := s.Estimate(context.Background(), c, 2, time.Minute)
	// 400 epochs stand for 1600 of two cells and for 3200 of two, of ten seeds on
	// two workers; sleeps are longer, never shorter.
	if least := 2 * time.Millisecond * 2 * (2 + 4) * 10 / 2; err != nil || got < least || ran != 2 {
		t.Errorf("estimate %v from %d runs, %v; want at least %v from 2", got, ran, err, least)
	}
	if _, err := s.Estimate(context.Background(), c, 2, -1); err != nil || ran != 3 {
		t.Errorf("without time: %d runs, %v; want one more", ran, err)
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
	for _, bad := range []string{"gonum.org/v1/plot", "chromedp", "ephemera/experiments/sweep"} {
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
	c, err := sweep.Load(s, "kappa.toml", data, []string{"seeds=60"})
	if err != nil {
		b.Fatal(err)
	}
	least := [3]time.Duration{}
	for b.Loop() {
		for workers := 1; workers <= 2; workers++ {
			dir := filepath.Join(b.TempDir(), "out")
			began := time.Now()
			rep, err := sweep.Run(context.Background(), c, sweep.Options{Dir: dir, Workers: workers})
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
