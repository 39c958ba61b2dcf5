package baselines

import (
	"math"

	"ephemera/baselines/index"
	"ephemera/env"
)

// NewLagrangian returns the Lagrangian index policy on the mean state, at the
// price that is optimal for the relaxed problem ([index.Relax]). It panics if the
// instance is not valid.
func NewLagrangian(in env.Instance) env.Policy[env.Model] {
	return newLagrangianAt(in, index.Relax(in, index.MeanDynamics).Price)
}

func newLagrangianAt(in env.Instance, price float64) env.Policy[env.Model] {
	n := len(in.Sources)
	sol, loss, gain := make([]index.Lagrange, n), make([]float64, n), make([]float64, n)
	for i, s := range in.Sources {
		sol[i], loss[i], gain[i] = index.NewLagrange(s, price), -math.Expm1(-s.Decay), s.Gain()
	}
	costs := in.Terms().Costs
	return newByIndex(in.Terms(), func(key []float64, o *env.Model) {
		for i, x := range o.Mean {
			// αx + u − x = u − (1 − α)x
			key[i] = sol[i].AtAge(x, gain[i]-loss[i]*x, o.Age(i)) / costs[i]
		}
	})
}
