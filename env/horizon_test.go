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
				if l.ends == 0 && l.value(y, k) == 0 {
					t.Errorf("f is 0 at y = %v; set ends to the y from which on it is 0", y)
				}
				for _, later := range []float64{1, 1.5, 10} {
					if f := l.value(later*y, k); !(f >= 0 && f <= negligible*(1+1e-9)) {
						t.Errorf("shape %v: horizon is %v, and at y = %v f is %v; want at most %v",
							k, y, later*y, f, negligible)
					}
				}
			}
		})
	}
}
