package env

import (
	"fmt"
	"math"
)

// Source is one source of ephemeral content.
type Source struct {
	Name     string  `toml:"name"`
	Rate     float64 `toml:"rate"`     // λ, items per epoch; 0 or more
	Decay    float64 `toml:"decay"`    // c, 1/epoch; more than 0
	Interest float64 `toml:"interest"` // ξ̄, mean initial interest of an item; 0 or more
	Window   float64 `toml:"window"`   // M, epochs after which an item is dropped; +Inf for never
	Cost     float64 `toml:"cost"`     // C, budget units per crawl; more than 0
}

// NewSource returns a source without a window whose crawls cost 1.
func NewSource(name string, rate, decay, interest float64) Source {
	return Source{Name: name, Rate: rate, Decay: decay, Interest: interest, Window: math.Inf(1), Cost: 1}
}

// Factor returns α = e^(−c), the share of interest that is left after one epoch.
func (s Source) Factor() float64 { return math.Exp(-s.Decay) }

// Gain returns u, the mean interest that a source gains in an epoch.
//
//	u = (λ ξ̄ / c)(1 − α)(1 − α^M)
//
// This is (1) of TCNS with the window of Allerton, section II; M = ∞ gives TCNS.
func (s Source) Gain() float64 {
	return s.Rate * s.Interest / s.Decay * -math.Expm1(-s.Decay) * s.windowShare()
}

// Ceiling returns u* = u/(1 − α), the limit of the state of a source that is
// never crawled.
func (s Source) Ceiling() float64 {
	// (1 − α) cancels, which keeps the ceiling exact for small decay rates.
	return s.Rate * s.Interest / s.Decay * s.windowShare()
}

// windowShare returns 1 − α^M.
func (s Source) windowShare() float64 {
	if math.IsInf(s.Window, 1) {
		return 1
	}
	return -math.Expm1(-s.Decay * s.Window)
}

// Decayed returns ∫₀ˢ e^(−ca) da = (1 − e^(−cs))/c: what an item an epoch, each of
// interest 1, leaves after s epochs.
func Decayed(c, s float64) float64 { return -math.Expm1(-c*s) / c }

// MeanState returns the state under the mean dynamics (2)-(3) of both papers,
// age epochs after a crawl:
//
//	x = u* (1 − α^age)
func (s Source) MeanState(age int) float64 {
	return s.Ceiling() * -math.Expm1(-s.Decay*float64(age))
}

// ExactMean returns the exact mean interest that waits age epochs after a
// crawl when items older than the window are dropped:
//
//	(λ ξ̄ / c)(1 − α^min(age, M))
//
// It differs from MeanState when the window is finite: the papers' mean
// dynamics spread the loss through the window over all ages, while in truth
// nothing old is left to drop until the window has passed. Both reach the same
// ceiling.
func (s Source) ExactMean(age int) float64 {
	k := math.Min(float64(age), s.Window)
	return s.Rate * s.Interest / s.Decay * -math.Expm1(-s.Decay*k)
}

// maxCeiling bounds u*, so that rewards can be added up and squared.
const maxCeiling = 1e100

// Validate reports the first field that is out of its range.
func (s Source) Validate() error {
	switch {
	case !(s.Rate >= 0) || math.IsInf(s.Rate, 0):
		return fmt.Errorf("rate is %v; allowed is a finite number of items per epoch, 0 or more", s.Rate)
	case !(s.Decay > 0) || math.IsInf(s.Decay, 0):
		return fmt.Errorf("decay is %v; allowed is a finite rate per epoch above 0", s.Decay)
	case !(s.Interest >= 0) || math.IsInf(s.Interest, 0):
		return fmt.Errorf("interest is %v; allowed is a finite number, 0 or more", s.Interest)
	case !(s.Window > 0):
		return fmt.Errorf("window is %v; allowed is a number of epochs above 0, or inf", s.Window)
	case !(s.Cost > 0) || math.IsInf(s.Cost, 0):
		return fmt.Errorf("cost is %v; allowed is a finite number of budget units above 0", s.Cost)
	case !(s.Ceiling() <= maxCeiling):
		return fmt.Errorf("rate × interest / decay is %v; allowed is at most %v", s.Ceiling(), maxCeiling)
	}
	return nil
}
