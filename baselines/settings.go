package baselines

import (
	"fmt"
	"math"
)

// The settings of the policies of this package have toml tags, which name the
// keys of commands. Constructors return an error for a setting that is out of its range.

// within reports the first figure that is not above lo and at most hi, or not
// finite.
func within(lo, hi float64, names []string, values ...float64) error {
	most := fmt.Sprintf(" and at most %v", hi)
	if math.IsInf(hi, 1) {
		most = ", and finite"
	}
	for i, v := range values {
		if !(v > lo && v <= hi) || math.IsInf(v, 0) {
			return fmt.Errorf("%s is %v; allowed is above %v%s", names[i], v, lo, most)
		}
	}
	return nil
}

// checkAges refuses a number of ages that cannot be told apart; 0 is the
// policy's own.
func checkAges(n int) error {
	if n == 0 || n >= 2 && n <= 1<<20 {
		return nil
	}
	return fmt.Errorf("ages is %d; allowed is 2 to %d, or 0 for a number by the length of a round", n, 1<<20)
}
