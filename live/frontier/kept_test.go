package frontier

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"ephemera/learner"
)

// TestPacked: a history is the same after it was packed.
func TestPacked(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	worths := []float64{1, 0, .1, 1e100, 5e-324, math.Pi}
	for range 100 {
		h := history{
			NotBefore: r.Int64() >> r.IntN(64), Ping: r.Int64() >> r.IntN(64), Signature: r.Uint64() >> r.IntN(64),
		}
		at := time.Unix(1e9, 5e6)
		for range r.IntN(2 * mostKept) {
			at = at.Add(time.Duration(r.Int64N(1e15)))
			var found []learner.Item
			for range r.IntN(3) {
				found = append(found, learner.Item{
					Published: at.Add(-time.Duration(r.Int64N(1e15))), Worth: &worths[r.IntN(len(worths))],
				})
			}
			h.add(at, found, len(found) > 0)
		}
		if got := h.pack().unpack(); !reflect.DeepEqual(got, h) {
			t.Fatalf("%+v is, after it was packed, %+v", h, got)
		}
	}
}
