package estimate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestInWeek holds the part of a week to that of math.Mod, also next to its ends.
func TestInWeek(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for k := range 100_000 {
		at := math.Round(1e9 * (2*rng.Float64() - 1))
		if k%2 > 0 {
			at = week * math.Round(at/week)
		}
		switch k % 3 {
		case 1:
			at = math.Nextafter(at, math.Inf(1))
		case 2:
			at = math.Nextafter(at, math.Inf(-1))
		}
		want := math.Mod(math.Mod(at, week)+week, week)
		if got := inWeek(at); got < 0 || got >= week || math.Abs(math.Remainder(got-want, week)) > 1e-6 {
			t.Fatalf("%v: %v, want %v", at, got, want)
		}
	}
}
