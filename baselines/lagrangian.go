package baselines

import (
	"ephemera/baselines/index"
	"ephemera/env"
)

// NewLagrangian returns the Lagrangian index policy on the harvest curves, at the
// price that is optimal for the relaxed problem ([index.Relax]). It panics if the
// instance is not valid.
func NewLagrangian(in env.Instance) env.Policy[env.Model] {
	return NewByAge(in.Terms(), lagrangianAt(in, index.Relax(in).Price))
}

// lagrangianAt returns the Lagrangian index of source i at an age.
func lagrangianAt(in env.Instance, price float64) func(i, age int) float64 {
	single := make([]index.Lagrange, len(in.Sources))
	for i, s := range in.Sources {
		single[i] = index.NewLagrange(s, price)
	}
	return func(i, age int) float64 { return single[i].AtAge(age) }
}
