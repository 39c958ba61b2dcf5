package baselines

import (
	"slices"
	"testing"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
)

func TestWhittlePoliciesAgree(t *testing.T) {
	for _, m := range []float64{1, 2, 3} {
		for _, in := range []env.Instance{env.Paper(m), env.Paper(m).WithObjective(env.Delay, time.Hour)} {
			a := run(t, in, NewWhittle(in), 2000)
			b := run(t, in, NewWhittleObserved(in, false), 2000)
			envtest.Near(t, "reward on "+in.ID, a, b, 1e-12)
		}
	}
}

// In the mean dynamics a state says what an age does, also where costs differ and crawls are
// packed, which earns more than the order of the index alone.
func TestPackedWhittlePoliciesAgree(t *testing.T) {
	in := env.Paper(2)
	for i := range in.Sources {
		in.Sources[i].Cost = []float64{.7, 1.1, 1.6}[i%3]
	}
	atAge := run(t, in, NewWhittlePacked(in), 2000)
	envtest.Near(t, "reward on the state", run(t, in, NewWhittlePackedObserved(in), 2000), atAge, 1e-12)
	if alone := run(t, in, NewWhittleObserved(in, false), 2000); atAge < 1.001*alone {
		t.Errorf("packed it earns %v; want more than the %v of the index alone", atAge, alone)
	}
}

// With budget to spare a source whose interest rises at first is left alone until
// H(s)/s is greatest: the relaxed optimum, which greedy does not earn.
func TestWhittleWaits(t *testing.T) {
	s := env.NewSource("", 10, .3, 1)
	s.Law = env.LawHump
	in := env.Instance{Budget: 2, Sources: []env.Source{s, s}}
	r := index.Relax(in)
	if r.Short[0] < 2 || r.Price != 0 {
		t.Fatalf("crawled every %d epochs at price %v; the test wants a wait at price 0", r.Short[0], r.Price)
	}
	epochs := 50 * r.Short[0]
	envtest.Near(t, "reward", run(t, in, NewWhittle(in), epochs), r.Bound, 1e-12)
	if got := run(t, in, NewGreedy(in), epochs); got > .8*r.Bound {
		t.Errorf("greedy earns %v of %v", got, r.Bound)
	}
}

func TestLagrangianOnTableI(t *testing.T) {
	for _, m := range []float64{1, 2, 3} {
		in := env.Paper(m)
		short, whittle := run(t, in, NewLagrangian(in), 1000), run(t, in, NewWhittle(in), 1000)
		envtest.Near(t, "reward over 1000 epochs", short, whittle, 1e-12)
		long, whittle := longRun(t, in, NewLagrangian(in), 7000, 7000), longRun(t, in, NewWhittle(in), 7000, 7000)
		envtest.Near(t, "reward in the long run", long, whittle, 1e-12)
	}
}

// Where crawls fail and hosts have a limit exact Whittle keeps the limit, and earns more than
// with the index of sources whose crawls succeed.
func TestWhittleWhereCrawlsFail(t *testing.T) {
	const epochs = 2000
	for seed := uint64(1); seed <= 3; seed++ {
		in := env.Hosts(20, 3, seed)
		for i := range in.Sources {
			in.Sources[i].Fails = []float64{0, .9}[i%2]
		}
		blind := in
		blind.Sources = slices.Clone(in.Sources)
		for i := range blind.Sources {
			blind.Sources[i].Fails = 0
		}
		open := func() env.World { return must(env.NewPoisson(in, seed, env.PoissonOptions{})) }
		w, whittle := open(), NewWhittle(in)
		hosts := w.Terms().Hosts
		for range 200 {
			crawl := whittle.Select(nil, &w.View().Model)
			for k, i := range crawl {
				if slices.ContainsFunc(crawl[:k], func(j int) bool { return hosts[i] == hosts[j] }) {
					t.Fatalf("Select returned %v at hosts %v; allowed is one crawl each", crawl, hosts)
				}
			}
			must(w.Step(crawl))
		}
		knows := play(t, open(), NewWhittle(in), 0, epochs).reward
		if not := play(t, open(), NewWhittle(blind), 0, epochs).reward; knows < 1.02*not {
			t.Errorf("seed %d: Whittle earns %v, and %v where it takes crawls to succeed", seed, knows, not)
		}
		if bound, _ := index.Bound(in); knows > bound*1.01 {
			t.Errorf("seed %d: Whittle earns %v of %v", seed, knows, bound)
		}
	}
}
