package index

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ephemera/env"
)

// TestPage: the index of a page at whole ages is that of its curve.
func TestPage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		change := math.Exp(rapid.Float64Range(-14, 3).Draw(t, "ln change"))
		importance := rapid.Float64Range(.01, 100).Draw(t, "importance")
		age := rapid.IntRange(1, 5000).Draw(t, "age")
		c := NewCurve(env.NewPage("", change, importance))
		got, want := Page(change, importance, float64(age)), c.Index(age)
		if math.Abs(got-want) > 1e-7*want {
			t.Fatalf("change %v, importance %v, age %d: index %v; that of the curve is %v",
				change, importance, age, got, want)
		}
	})
}
