package lspe

import (
	"testing"

	"ephemera/env"
)

// TestFoundLate: where the first pass finds nothing it is repeated until something
// is found, and what was learned then is finite.
func TestFoundLate(t *testing.T) {
	in := env.Instance{Budget: 1}
	for range 5 {
		in.Sources = append(in.Sources, env.NewSource("", .01, .5, 1))
	}
	for seed := range uint64(20) {
		l := newLearner(t, in, seed, nil)
		newHarvests(in, seed).learn(l, 2000)
		for i := range in.Sources {
			if theta := l.Threshold(i); !(theta >= 1 && theta <= l.most()) {
				t.Fatalf("seed %d: threshold %v", seed, theta)
			}
		}
	}
}
