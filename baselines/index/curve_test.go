package index

import (
	"math"
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// FirstAge is never late, and mostly exact: at any charge, at low ones, at those
// near the limit, and at those that are reached exactly or just not.
func TestFirstAge(t *testing.T) {
	r := stream.New(2, stream.Test)
	const cases = 40_000
	var exact, plain float64
	for range cases {
		s := env.NewSource("", math.Exp(5*r.NormFloat64()), math.Exp(3*r.NormFloat64()-4), 1)
		if r.Intn(3) == 0 {
			s.Window = 10 * r.Float64() / s.Decay
		}
		c := NewCurve(s, []Dynamics{MeanDynamics, ItemDynamics}[r.Intn(2)])
		ratio, kind := r.Float64(), r.Intn(4)
		switch kind {
		case 1:
			ratio = math.Exp(-30 * ratio)
		case 2:
			ratio = 1 - math.Exp(-40*ratio)
		case 3:
			ratio = c.Index(1+r.Intn(50)) / c.Top * (1 + float64(r.Intn(3)-1)*1e-16)
		}
		charge := ratio * c.Top
		got, want := c.FirstAge(charge), FirstAge(0, Never, func(age int) bool { return c.Index(age) >= charge })
		if got < 1 || got > want {
			t.Fatalf("%+v, charge %v: first age %d; it is %d", s, charge, got, want)
		}
		if kind == 0 {
			plain++
			if got == want {
				exact++
			}
		}
	}
	if exact < .99*plain {
		t.Errorf("FirstAge is exact in %v of %v plain cases; want nearly all", exact, plain)
	}
}
