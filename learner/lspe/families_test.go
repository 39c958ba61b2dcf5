package lspe

import (
	"ephemera/env"
)

// alike returns n equal sources.
func alike(n int, budget float64) env.Instance {
	in := env.Instance{ID: "alike", Budget: budget}
	for range n {
		in.Sources = append(in.Sources, env.NewSource("", 50, .2, 1))
	}
	return in
}

// dominant returns a log-normal instance in which one source publishes 10⁴
// times as much.
func dominant(n int, budget float64, seed uint64) env.Instance {
	in := env.Lognormal(n, budget, seed)
	in.Sources[n/2].Rate *= 1e4
	return in
}
