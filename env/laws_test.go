package env_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"

	"ephemera/env"
	"ephemera/env/envtest"
)

// What the fields of each row of the table say of each other, and that docs/model.md
// has the law.
func TestTableOfLaws(t *testing.T) {
	page, err := os.ReadFile("../docs/model.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, law := range env.Laws() {
		t.Run("page/"+string(law), func(t *testing.T) {
			if !strings.Contains(string(page), fmt.Sprintf("\n| `%s` | ", law)) {
				t.Errorf("docs/model.md has no row in its table of laws that begins with | `%s` |", law)
			}
		})
		t.Run(string(law), func(t *testing.T) {
			s := env.NewSource("", 3, .4, 2)
			s.Law = law
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			if s.Harvest(0) != 0 {
				t.Errorf("H(0) is %v; want 0", s.Harvest(0))
			}
			var sum float64
			for age := 0.; age < 40; age += .25 {
				// H is the integral of its derivative, and f rises up to the bend and then falls.
				sum += quad.Fixed(s.HarvestRate, age, age+.25, 20, nil, 0)
				what := fmt.Sprintf("by integral, not value, the harvest at age %v", age+.25)
				envtest.Near(t, what, s.Harvest(age+.25), sum, 1e-11)
				if t.Failed() {
					break // all that follow are off, too
				}
				now, next := s.HarvestRate(age), s.HarvestRate(age+.25)
				if rises := age+.25 <= s.Bend(); rises && next <= now || age >= s.Bend() && next > now {
					t.Errorf("f goes from %v at age %v to %v at %v; it bends at %v", now, age, next, age+.25, s.Bend())
				}
			}
			limit := s.Harvest(math.Inf(1))
			if s.Unbounded() != math.IsInf(limit, -1) || !s.Unbounded() && !(limit >= sum) || math.IsInf(limit, 1) {
				t.Errorf("H(∞) is %v, and H(40) is %v; without bound is %v", limit, sum, s.Unbounded())
			}
			if end := s.Lifetime(); !math.IsInf(end, 1) && (s.HarvestRate(end) != 0 || s.HarvestRate(.99*end) == 0) {
				t.Errorf("f does not end at age %v", end)
			}
		})
	}
}

// A law that is not in the table is an error that lists those that are, and never
// taken for another.
func TestUnknownLaw(t *testing.T) {
	s := env.NewSource("a", 1, 1, 1)
	s.Law = "unheard-of"
	want := `law is "unheard-of"; allowed are exponential, power, `
	names := env.Laws()
	for _, name := range names[2 : len(names)-1] {
		want += string(name) + ", "
	}
	want = strings.TrimSuffix(want, ", ") + " and " + string(names[len(names)-1])
	if err := s.Validate(); err == nil || err.Error() != want {
		t.Errorf("error is %v; want %s", err, want)
	}
	defer func() {
		if got := recover(); got != "env: "+want {
			t.Errorf("panic is %v; want env: %s", got, want)
		}
	}()
	s.Harvest(1)
}
