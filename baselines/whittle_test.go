package baselines

import (
	"testing"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
)

func TestWhittlePoliciesAgree(t *testing.T) {
	for _, m := range []float64{1, 2, 3} {
		in := env.Paper(m)
		a := run(t, in, NewWhittle(in), 2000)
		b := run(t, in, NewWhittleObserved(in, false), 2000)
		envtest.Near(t, "reward", a, b, 1e-12)
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
