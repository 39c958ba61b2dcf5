package baselines

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// karp returns the optimum by the greatest cycle mean of the graph of joint
// ages up to a cap (Karp 1978), with every set within the budget as an action.
func karp(in env.Instance, cap int) float64 {
	n := len(in.Sources)
	states := 1
	for range n {
		states *= cap
	}
	type arc struct {
		from, to int
		reward   float64
	}
	var arcs []arc
	for s := range states {
		for set := range 1 << n {
			to, reward, cost := 0, 0.0, 0.0
			for i, rest, step := 0, s, 1; i < n; i, rest, step = i+1, rest/cap, step*cap {
				age := rest%cap + 1
				if set>>i&1 == 1 {
					reward += in.Sources[i].MeanState(age)
					cost += in.Sources[i].Cost
				} else {
					to += step * min(age, cap-1)
				}
			}
			if env.Fits(cost, in.Budget) {
				arcs = append(arcs, arc{s, to, reward})
			}
		}
	}
	// d[k][s]: the most that k steps from state 0 can earn that end in s.
	d := make([][]float64, states+1)
	for k := range d {
		d[k] = make([]float64, states)
		for s := range d[k] {
			d[k][s] = math.Inf(-1)
		}
	}
	d[0][0] = 0
	for k := range states {
		for _, a := range arcs {
			d[k+1][a.to] = math.Max(d[k+1][a.to], d[k][a.from]+a.reward)
		}
	}
	best := math.Inf(-1)
	for s, last := range d[states] {
		if math.IsInf(last, -1) {
			continue
		}
		mean := math.Inf(1)
		for k := range states {
			if !math.IsInf(d[k][s], -1) {
				mean = math.Min(mean, (last-d[k][s])/float64(states-k))
			}
		}
		best = math.Max(best, mean)
	}
	return best
}

func TestOptimumAgainstKarp(t *testing.T) {
	r := stream.New(3, stream.Test)
	for k := range 30 {
		in := env.Instance{ID: fmt.Sprint(k)}
		n, cap := 2, 14
		if k%4 == 0 {
			n, cap = 3, 6
		}
		for range n {
			s := env.NewSource("", 1+100*r.Float64(), 0.5+1.5*r.Float64(), 1)
			s.Cost = []float64{1, 1, 1.5, 0.5}[r.Intn(4)]
			if k >= 25 { // a crawl too early can do harm
				s.Law = env.LawHump
			}
			in.Sources = append(in.Sources, s)
		}
		in.Budget = in.Sources[0].Cost
		for _, s := range in.Sources {
			in.Budget = math.Min(in.Budget, s.Cost)
		}
		in.Budget += r.Float64() * (in.TotalCost() - in.Budget) * 0.8
		o, err := solveOptimum(in, but(usualLimits, func(l *limits) { l.truncation = 1e-6 }))
		if err != nil {
			t.Fatal(err)
		}
		// Karp's caps cost up to their own truncation.
		var slack float64
		for _, s := range in.Sources {
			slack += (s.Ceiling() - s.MeanState(cap)) / float64(cap)
		}
		if want := karp(in, cap); !(want <= o.Upper+1e-9 && o.Lower <= want+slack+1e-9) {
			t.Errorf("%+v: optimum between %v and %v, Karp's cycle %v", in, o.Lower, o.Upper, want)
		}
	}
}

// Exact optimum ≥ every policy, bound ≥ exact optimum, on 200 random instances.
func TestOptimumAboveEveryPolicy(t *testing.T) {
	envtest.Alone(t)
	r := stream.New(4, stream.Test)
	const epochs = 400
	for k := range 200 {
		in := env.Instance{ID: fmt.Sprint(k)}
		for range 2 + r.Intn(2) {
			s := env.NewSource("", 300*r.Float64(), 0.4+1.2*r.Float64(), r.Float64())
			if k%2 == 1 {
				s.Cost = []float64{0.5, 1, 1.7}[r.Intn(3)]
				s.Window = []float64{2, 4.5, math.Inf(1)}[r.Intn(3)]
			}
			in.Sources = append(in.Sources, s)
		}
		in.Budget = float64(1 + r.Intn(len(in.Sources)))
		if k%2 == 1 {
			in.Budget = 1.7 + r.Float64()*math.Max(0, in.TotalCost()-1.7)
		}
		if in.Validate() != nil {
			in.Budget = in.TotalCost()
		}
		in = in.MeanDynamics()
		o, err := solveOptimum(in, but(usualLimits, func(l *limits) { l.truncation, l.gap = 1e-4, 1e-6 }))
		if err != nil {
			t.Fatalf("%+v: %v", in, err)
		}
		bound, _ := index.Bound(in)
		if o.Lower > bound*(1+1e-12) {
			t.Errorf("%+v: the optimum is at least %v, above the relaxed bound %v", in, o.Lower, bound)
		}
		if o.Upper-o.Lower > 1.011e-4*bound {
			t.Errorf("%+v: the optimum is only known to be between %v and %v", in, o.Lower, o.Upper)
		}
		best := 0.0
		for _, tt := range []struct {
			name   string
			policy env.Policy[env.Model]
		}{
			{"whittle", NewWhittle(in)},
			{"lagrangian", NewLagrangian(in)},
			{"greedy", NewGreedy(in)},
			{"myopic", NewMyopic(in)},
			{"best", NewBestSource(in)},
			{"optimum", o},
		} {
			// From x = u, the least of all states, even a finite run earns no
			// more per epoch than the optimum.
			got := run(t, in, tt.policy, epochs)
			if got > o.Upper*(1+1e-12) {
				t.Errorf("%+v: %s earns %v, above the optimum, %v", in, tt.name, got, o.Upper)
			}
			if tt.name != "optimum" {
				best = math.Max(best, got)
			}
		}
		if got := run(t, in, NewRoundRobin(in.Terms()), epochs); got > o.Upper*(1+1e-12) {
			t.Errorf("%+v: round robin earns %v, above the optimum, %v", in, got, o.Upper)
		}
		// The policy earns its lower bound once it has entered its cycle.
		var top float64
		for _, s := range in.Sources {
			top += s.Ceiling()
		}
		long := run(t, in, o, 20*epochs)
		if long < o.Lower-60*top/(20*epochs) {
			t.Errorf("%+v: the optimal policy earns %v, less than %v", in, long, o.Lower)
		}
	}
}

// An estimate of its time decides whether it runs: at once by a few sweeps, and
// after the first one, if the relaxed bound is not reached, by many.
func TestOptimumRefusesLongWork(t *testing.T) {
	in := env.Paper(2)
	small := but(usualLimits, func(l *limits) { l.truncation = 1e-3 })
	o, err := solveOptimum(in, small)
	if err != nil || o.Sweeps < 2 {
		t.Fatalf("%d sweeps, %v; the test wants an instance of more than one", o.Sweeps, err)
	}
	pairs := float64(o.States) * float64(len(o.sets))
	for _, c := range []struct {
		in     env.Instance
		work   float64
		sweeps int
		want   string
	}{
		{env.Lognormal(100, 5, 1), 1e30, 0, "100 sources; allowed are 16"},
		{in, 9.9 * pairs, 0, "allowed is 10 sweeps"},
		{in, 10.1 * pairs, 1, "allowed is 10 sweeps"},
		{in, 299 * pairs, 1, "allowed is 299 sweeps"},
		{in, 301 * pairs, o.Sweeps, ""},
	} {
		small.work = c.work
		got, err := solveOptimum(c.in, small)
		if got.Sweeps != c.sweeps || (err == nil) != (c.want == "") ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("work of %.4g allowed: %v after %d sweeps; want %q after %d",
				c.work, err, got.Sweeps, c.want, c.sweeps)
		}
	}
}
