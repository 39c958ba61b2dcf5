package learner

import (
	"math"

	"ephemera/env"
	"ephemera/env/stream"
)

func lognormal(n int, budget float64, seed uint64) env.Instance {
	r := stream.New(seed, stream.Test, 1)
	in := env.Instance{ID: "lognormal", Budget: budget}
	for range n {
		in.Sources = append(in.Sources, env.NewSource("", 50*math.Exp(r.NormFloat64()), .05+r.Float64(), math.Exp(r.NormFloat64())))
	}
	return in
}

func mixed(n int, budget float64, seed uint64) env.Instance {
	in := lognormal(n, budget, seed)
	r := stream.New(seed, stream.Test, 2)
	for i := range in.Sources {
		in.Sources[i].Cost = .5 + 2.5*r.Float64()
		in.Sources[i].Window = 2 + 48*r.Float64()
	}
	return in
}

func wide(n int, budget float64, seed uint64) env.Instance {
	r := stream.New(seed, stream.Test, 3)
	in := env.Instance{ID: "wide", Budget: budget}
	for range n {
		rate := math.Pow(1-r.Float64(), -1/1.3)
		decay := .01 * math.Pow(300, r.Float64())
		interest := (r.ExpFloat64() + r.ExpFloat64()) / 2
		in.Sources = append(in.Sources, env.NewSource("", rate, decay, interest))
	}
	return in
}

func alike(n int, budget float64) env.Instance {
	in := env.Instance{ID: "equal", Budget: budget}
	for range n {
		in.Sources = append(in.Sources, env.NewSource("", 50, .2, 1))
	}
	return in
}

func dominant(n int, budget float64, seed uint64) env.Instance {
	in := lognormal(n, budget, seed)
	in.Sources[n/2].Rate *= 1e4
	return in
}
