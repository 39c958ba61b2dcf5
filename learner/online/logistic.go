package online

import (
	"math"

	"ephemera/env/stream"
)

// quantiles holds ln(v/(1 − v)) for v from 0 to 1/2 at equal distances.
var quantiles = func() (t [quantileParts + 1]float64) {
	for k := range t {
		v := float64(k) / (2 * quantileParts)
		t[k] = math.Log(v / (1 - v))
	}
	return
}()

const quantileParts = 1024

// logistic draws from the standard logistic distribution, ln(v/(1 − v)) with v
// uniform. The quantile comes from a table, linear in between; below 1/32 and
// above 31/32, where it bends, from logarithms. The distribution function is
// right to 4·10⁻⁶.
func logistic(r *stream.Rand) float64 {
	u := r.Uint64()
	// 63 bits for v in (0, 1/2), one for the sign.
	w := u >> 1
	var q float64
	if k := w >> 53; k >= quantileParts/16 {
		t := float64(w&(1<<53-1)) / (1 << 53)
		q = quantiles[k] + t*(quantiles[k+1]-quantiles[k])
	} else {
		v := (float64(w) + .5) / (1 << 64)
		q = math.Log(v / (1 - v))
	}
	return math.Float64frombits(math.Float64bits(q) ^ u<<63)
}
