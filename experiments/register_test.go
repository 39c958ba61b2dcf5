package experiments

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/features"
	"ephemera/learner"
)

// lossy is a world of one's own: that of the mean dynamics, but what is crawled
// in every tenth epoch is lost on its way.
type lossy struct{ *env.Mean }

func (w lossy) Step(crawl []int) ([]env.Crawled, error) {
	lost := w.View().Epoch%10 == 9
	crawls, err := w.Mean.Step(crawl)
	for i := range crawls {
		if lost {
			crawls[i].Interest = 0
		}
	}
	return crawls, err
}

// linear is a feature map of one's own: φ(x) = x.
type linear int

func (m linear) Len() int                      { return int(m) }
func (m linear) To(dst, x []float64) []float64 { copy(dst, x); return dst }

// What is registered is run by its name: a policy, a world, a family and a feature
// map. A learner is registered in docs/own.
func TestRegister(t *testing.T) {
	before := policies
	t.Cleanup(func() { policies = before })
	Register(Entry{
		Name:  "even",
		About: "the source that has waited longest",
		Sees:  TrackAge,
		New:   policy(func(k Inputs) env.Policy[env.Online] { return baselines.NewRoundRobin(k.Terms) }),
	})
	RegisterWorld("lossy", func(in env.Instance, level env.Level) (Scene, error) {
		return Scene{Instance: in, Open: func(_ uint64, _ env.Level, overrun bool) (env.World, error) {
			w, err := env.NewMean(in, overrun)
			return lossy{w}, err
		}}, nil
	})
	env.RegisterFamily("twins", func(n int, budget float64, _ uint64) env.Instance {
		in := env.Instance{ID: "twins", Budget: budget}
		for range n {
			in.Sources = append(in.Sources, env.NewSource("", 1, .1, 1))
		}
		return in
	})
	features.Register("linear", func(ceilings []float64) features.Map { return linear(len(ceilings)) })
	reward := func(settings map[string]any) float64 {
		t.Helper()
		settings["steps"] = 1000
		rec, err := performRun(new(Engine), newRun(t, settings))
		if err != nil {
			t.Fatal(err)
		}
		return rec.Learned.Reward
	}
	whole := reward(map[string]any{AlgorithmKey: "even", "instance.name": "twins:5"})
	got := reward(map[string]any{AlgorithmKey: "round-robin", "instance.name": "twins:5"})
	if got != whole || whole == 0 {
		t.Errorf("the policy of one's own earns %v, round robin %v", whole, got)
	}
	got = reward(map[string]any{AlgorithmKey: "even", "instance.name": "twins:5", "world.kind": "lossy"})
	if got < .85*whole || got > .95*whole {
		t.Errorf("where one crawl in ten is lost it earns %v of %v", got, whole)
	}
	own := map[string]any{AlgorithmKey: "paper", "learner.features": "linear"}
	raw := map[string]any{AlgorithmKey: "paper"}
	if reward(own) == reward(raw) {
		t.Error("the feature map of one's own changes nothing")
	}
	for _, tt := range []struct {
		what  string
		wrong func()
		want  string
	}{
		{"policy", func() { Register(Entry{Name: "lspe", Sees: TrackAge}) }, "is there already"},
		{"policy that sees who knows what", func() { Register(Entry{Name: "mute"}) }, "neither Levels nor Sees"},
		{"learner of no level", func() { learner.Register(learner.Kind{Name: "mute"}) }, "has no Levels"},
		{"world", func() { RegisterWorld("mean", nil) }, "is there already"},
		{"family", func() { env.RegisterFamily("twins", nil) }, "is there already"},
		{"feature map", func() { features.Register("linear", nil) }, "is there already"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tt.want) {
					t.Errorf("panic %q; want %q", got, tt.want)
				}
			}()
			tt.wrong()
		})
	}
}

// TestVersion: what a learner or policy of another version did is not taken for what it does.
func TestVersion(t *testing.T) {
	version := 1
	of := func(env.Level) int { return version }
	policiesBefore, kindsBefore := policies, learner.Kinds
	t.Cleanup(func() { policies, learner.Kinds = policiesBefore, kindsBefore })
	Register(Entry{
		Name: "even", Sees: TrackAge, Version: of,
		New: policy(func(k Inputs) env.Policy[env.Online] { return baselines.NewRoundRobin(k.Terms) }),
	})
	kind := learner.Kinds[0]
	kind.Name, kind.Version = "own", of
	learner.Register(kind)
	b := Batch{Dir: t.TempDir(), Workers: 1}
	ran := func() int {
		var runs []Run
		for _, name := range []string{"even", "own", "whittle"} {
			runs = append(runs, newRun(t, map[string]any{AlgorithmKey: name, "steps": 10}))
		}
		done, err := new(Engine).PerformAll(t.Context(), jobsOf(t, runs...), b)
		if err != nil {
			t.Fatal(err)
		}
		return done.Ran
	}
	if first, again := ran(), ran(); first != 3 || again != 0 {
		t.Fatalf("%d runs are made, then %d; want 3 and 0", first, again)
	}
	version++
	if n := ran(); n != 2 {
		t.Errorf("of another version %d runs are made; want those of the policy and of the learner", n)
	}
}

// careless is a learner whose frozen policy goes on learning if it can.
type careless struct {
	learner.Learner
	policy  env.Policy[env.Online]
	updates int
}

func (c *careless) Select(dst []int, o *env.Online) []int      { return c.policy.Select(dst, o) }
func (c *careless) Update(crawls []env.Crawled, _ *env.Online) { c.updates += len(crawls) }
func (c *careless) Frozen() env.Agent                          { return env.NewAgent[env.Online](c) }

// TestFrozen: what is frozen observes no crawl.
func TestFrozen(t *testing.T) {
	scene := PoissonScene(env.Paper(2), env.MarksPerItem)
	c := &careless{policy: baselines.NewRoundRobin(scene.Instance.Terms())}
	play := Play{Level: env.LevelOnline, Seed: 1, Entry: &Entry{Learns: true}}
	run, err := scene.playPart(context.Background(), play, 100, c)
	if err != nil {
		t.Fatal(err)
	}
	if run.agent.Learns() || c.updates > 0 {
		t.Errorf("a frozen policy observed %d crawls; want none", c.updates)
	}
}
