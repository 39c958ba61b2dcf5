// Package check holds the checks that learners make of settings and states.
package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// OneOf reports a setting that is none of those allowed.
func OneOf(name, found string, allowed ...string) error {
	if slices.Contains(allowed, found) {
		return nil
	}
	return fmt.Errorf("%s is %q; allowed are %s", name, found, strings.Join(allowed, ", "))
}

// Positive reports a setting that is not finite or not above 0.
func Positive(name string, v float64) error {
	if v > 0 && !math.IsInf(v, 1) {
		return nil
	}
	return fmt.Errorf("%s is %v; allowed is a finite number above 0", name, v)
}

// Finite reports a field that has not n finite entries.
func Finite(name string, v []float64, n int) error {
	if len(v) != n {
		return fmt.Errorf("%s has %d entries; allowed are %d", name, len(v), n)
	}
	for i, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%s has %v at place %d; allowed are finite numbers", name, x, i)
		}
	}
	return nil
}
