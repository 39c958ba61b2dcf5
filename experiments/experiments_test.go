package experiments

import (
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
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/learner/forecast"
)

// scripted crawls what it is told to.
type scripted struct {
	plan    [][]int
	updates int
}

func (s *scripted) Select(dst []int, o *env.Online) []int { return append(dst, s.plan[o.Epoch]...) }
func (s *scripted) Update([]env.Crawled, *env.Online)     { s.updates++ }

func TestRunCounts(t *testing.T) {
	in := env.Paper(1)
	in.Sources[1].Cost = 2.5
	w, err := env.NewMean(in, true)
	if err != nil {
		t.Fatal(err)
	}
	p := &scripted{plan: [][]int{{0}, {}, {0, 1, 2}, {3}}}
	var seen []float64
	o, err := Loop(w, env.NewAgent[env.Online](p), 4, func(n int, reward float64, crawls []env.Crawled) error {
		if n != len(seen) || len(crawls) != len(p.plan[n]) {
			t.Errorf("epoch %d: watcher sees epoch %d and %d crawls", len(seen), n, len(crawls))
		}
		seen = append(seen, reward)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := in.Sources
	third := s[0].MeanState(2) + s[1].MeanState(3) + s[2].MeanState(3)
	for n, want := range []float64{s[0].Gain(), 0, third, s[3].MeanState(4)} {
		if math.Abs(seen[n]-want) > 1e-9 {
			t.Errorf("epoch %d earned %v, want %v", n, seen[n], want)
		}
	}
	if o.Epochs != 4 || o.Crawls != 5./4 || o.Cost != 6.5/4 || o.Over != 1./4 || o.Overrun != 3.5/4 {
		t.Errorf("outcome %+v", o)
	}
	if p.updates != 4 {
		t.Errorf("told of %d epochs, want 4", p.updates)
	}
}

func TestRunRefusesOverBudget(t *testing.T) {
	w, err := env.NewMean(env.Paper(1), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Loop(w, env.NewAgent[env.Online](&scripted{plan: [][]int{{0, 1}}}), 1, nil); err == nil {
		t.Error("two crawls on a budget of one passed")
	}
}

// ending is a world that ends.
type ending struct {
	*env.Mean
	left int
}

func (e *ending) Step(c []int) ([]env.Crawled, error) {
	if e.left--; e.left < 0 {
		return nil, io.EOF
	}
	return e.Mean.Step(c)
}

func TestRunToTheEnd(t *testing.T) {
	world := func() env.World {
		w, err := env.NewMean(env.Paper(1), false)
		if err != nil {
			t.Fatal(err)
		}
		return &ending{w, 3}
	}
	idle := func() env.Agent { return env.NewAgent[env.Online](&scripted{plan: make([][]int, 9)}) }
	o, err := Loop(world(), idle(), 0, nil)
	if err != nil || o.Epochs != 3 {
		t.Errorf("ran %d epochs, %v; want all 3", o.Epochs, err)
	}
	if _, err := Loop(world(), idle(), 5, nil); err == nil || !strings.Contains(err.Error(), "3") {
		t.Errorf("5 epochs of a world of 3: %v", err)
	}
	stop := errors.New("stop")
	if _, err := Loop(world(), idle(), 0, func(int, float64, []env.Crawled) error { return stop }); err != stop {
		t.Errorf("the watcher's error came back as %v", err)
	}
}

// Every policy and learner of the catalogue runs wherever it says it applies.
func TestCatalogueRuns(t *testing.T) {
	for name, s := range map[string]Scene{
		"mean":    MeanScene(env.Paper(1)),
		"poisson": PoissonScene(env.Paper(2), env.MarksPerItem, 1),
		"mixed":   PoissonScene(env.Mixed(6, 3, 1), env.MarksConstant, 1),
	} {
		for _, level := range []env.Level{env.LevelModel, env.LevelObserved, env.LevelOnline} {
			if level == env.LevelOnline && name == "mean" {
				continue
			}
			var all []Contender
			for i := range Catalogue {
				if e := &Catalogue[i]; e.WhyNot(s, level) == "" && e.Name != "stochastic-learned" {
					all = append(all, Contender{Entry: e})
				}
			}
			c, err := Comparison{Scenes: []Scene{s}, Level: level, Contenders: all, Epochs: 60, Seeds: 1, Workers: 1}.Run(context.Background())
			if err != nil {
				t.Errorf("%s, %s: %v", name, level, err)
				continue
			}
			for _, r := range c.Report.Results {
				if !(r.Reward > 0) || r.OfWhittle == nil {
					t.Errorf("%s, %s: %s earned %v", name, level, r.Policy, r.Reward)
				}
			}
		}
	}
}

// contenders are policies of the catalogue with their defaults.
func contenders(t *testing.T, names ...string) (all []Contender) {
	t.Helper()
	for _, e := range find(t, names...) {
		all = append(all, Contender{Entry: e})
	}
	return all
}

func compare(t *testing.T, c Comparison) *Compared {
	t.Helper()
	out, err := c.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func comparison(t *testing.T, workers int) Comparison {
	return Comparison{
		Scenes:     []Scene{PoissonScene(env.Paper(1), env.MarksConstant, 1), PoissonScene(env.Lognormal(4, 1, 3), env.MarksConstant, 1)},
		Level:      env.LevelModel,
		Contenders: contenders(t, "paper", "static-random", "whittle"),
		Epochs:     100, Seeds: 6, Seed: 3, Workers: workers,
	}
}

// The workers change nothing but the time, and what has another name sees the
// same worlds.
func TestWorkersChangeNothing(t *testing.T) {
	run := func(workers int) *Compared {
		all := comparison(t, workers)
		again := *find(t, "whittle")[0]
		again.Name = "again"
		all.Contenders = append(all.Contenders, Contender{Entry: &again})
		c := compare(t, all)
		for i := range c.Runs {
			c.Runs[i].Decision = 0
		}
		c.Report.Timing = nil
		return c
	}
	one, three := run(1), run(3)
	if !reflect.DeepEqual(one, three) {
		t.Errorf("one worker\n%+v\nthree\n%+v", one, three)
	}
	// 2 scenes × 6 seeds × (a learner's 2 rows + 3 baselines)
	if len(one.Runs) != 60 {
		t.Errorf("%d runs, want 60", len(one.Runs))
	}
	last := one.Report.Results[len(one.Report.Results)-1]
	if last.Over == 0 {
		t.Errorf("%s stands last, but the paper's learner breaks the budget", last.Policy)
	}
	for _, r := range one.Report.Results {
		if (r.Policy == "whittle" || r.Policy == "again") && (*r.OfWhittle != 1 || *r.Diff != 0 || *r.Worst != 1) {
			t.Errorf("Whittle against itself: %+v", r)
		}
		if r.Lo != nil || r.DiffLo != nil {
			t.Errorf("%s has an interval; two instances are too few for one", r.Policy)
		}
	}
}

// Over several instances the interval is over instances: more seeds of the same
// deterministic worlds tell nothing new.
func TestIntervalOverInstances(t *testing.T) {
	run := func(seeds int) result.Row {
		c := Comparison{Level: env.LevelModel, Contenders: contenders(t, "greedy", "whittle"), Epochs: 50, Seeds: seeds, Seed: 1, Workers: 2}
		for k := range 6 {
			c.Scenes = append(c.Scenes, MeanScene(env.Lognormal(4, 1, uint64(k+1))))
		}
		out := compare(t, c)
		for _, r := range out.Report.Results {
			if r.Lo == nil || !(*r.Lo < r.Reward && r.Reward < *r.Hi) {
				t.Errorf("%s: interval %v to %v around %v", r.Policy, r.Lo, r.Hi, r.Reward)
			}
			if r.Policy == "whittle" && (*r.DiffLo != 0 || *r.DiffHi != 0) {
				t.Errorf("Whittle against itself: %+v", r)
			}
		}
		// The ratios, from the runs: greedy's come before Whittle's in each scene.
		var ofWhittle, ofBound float64
		worst := math.Inf(1)
		for k, scene := range c.Scenes {
			bound, _ := index.Bound(scene.Instance)
			for i := range seeds {
				g, w := out.Runs[2*seeds*k+i], out.Runs[2*seeds*k+seeds+i]
				if g.Policy != "greedy" || w.Policy != "whittle" || g.Instance != scene.Instance.ID {
					t.Fatalf("runs are in another order: %+v, %+v", g, w)
				}
				ofWhittle += g.Reward / w.Reward / float64(6*seeds)
				ofBound += g.Reward / bound / float64(6*seeds)
				worst = min(worst, g.Reward/w.Reward)
			}
		}
		for _, r := range out.Report.Results {
			if r.Policy == "greedy" && !(math.Abs(*r.OfWhittle-ofWhittle) < 1e-12 && math.Abs(*r.OfBound-ofBound) < 1e-12 && *r.Worst == worst) {
				t.Errorf("greedy earns %v of Whittle, %v of the bound, at worst %v; want %v, %v, %v", *r.OfWhittle, *r.OfBound, *r.Worst, ofWhittle, ofBound, worst)
			}
		}
		return out.Report.Results[slices.IndexFunc(out.Report.Results, func(r result.Row) bool { return r.Policy == "greedy" })]
	}
	one, five := run(1), run(5)
	for _, x := range []struct {
		what string
		a, b float64
	}{{"lo", *one.Lo, *five.Lo}, {"hi", *one.Hi, *five.Hi}, {"diff_lo", *one.DiffLo, *five.DiffLo}, {"diff_hi", *one.DiffHi, *five.DiffHi}} {
		if math.Abs(x.a-x.b) > 1e-9*math.Abs(x.a) {
			t.Errorf("%s is %v with one seed and %v with five", x.what, x.a, x.b)
		}
	}
}

// recorded is the scene of a recording of three sources, half of which is
// measured: so many days and ten hours.
func recorded(t *testing.T, days int) Scene {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.csv")
	var b strings.Builder
	b.WriteString("source,published_unix,utility\n")
	for h := range 2 * 24 * days {
		fmt.Fprintf(&b, "%c,%d,%d\n", 'a'+h%3, 3600*h, 1+h*h%11)
	}
	fmt.Fprintf(&b, "a,%d,1\n", 3600*(2*24*days+20))
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	rec, err := env.ReadRecording(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	scene, err := ReplayScene(rec, env.ReplayOptions{Epoch: time.Hour, Decay: .2, Budget: 1})
	if err != nil {
		t.Fatal(err)
	}
	return scene
}

// A recording is the same under every seed, so that seeds give no interval; it
// takes five weeks to have one.
func TestIntervalOfRecording(t *testing.T) {
	for days, want := range map[int]bool{3: false, 20: false, 40: true} {
		out := compare(t, Comparison{Scenes: []Scene{recorded(t, days)}, Level: env.LevelModel, Contenders: contenders(t, "whittle", "round-robin"), Seeds: 6, Seed: 1, Workers: 2})
		for _, r := range out.Runs {
			if r.Epochs != 24*days+10 || len(r.Days) != days {
				t.Errorf("%d epochs of an hour have %d whole days, want %d and %d", r.Epochs, len(r.Days), 24*days+10, days)
			}
		}
		for _, r := range out.Report.Results {
			if got := r.Lo != nil; got != want {
				t.Errorf("%d days, %s: interval is %v, want %v", days, r.Policy, got, want)
			}
			if want && !(*r.Lo < r.Reward && r.Reward < *r.Hi) {
				t.Errorf("%d days, %s: interval %v to %v around %v", days, r.Policy, *r.Lo, *r.Hi, r.Reward)
			}
		}
	}
}

// What was learned on a part of a recording is run on that part, as are the
// policies beside it.
func TestPartOfRecording(t *testing.T) {
	c := Comparison{Scenes: []Scene{recorded(t, 60)}, Level: env.LevelModel, Contenders: contenders(t, "lspe", "whittle"), Epochs: 45 * 24, Seeds: 1, Seed: 1, Workers: 1}
	out := compare(t, c)
	for _, r := range out.Runs {
		if r.Epochs != 45*24 || len(r.Days) != 45 {
			t.Errorf("%s ran for %d epochs and %d days, want %d and 45", r.Policy, r.Epochs, len(r.Days), 45*24)
		}
	}
	tr, err := Training{Scene: c.Scenes[0], Learner: find(t, "lspe")[0], Level: env.LevelModel, Epochs: 45 * 24, Seed: 1, Compare: find(t, "whittle")}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range tr.Report.Results {
		k := slices.IndexFunc(out.Report.Results, func(x result.Row) bool { return strings.HasSuffix(x.Policy, r.Policy) })
		if want := out.Report.Results[k].Reward; r.Reward != want {
			t.Errorf("%s earns %v in a training, %v in a comparison", r.Policy, r.Reward, want)
		}
	}
}

// A policy that panics ends the comparison with an error that names it.
func TestPanicIsReported(t *testing.T) {
	c := comparison(t, 2)
	bad := &Entry{Name: "bad", New: func(Known, any) (env.Agent, error) { panic("boom") }}
	c.Contenders = append(c.Contenders, Contender{Entry: bad})
	if _, err := c.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "bad") || !strings.Contains(err.Error(), "boom") {
		t.Errorf("the panic came back as %v", err)
	}
}

func TestConfigure(t *testing.T) {
	a := find(t, "paper")[0]
	if _, err := a.Configure(env.LevelModel, map[string]any{"kappa": 3.5, "act": "budget"}); err != nil {
		t.Error(err)
	}
	for key, value := range map[string]any{"kappa": -1.0, "gamma": math.NaN(), "colour": "red", "act": 3} {
		if _, err := a.Configure(env.LevelModel, map[string]any{key: value}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s = %v: %v", key, value, err)
		} else if strings.Contains(err.Error(), "Settings") || key == "act" && !strings.Contains(err.Error(), "3") {
			t.Errorf("%s = %v: the error names Go types, or not the value: %v", key, value, err)
		}
	}
	for _, a := range Learners() {
		for _, l := range a.Levels {
			if len(a.Keys(l)) == 0 {
				t.Errorf("%s has no settings with knowledge %s", a.Name, l)
			}
		}
	}
}

// Training keeps one row of metrics for each part of the run, and the rows'
// rewards average to what was earned.
func TestTrainingMetrics(t *testing.T) {
	tr, err := Training{
		Scene: MeanScene(env.Paper(1)), Learner: find(t, "paper")[0], Level: env.LevelModel,
		Epochs: 1005, Seed: 1, Rows: 10, Compare: find(t, "whittle"),
	}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	metrics, _, _ := tr.Tables(env.Paper(1))
	if len(metrics.Rows) != 10 {
		t.Fatalf("%d rows of metrics, want 10", len(metrics.Rows))
	}
	var sum, last float64
	for k, row := range tr.Metrics.Rows {
		if len(row) != len(metrics.Header) || len(metrics.Rows[k]) != len(metrics.Header) {
			t.Fatalf("row of %d under %d headings", len(row), len(metrics.Header))
		}
		if n := row[0] - last; n < 100 || n > 101 {
			t.Errorf("a row of %v epochs; 1005 are 10 rows of 100 or 101", n)
		}
		sum += row[1] * (row[0] - last) / 1005
		last = row[0]
	}
	if got := tr.Report.Results[0].Reward; math.Abs(sum-got) > 1e-9 {
		t.Errorf("rows average %v, the run earned %v", sum, got)
	}
	if c := tr.Trace.Crawls; len(c) == 0 || c[0][0] < 905 || c[0][0] > 915 || c[len(c)-1][0] < 995 {
		t.Errorf("crawls are kept from epoch %d to %d; want those of the last 100 of 1005", c[0][0], c[len(c)-1][0])
	}
	if s := Sentence(&tr.Report); !strings.Contains(s, "%") {
		t.Errorf("the sentence is %q", s)
	}
}

// A policy that draws draws otherwise under another seed, and where nothing
// arrives at random that is all that differs.
func TestPolicyDrawsBySeed(t *testing.T) {
	out := compare(t, Comparison{
		Scenes: []Scene{MeanScene(env.Paper(1))}, Level: env.LevelModel,
		Contenders: contenders(t, "static-random"), Epochs: 50, Seeds: 2, Seed: 1, Workers: 1,
	})
	if a, b := out.Runs[0].Reward, out.Runs[1].Reward; a == b {
		t.Errorf("seeds 1 and 2 both earn %v", a)
	}
}

// A constructor is told what the world is: its level, the law of its marks, and
// which states are seen.
func TestKnown(t *testing.T) {
	var got Known
	e := &Entry{Name: "asking", New: func(k Known, _ any) (env.Agent, error) {
		got = k
		return env.NewAgent[env.Online](baselines.NewRoundRobin(k.Terms)), nil
	}}
	s := PoissonScene(env.Paper(2), env.MarksLogNormal, .7, false, true, false, false)
	if _, err := s.Play(context.Background(), Play{Entry: e, Level: env.LevelObserved, Seed: 3, Epochs: 5}); err != nil {
		t.Fatal(err)
	}
	if got.Level != env.LevelObserved || got.Marks != env.MarksLogNormal || got.Sigma != .7 || !slices.Equal(got.Seen, []bool{true, false, true, true}) ||
		got.Instance.ID != s.Instance.ID || got.Terms.Budget != 2 {
		t.Errorf("told %+v", got)
	}
}

// The relaxed optimum bounds what is earned where rewards follow the mean
// dynamics and the policy sees no more than they hold.
func TestBounded(t *testing.T) {
	in := env.Paper(1)
	windowed := env.Paper(1)
	windowed.Sources = append([]env.Source(nil), windowed.Sources...)
	windowed.Sources[2].Window = 3
	for _, x := range []struct {
		what  string
		scene Scene
		level env.Level
		want  bool
	}{
		{"mean dynamics", MeanScene(in), env.LevelModel, true},
		{"mean dynamics, observed", MeanScene(in), env.LevelObserved, true},
		{"items, online", PoissonScene(in, env.MarksConstant, 1), env.LevelOnline, true},
		{"items, observed", PoissonScene(in, env.MarksConstant, 1), env.LevelObserved, false},
		{"items with a window", PoissonScene(windowed, env.MarksConstant, 1), env.LevelModel, true},
	} {
		if got := x.scene.Bounded(x.level); got != x.want {
			t.Errorf("%s: bounded is %v, want %v", x.what, got, x.want)
		}
	}
}

// The defaults of a policy's settings are those that it has without any, and
// each setting acts.
func TestPolicySettings(t *testing.T) {
	in := env.Mixed(8, 2, 1)
	for i := range in.Sources {
		in.Sources[i].Rate *= .05 // so that some crawls find nothing
	}
	scene := PoissonScene(in, env.MarksPerItem, 1)
	earn := func(e *Entry, settings any) Outcome {
		out, err := scene.Play(context.Background(), Play{Entry: e, Settings: settings, Level: env.LevelOnline, Seed: 2, Epochs: 600})
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		out.Learned.Decision = 0
		return out.Learned
	}
	for _, x := range []struct {
		name  string
		plain func(k Known) (env.Agent, error)
		keys  map[string]any // another value of each setting
	}{
		{"certainty", func(k Known) (env.Agent, error) {
			s := forecast.CertaintySettings()
			return agent(forecast.New(k.Terms, &s))
		}, map[string]any{"optimism": 0.}},
		{"q-whittle", func(k Known) (env.Agent, error) { return agent(baselines.NewQWhittle(k.Terms, nil, k.Rand)) },
			map[string]any{"ages": 5, "fast": .1, "slow": .9, "explore": .5}},
		{"salmut", func(k Known) (env.Agent, error) { return agent(baselines.NewSalmut(k.Terms, nil, k.Rand)) },
			map[string]any{"ages": 5, "kappa": 9., "critic": .1, "actor": .1, "dual": .5}},
		{"relaxed", func(k Known) (env.Agent, error) { return agent(baselines.NewRelaxedControl(k.Instance, nil)) },
			map[string]any{"price": 90., "first": 3., "hold": 200., "power": .6, "exact": true}},
		{"miniflux", func(k Known) (env.Agent, error) { return agent(baselines.NewEntryFrequency(k.Terms, nil, false)) },
			map[string]any{"factor": 9., "min": 20., "max": 4.}},
		{"nutch", func(k Known) (env.Agent, error) { return agent(baselines.NewNutch(k.Terms, nil, false)) },
			map[string]any{"shrink": .9, "grow": .01, "min": 9., "max": 3.}},
		{"stormcrawler", func(k Known) (env.Agent, error) { return agent(baselines.NewStormCrawler(k.Terms, nil, false)) },
			map[string]any{"shrink": .9, "grow": .01, "min": 20., "max": 24.}},
	} {
		e := find(t, x.name)[0]
		usual := earn(e, nil)
		plain := *e
		plain.Settings, plain.New = nil, func(k Known, _ any) (env.Agent, error) { return x.plain(k) }
		if got := earn(&plain, nil); got != usual {
			t.Errorf("%s with its defaults %+v, without settings %+v", x.name, usual, got)
		}
		if len(x.keys) != len(e.Keys(env.LevelOnline)) {
			t.Errorf("%s has the settings %v", x.name, e.Keys(env.LevelOnline))
		}
		for key, v := range x.keys {
			s, err := e.Configure(env.LevelOnline, map[string]any{key: v})
			if err != nil {
				t.Fatal(err)
			}
			if earn(e, s) == usual {
				t.Errorf("%s: %s = %v changes nothing", x.name, key, v)
			}
		}
		for key := range x.keys {
			if key == "exact" {
				continue
			}
			if _, err := e.Configure(env.LevelOnline, map[string]any{key: -1}); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %s = -1: %v", x.name, key, err)
			}
		}
	}
}
