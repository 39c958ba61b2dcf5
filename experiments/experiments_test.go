package experiments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/learner"
	"ephemera/learner/forecast"
)

// scripted crawls what its script says.
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
		t.Errorf("observed %d epochs, want 4", p.updates)
	}
}

// TestWaitingIsCharged: under delay a run costs what its items wait, found or not. Who finds
// nothing is not cheaper than who finds all in the end.
func TestWaitingIsCharged(t *testing.T) {
	const epochs = 50
	in := env.Paper(4).WithObjective(env.Delay, time.Hour)
	var rate float64
	for _, s := range in.Sources {
		rate += s.Rate * s.Interest
	}
	for _, tt := range []struct {
		name  string
		world func() (env.World, error)
		close float64 // figures of the mean dynamics are exact, others have chance in them
	}{
		{"mean", func() (env.World, error) { return env.NewMean(in, false) }, 1e-9},
		{"poisson", func() (env.World, error) { return env.NewPoisson(in, 1, env.PoissonOptions{}) }, .05},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, c := range []struct {
				found int // the epoch in which all are found
				want  float64
			}{
				// What is published in an epoch has waited for s²/2 epochs after s. At the
				// beginning that is ½.
				{epochs, ((epochs+1)*(epochs+1) - 1) / 2.},
				{epochs - 1, epochs * epochs / 2.},
				{epochs/2 - 1, epochs*epochs/8. + (epochs/2+1)*(epochs/2+1)/2. - .5},
			} {
				p := &scripted{plan: make([][]int, epochs+1)}
				p.plan[c.found] = []int{0, 1, 2, 3}
				w, err := tt.world()
				if err != nil {
					t.Fatal(err)
				}
				o, err := Loop(w, env.NewAgent[env.Online](p), epochs, nil)
				if err != nil {
					t.Fatal(err)
				}
				if want := -rate * c.want / epochs; !(math.Abs(o.Reward/want-1) < tt.close) {
					t.Errorf("all found in epoch %d of %d: reward %v; want %v", c.found, epochs, o.Reward, want)
				}
			}
		})
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

// recordsOf returns the contenders of a comparison with their records.
func recordsOf(t *testing.T, scenes []Scene, level env.Level, entries []*Entry, epochs, seeds int) (all []Contender) {
	t.Helper()
	for _, e := range entries {
		c := Contender{Name: e.Name, Learns: e.Learns}
		for _, s := range scenes {
			for seed := range seeds {
				r, err := s.Play(context.Background(), Play{Entry: e, Level: level, Seed: uint64(seed), Epochs: epochs})
				if err != nil {
					t.Fatalf("%s on %s, %s: %v", e.Name, s.Instance.ID, level, err)
				}
				c.Records = append(c.Records, r)
			}
		}
		all = append(all, c)
	}
	return all
}

// Every policy and learner of the catalogue runs wherever it says it applies.
func TestCatalogueRuns(t *testing.T) {
	for _, tt := range []struct {
		name  string
		scene Scene
	}{
		{"mean", MeanScene(env.Paper(1))},
		{"poisson", PoissonScene(env.Paper(2), env.MarksPerItem)},
		{"mixed", PoissonScene(env.Mixed(6, 3, 1), env.MarksConstant)},
	} {
		for _, level := range []env.Level{env.LevelModel, env.LevelObserved, env.LevelOnline} {
			if level == env.LevelOnline && tt.name == "mean" {
				continue
			}
			t.Run(tt.name+"/"+string(level), func(t *testing.T) {
				var all []*Entry
				for _, e := range Catalogue() {
					if e.WhyNot(tt.scene, level) == "" && e.Name != "stochastic-learned" {
						all = append(all, e)
					}
				}
				records := recordsOf(t, []Scene{tt.scene}, level, all, 60, 1)
				for _, r := range Compare(records, level, 1, 0).Results {
					if !(r.Reward > 0) || r.OfWhittle.IsZero() {
						t.Errorf("%s earned %v; want more than 0, and a share of Whittle", r.Policy, r.Reward)
					}
				}
			})
		}
	}
}

// recording returns a recording of three sources, twice as many days and 20 hours.
func recording(t *testing.T, days int) string {
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
	return path
}

// recorded is the scene of a recording of three sources, half of which is
// measured: so many days and ten hours.
func recorded(t *testing.T, days int) Scene {
	t.Helper()
	w := World{Trace: recording(t, days), Epoch: "1h", Decay: .2, Split: .5}
	scene, err := w.Open(context.Background(), env.Instance{Budget: 1}, env.LevelModel)
	if err != nil {
		t.Fatal(err)
	}
	return scene
}

// The bound of a recording is of the epochs that are played. Here one source publishes in each
// epoch, and who sees which one earns all of it. A run that is measured over two numbers of epochs
// has no bound.
func TestBoundOfARecording(t *testing.T) {
	s := recorded(t, 3)
	for _, x := range []struct {
		name               string
		epochs, evaluation int
		least, most        float64 // share of the bound; 0 for none
	}{
		{"myopic", 0, 0, 1, 1}, {"myopic", 0, -1, 1, 1}, {"myopic", 5, 0, 1, 1}, {"myopic", 5, 5, 1, 1},
		{"myopic", 5, 1 << 20, 0, 0}, {"whittle", 0, 5, 0, 0}, {"round-robin", 0, 0, .5, .999},
	} {
		play := Play{Entry: find(t, x.name)[0], Level: env.LevelObserved, Epochs: x.epochs, Evaluation: x.evaluation}
		rec, err := s.Play(context.Background(), play)
		if err != nil {
			t.Fatal(err)
		}
		share := rec.Learning.OfBound.Value()
		if rec.Bound.IsZero() != (x.most == 0) || x.most > 0 && !(share > x.least-1e-9 && share < x.most+1e-9) {
			t.Errorf("%s in %d epochs and %d: %v of %v; want %v to %v",
				x.name, x.epochs, x.evaluation, share, rec.Bound.Value(), x.least, x.most)
		}
	}
	// In epochs of two hours two sources publish in each, so that decay and budget count.
	w := World{Trace: recording(t, 3), Epoch: "2h", Decay: .2, Split: .25}
	s = must(w.Open(context.Background(), env.Instance{Budget: 1}, env.LevelModel))
	rec := must(env.ReadRecording(context.Background(), w.Trace))
	arrivals := must(rec.Arrivals(env.ReplayOptions{Epoch: 2 * time.Hour, Decay: .2, Split: .25}))
	want, _ := index.Foresight(arrivals, .4, []float64{1, 1, 1}, 1, s.Epochs)
	if got := s.foresight(s.Epochs); got != want {
		t.Errorf("in epochs of two hours the bound is %v, want %v", got, want)
	}
}

// A constructor is given what the world is: its level and the law of its marks.
func TestKnown(t *testing.T) {
	var got Inputs
	e := &Entry{Name: "asking", New: func(k Inputs, _ any) (env.Agent, learner.Learner, error) {
		got = k
		return env.NewAgent[env.Online](baselines.NewRoundRobin(k.Terms)), nil, nil
	}}
	s := PoissonScene(env.Paper(2), env.MarksPerItem)
	play := Play{Entry: e, Level: env.LevelObserved, Seed: 3, Epochs: 5}
	if _, err := s.Play(context.Background(), play); err != nil {
		t.Fatal(err)
	}
	if got.Level != env.LevelObserved || got.Marks != env.MarksPerItem ||
		got.Instance.ID != s.Instance.ID || got.Terms.Budget != 2 {
		t.Errorf("given %+v", got)
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
		{"items, online", PoissonScene(in, env.MarksConstant), env.LevelOnline, true},
		{"items, observed", PoissonScene(in, env.MarksConstant), env.LevelObserved, false},
		{"items with a window", PoissonScene(windowed, env.MarksConstant), env.LevelModel, true},
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
	scene := PoissonScene(in, env.MarksPerItem)
	earn := func(e *Entry, settings any) result.Outcome {
		out, err := scene.Play(context.Background(),
			Play{Entry: e, Settings: settings, Level: env.LevelOnline, Seed: 2, Epochs: 600})
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		return out.Learned.Outcome
	}
	for _, x := range []struct {
		name  string
		plain func(k Inputs) (env.Agent, learner.Learner, error)
		keys  map[string]any // another value of each setting
	}{
		{"certainty", func(k Inputs) (env.Agent, learner.Learner, error) {
			s := forecast.CertaintySettings()
			return agent(forecast.New(k.Terms, &s))
		}, map[string]any{"optimism": 0.}},
		{"q-whittle", func(k Inputs) (env.Agent, learner.Learner, error) {
			return agent(baselines.NewQWhittle(k.Terms, baselines.DefaultQWhittle(), k.Rand))
		},
			map[string]any{"ages": 5, "fast": .1, "slow": .9, "explore": .5}},
		{"salmut", func(k Inputs) (env.Agent, learner.Learner, error) {
			return agent(baselines.NewSalmut(k.Terms, baselines.DefaultSalmut(), k.Rand))
		},
			map[string]any{"ages": 5, "kappa": 9., "critic": .1, "actor": .1, "dual": .5}},
		{"relaxed", func(k Inputs) (env.Agent, learner.Learner, error) {
			return agent(baselines.NewRelaxedControl(k.Instance, baselines.RelaxedOptions{}))
		},
			map[string]any{"price": 90., "first": 3., "exact": true}},
	} {
		e := find(t, x.name)[0]
		usual := earn(e, nil)
		plain := *e
		plain.Settings, plain.New = nil, func(k Inputs, _ any) (env.Agent, learner.Learner, error) { return x.plain(k) }
		if got := earn(&plain, nil); got != usual {
			t.Errorf("%s with its defaults %+v, without settings %+v", x.name, usual, got)
		}
		if len(x.keys) != len(e.Keys(env.LevelOnline)) && x.name != "certainty" { // whose others are those of forecast
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
			_, err := e.Configure(env.LevelOnline, map[string]any{key: -1})
			if err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %s = -1: %v", x.name, key, err)
			}
		}
	}
}

// A learner that learns the worth of a crawl from what it brings does not run where no crawl
// shows that. One that learns from items is given the objective, and rules run as they are.
func TestWhoTakesObjectives(t *testing.T) {
	whyNot := func(name, objective, law string) string {
		t.Helper()
		o, err := env.ParseObjective(objective)
		e, errFind := Find(name)
		if err != nil || errFind != nil {
			t.Fatal(err, errFind)
		}
		in := env.Lognormal(4, 1, 1)
		if law != "" {
			in = in.WithLaw(law, 1)
		}
		return e.WhyNot(PoissonScene(in.WithObjective(o, time.Hour), env.MarksConstant), e.FirstLevel())
	}
	for _, c := range []struct{ name, objective, law, why string }{
		{"forecast", "delay", "", ""},
		{"certainty", "delay:2", "", ""},
		{"forecast", "deadline:24h", "", ""},
		{"forecast", "", "delay", "has to be given the objective"},
		{"certainty", "", "deadline", "has to be given the objective"},
		{"forecast", "freshness", "", "whether a page has changed"},
		{"lspe", "interest:4h", "", ""},
		{"lspe", "deadline:24h", "", ""},
		{"lspe", "delay", "", "no crawl shows"},
		{"q-whittle", "delay", "", "no crawl shows"},
		{"nutch", "delay", "", ""},
		{"nutch", "freshness", "", "whether a page has changed"},
		{"round-robin", "freshness", "", ""},
	} {
		if got := whyNot(c.name, c.objective, c.law); (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
			t.Errorf("%s, objective %q, law %q: %q; want %q", c.name, c.objective, c.law, got, c.why)
		}
	}
}

// TestFarDate: where one item of a recording is dated decades before the others, nearly all epochs
// would be empty, which is said.
func TestFarDate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.csv")
	text := "source,published_unix\na,0\n"
	for h := range 240 {
		text += fmt.Sprintf("%c,%d\n", 'a'+h%3, 1_600_000_000+3600*h)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	w := World{Trace: path, Epoch: "1h", Decay: .2, Split: .5}
	_, err := w.Open(context.Background(), env.Instance{Budget: 1}, env.LevelModel)
	want := path + ": items are dated from 1970-01-01 to 2020-09-23, and nearly all of them from 2020-09-13 to"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v; want %q", err, want)
	}
}

// TestShortBurst: a log of three days, of which most items came at once, is played.
func TestShortBurst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.csv")
	text := "source,published_unix\n"
	for k := range 100 {
		text += fmt.Sprintf("%c,%d\n", 'a'+k%3, 1_600_000_000+k%91+max(0, k-90)*8*3600)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	w := World{Trace: path, Epoch: "1h", Decay: .2, Split: .5}
	if _, err := w.Open(context.Background(), env.Instance{Budget: 1}, env.LevelOnline); err != nil {
		t.Error(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
