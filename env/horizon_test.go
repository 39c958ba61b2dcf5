package env

import (
	"math"
	"testing"
)

// What is left of an item from the horizon of its law on is negligible, and worlds
// leave it out.
func TestHorizon(t *testing.T) {
	for _, l := range laws {
		t.Run(string(l.name), func(t *testing.T) {
			for _, k := range []float64{l.shape.above + .1, l.shape.usual, l.shape.above + 4} {
				y := l.horizon(k)
				if math.IsInf(y, 1) {
					continue // nothing is left out
				}
				for _, later := range []float64{1, 1.5, 10} {
					if f := l.value(later*y, k); !(f >= 0 && f <= negligible*(1+1e-9)) {
						t.Errorf("shape %v: at %v horizons f is %v; want at most %v", k, later, f, negligible)
					}
				}
			}
		})
	}
}
