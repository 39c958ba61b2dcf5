package estimate

import (
	"math"
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// The doubt about a decay rate is how far off it is, also where a source has
// shown nothing of its own and leans on what a few young items of the others
// say.
func TestDoubt(t *testing.T) {
	const worlds = 400
	var known, unknown float64
	for k := range worlds {
		r := stream.New(uint64(k), stream.Policy)
		c := firstDecay * math.Exp(.5*r.NormFloat64())
		var e Estimates
		e.Init(3, 0, 0)
		for n := 1; n <= 4*poolEvery; n++ {
			source := 0
			if n%4 == 0 {
				source = 1
			}
			cr := env.Crawled{Source: source, Age: 2}
			for range 3 {
				age := 2 * r.Float64()
				it := env.Item{Age: age, Interest: math.Exp(.7*r.NormFloat64() - c*age)}
				cr.Items = append(cr.Items, it)
				cr.Interest += it.Interest
			}
			e.Add(cr)
			e.Pool(n)
		}
		z := func(i int) float64 {
			_, got := e.Source(i)
			return math.Log(got/c) / e.Doubt(i)
		}
		known += z(0) * z(0) / worlds
		unknown += z(2) * z(2) / worlds
	}
	for what, v := range map[string]float64{"with items": known, "without": unknown} {
		if v := math.Sqrt(v); v < .5 || v > 1.5 {
			t.Errorf("source %s: decay rates are off by %.2f of the doubt, root of the mean square; want about 1", what, v)
		} else {
			t.Logf("source %s: %.2f", what, v)
		}
	}
}
