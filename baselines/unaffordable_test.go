package baselines

import (
	"math"
	"slices"
	"testing"

	"ephemera/baselines/index"
	"ephemera/env"
)

func TestUnaffordable(t *testing.T) {
	in := env.Paper(1)
	dear := env.NewSource("dear", 2000, 0.1, 1)
	dear.Cost = 1.2
	with := in
	with.Sources = append(slices.Clone(in.Sources), dear)
	a, b := index.Relax(in), index.Relax(with)
	if a.Bound != b.Bound || a.Price != b.Price || !slices.Equal(append(a.Frequency, 0), b.Frequency) ||
		b.Frequency[4] != 0 || b.Short[4] != index.Never {
		t.Errorf("%v with the dear source, crawled %v times per epoch; %v without", b, b.Frequency[4], a)
	}
	// Nor do the policies that are not held to it at each epoch look at it, or
	// the exact optimum at its ages.
	earn := func(in env.Instance) float64 {
		return play(t, mean(t, in, true), must(NewRelaxedControl(in, RelaxedOptions{})), 0, 500).reward
	}
	if x, y := earn(in), earn(with); x != y {
		t.Errorf("the relaxed control earns %v with the dear source, %v without", y, x)
	}
	if x, y := in.Terms().Round(), with.Terms().Round(); x != y {
		t.Errorf("a round takes %v epochs with the dear source, %v without", y, x)
	}
	few, fewWith := in, in
	few.Sources = in.Sources[:3]
	fewWith.Sources = append(slices.Clone(few.Sources), dear)
	x := must(SolveOptimum(few))
	y, err := SolveOptimum(fewWith)
	if err != nil || y.States != x.States || math.Abs(y.Lower-x.Lower) > 1e-6*x.Lower {
		t.Errorf("optimum %v of %d states with the dear source, %v of %d without: %v",
			y.Lower, y.States, x.Lower, x.States, err)
	}
	with.Budget, in.Budget = 1.2, 1.2
	if a, b := index.Relax(in), index.Relax(with); !(b.Bound > a.Bound*1.1) || b.Frequency[4] == 0 {
		t.Errorf("%v with the dear source within the budget; %v without", b, a)
	}
}
