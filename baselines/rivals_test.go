package baselines_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// online is a policy that learns from its crawls.
type online = env.Learner[env.Online]

type rival struct {
	name string
	make func(t env.Terms, r *stream.Rand) (online, error)
}

func practised(
	build func(env.Terms, baselines.Practice) online, relative bool,
) func(env.Terms, *stream.Rand) (online, error) {
	return func(t env.Terms, _ *stream.Rand) (online, error) {
		return build(t, baselines.Practice{Relative: relative}), nil
	}
}

// rivals are the learners of this package, built from the terms.
var rivals = []rival{
	{"entry frequency", practised(baselines.NewEntryFrequency, false)},
	{"entry frequency, relative", practised(baselines.NewEntryFrequency, true)},
	{"Nutch", practised(baselines.NewNutch, false)},
	{"Nutch, relative", practised(baselines.NewNutch, true)},
	{"StormCrawler", practised(baselines.NewStormCrawler, false)},
	{"StormCrawler, relative", practised(baselines.NewStormCrawler, true)},
	{"Q-learning", func(t env.Terms, r *stream.Rand) (online, error) {
		return baselines.NewQWhittle(t, baselines.DefaultQWhittle(), r)
	}},
	{"SALMUT", func(t env.Terms, r *stream.Rand) (online, error) {
		return baselines.NewSalmut(t, baselines.DefaultSalmut(), r)
	}},
}

func (r rival) new(t testing.TB, terms env.Terms, seed uint64) online {
	t.Helper()
	p, err := r.make(terms, stream.New(seed, stream.Policy))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRivalsKeepTheContract(t *testing.T) {
	for _, r := range rivals {
		for _, in := range []env.Instance{
			env.Paper(1),
			env.Paper(2),
			env.Lognormal(20, 4, 1),
			env.Mixed(12, 4.5, 2),
			env.Mixed(30, 6, 2),
		} {
			t.Run(r.name+" "+in.ID, func(t *testing.T) {
				envtest.Policy(t, in, func() env.Policy[env.Online] { return r.new(t, in.Terms(), 5) })
			})
		}
	}
}

func poisson(t testing.TB, in env.Instance, marks env.Marks) env.World {
	t.Helper()
	w, err := env.NewPoisson(in, 11, env.PoissonOptions{Items: true, Marks: marks})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// follow runs an agent, to the end of the world if epochs is 0, and returns the
// interest per epoch over all epochs and from an epoch on.
func follow(t testing.TB, w env.World, a env.Agent, epochs, from int) (all, late float64) {
	t.Helper()
	earned := envtest.Play(t, w, a, epochs)
	return stat.Mean(earned, nil), stat.Mean(earned[from:], nil)
}

func TestRivalsAgainstWhittle(t *testing.T) {
	envtest.Alone(t)
	// Shares of exact Whittle, exploration and all, and over the second half.
	type share struct{ all, late float64 }
	least := map[string][]share{
		"Q-learning": {{.97, .98}, {.94, .95}},
		"SALMUT":     {{.97, .98}, {.96, .97}},
	}
	const epochs = 5000
	for k, in := range []env.Instance{env.Paper(1), env.Lognormal(50, 10, 3)} {
		for _, marks := range []env.Marks{env.MarksConstant, env.MarksPerItem} {
			if k == 0 && marks == env.MarksConstant {
				continue
			}
			exact := env.NewAgent(baselines.NewWhittle(in))
			exactAll, exactLate := follow(t, poisson(t, in, marks), exact, epochs, epochs/2)
			for _, r := range rivals {
				want, ok := least[r.name]
				if !ok {
					continue
				}
				agent := env.NewAgent[env.Online](r.new(t, in.Terms(), 1))
				all, late := follow(t, poisson(t, in, marks), agent, epochs, epochs/2)
				all, late = all/exactAll, late/exactLate
				t.Logf("%s, %s marks, %s: %.4f, late %.4f", in.ID, marks, r.name, all, late)
				if all < want[k].all || late < want[k].late {
					t.Errorf("%s, %s marks, %s: %.4f of exact Whittle, late %.4f; want at least %v",
						in.ID, marks, r.name, all, late, want[k])
				}
			}
		}
	}
}

// recording returns a recorded trace with its fit on the first half, and a run
// of an agent through the second half. It skips where the recording is absent.
func recording(t *testing.T, name string) (fit env.Instance, terms env.Terms, run func(a env.Agent) float64) {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "data", name+".csv.gz")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs the recording: %v", err)
	}
	o := env.ReplayOptions{Epoch: time.Hour, Decay: .175, Budget: 5, Items: true}
	rec, err := env.ReadRecording(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	if fit, err = rec.Fit(o); err != nil {
		t.Fatal(err)
	}
	run = func(a env.Agent) float64 {
		w, err := env.NewReplay(rec, fit, o)
		if err != nil {
			t.Fatal(err)
		}
		all, _ := follow(t, w, a, 0, 0)
		return all
	}
	terms = fit.Terms()
	terms.Length = 3600
	return fit, terms, run
}

// No rival earns what Whittle earns with parameters fitted on the half before.
func TestRivalsOnRecordings(t *testing.T) {
	envtest.Alone(t)
	for _, name := range []string{"trace_fbmedia2016", "trace_hn"} {
		t.Run(name, func(t *testing.T) {
			fit, terms, run := recording(t, name)
			show := func(name string, a env.Agent) float64 {
				got := run(a)
				t.Logf("%-32s %12.2f", name, got)
				return got
			}
			fitted := show("whittle, fitted", env.NewAgent(baselines.NewWhittle(fit)))
			show("greedy, fitted", env.NewAgent(baselines.NewGreedy(fit)))
			show("round robin", env.NewAgent(baselines.NewRoundRobin(terms)))
			for _, r := range rivals {
				if got := show(r.name, env.NewAgent[env.Online](r.new(t, terms, 1))); got > fitted {
					t.Errorf("%s earns %.2f per epoch, fitted Whittle %.2f", r.name, got, fitted)
				}
			}
		})
	}
}
