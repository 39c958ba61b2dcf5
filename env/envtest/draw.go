package envtest

import (
	"fmt"
	"math"

	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/stream"
)

func Near(t rapid.TB, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Max(math.Max(math.Abs(got), math.Abs(want)), 1e-300)) {
		t.Errorf("%s is %.15g, want %.15g within %g", what, got, want, tol)
	}
}

func DrawInstance(t *rapid.T, least, most int, costs, windows bool) env.Instance {
	n := rapid.IntRange(least, most).Draw(t, "sources")
	in := env.Instance{ID: "drawn"}
	for range n {
		s := env.NewSource("", rapid.Float64Range(0.1, 300).Draw(t, "rate"),
			rapid.Float64Range(0.1, 2).Draw(t, "decay"), rapid.Float64Range(0.05, 2).Draw(t, "interest"))
		if costs {
			s.Cost = rapid.SampledFrom([]float64{0.5, 1, 1.3, 2}).Draw(t, "cost")
		}
		if windows && rapid.Bool().Draw(t, "windowed") {
			s.Window = rapid.Float64Range(0.5, 9).Draw(t, "window")
		}
		in.Sources = append(in.Sources, s)
	}
	in.Budget = rapid.Float64Range(in.Cheapest(), in.TotalCost()).Draw(t, "budget")
	if !costs {
		in.Budget = float64(rapid.IntRange(1, n).Draw(t, "crawls"))
	}
	return in
}

// Source returns a source with factor α, gain u and cost C.
func Source(alpha, u, cost float64) env.Source {
	c := -math.Log(alpha)
	s := env.NewSource("", u*c/(1-alpha), c, 1)
	s.Cost = cost
	return s
}

// GainVariance returns the variance of the interest that a source without a
// window gains in an epoch; under one exponential draw for all items of the
// epoch, of mean 1, it is 2 Var U + (E U)² of the sum U for constant marks.
func GainVariance(s env.Source, m env.Marks) float64 {
	v := s.Cumulant(2, 1, m) * s.Interest * s.Interest
	if m == env.MarksPerEpoch {
		u := s.Cumulant(1, 1, m) * s.Interest
		v = 2*v + u*u
	}
	return v
}

// RandomInstance returns the instance of that seed, from the whole range that is
// allowed: 1 to 60 sources, rates from 10⁻³ to 10⁴ and decays from 10⁻⁴ to 10, both
// log-uniform, interest log-normal, costs of 1 or from .3 to 3, any budget from the
// cheapest crawl to all of them, half of them whole, windows of .3 epochs and more,
// and, with others, other laws of interest and batches at some sources; and a law
// of its marks.
func RandomInstance(seed uint64, others bool) (env.Instance, env.Marks) {
	r := stream.New(seed, stream.Test)
	uniform := func(lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }
	power := func(lo, hi float64) float64 { return math.Exp(uniform(math.Log(lo), math.Log(hi))) }
	n := int(power(1, 61))
	in := env.Instance{ID: fmt.Sprint("world-", seed)}
	costs, windows, laws := r.Float64() < .5, r.Float64() < .3, r.Float64() < .5
	for range n {
		s := env.NewSource("", power(1e-3, 1e4), power(1e-4, 10), math.Exp(r.NormFloat64()))
		if costs {
			s.Cost = uniform(.3, 3)
		}
		if windows && r.Float64() < .5 {
			s.Window = power(.3, 1000)
		}
		if others && laws {
			if s.Law = []env.Law{env.LawExponential, env.LawPower, env.LawHump}[r.Intn(3)]; s.Law == env.LawPower {
				s.Shape = uniform(1.1, 3)
			}
			if r.Float64() < .3 {
				s.Batch = 1 + r.Intn(50)
			}
		}
		in.Sources = append(in.Sources, s)
	}
	least, total := in.Cheapest(), in.TotalCost()
	in.Budget = max(least, min(total, power(least, total)))
	if whole := math.Floor(in.Budget); r.Float64() < .5 && whole >= least {
		in.Budget = whole
	}
	return in, []env.Marks{env.MarksConstant, env.MarksPerItem, env.MarksPerEpoch}[r.Intn(3)]
}
