package env

import (
	"fmt"
	"math"
)

// Source is one source of ephemeral content. Law, Shape and Batch may be left
// out: items then arrive singly and fade exponentially, as in the papers.
type Source struct {
	Name     string  `toml:"name"`
	Rate     float64 `toml:"rate"`     // λ, items per epoch; 0 or more
	Decay    float64 `toml:"decay"`    // c, 1/epoch; more than 0
	Interest float64 `toml:"interest"` // ξ̄, mean initial interest of an item; 0 or more
	Window   float64 `toml:"window"`   // M, epochs after which an item is dropped; +Inf for never
	Cost     float64 `toml:"cost"`     // C, budget units per crawl; more than 0

	Law   Law     `toml:"law,omitempty"`   // how an item's interest depends on its age; empty means exponential
	Shape float64 `toml:"shape,omitempty"` // k, of a law that has one; 0 means the law's usual
	Batch int     `toml:"batch,omitempty"` // items that arrive together; 0 means 1

	// Fails is the chance that a crawl fails: it uses its part of the budget and brings nothing,
	// and what waits goes on waiting. 0 or more, at most .95.
	Fails float64 `toml:"fails,omitempty"`
	// Host names the host that the source is at; see [Instance.PerHost]. One without is at
	// a host of its own.
	Host string `toml:"host,omitempty"`

	// Of a page: the share of its changes that send a ping, and pings per epoch that no change
	// made; both 0 for a page without pings.
	Recall float64 `toml:"recall,omitempty"`
	False  float64 `toml:"false,omitempty"`
}

// NewSource returns a source without a window whose crawls cost 1.
func NewSource(name string, rate, decay, interest float64) Source {
	return Source{Name: name, Rate: rate, Decay: decay, Interest: interest, Window: math.Inf(1), Cost: 1}
}

// NewPage returns a page that changes so often per epoch, and is worth its importance per epoch
// for as long as the copy is as the page is: a source whose crawls cost 1 under the law
// [LawFreshness], with Δ for the decay and μ for the interest that it gains per epoch.
func NewPage(name string, change, importance float64) Source {
	s := NewSource(name, 1, change, importance)
	s.Law = LawFreshness
	return s
}

// scale returns λξ̄/c, interest.
func (s *Source) scale() float64 { return s.Rate * s.Interest / s.Decay }

// gathered returns λξ̄ ∫₀^age f(a) da, and 0 where nothing is published, at age +Inf too.
func (s *Source) gathered(age float64) float64 {
	if s.scale() == 0 {
		return 0
	}
	return s.scale() * s.integral(age)
}

// Harvest returns H(age), the mean interest that a crawl brings back at any
// real age, in epochs since the crawl before; items older than the window are
// dropped. It is what all else follows from:
//
//	H(s) = λ ξ̄ ∫₀^min(s, M) f(a) da
//
// It is 0 at age 0, convex up to [Source.Bend] and concave from there on. It rises with
// the age, but where items cost what they have waited ([Source.Unbounded]) it falls.
func (s Source) Harvest(age float64) float64 {
	return s.gathered(math.Min(age, s.Window))
}

// HarvestRate returns H′(age), the derivative of Harvest, interest per epoch:
//
//	H′(s) = λ ξ̄ f(s) for s < M, and 0 from the window on
func (s Source) HarvestRate(age float64) float64 {
	if age >= s.Window {
		return 0
	}
	return s.Rate * s.Interest * s.interestAt(age)
}

// MeanDynamics returns the source without a window whose harvest curve is the
// mean state of s: what a crawl of s earns under the papers' mean dynamics.
func (s Source) MeanDynamics() Source {
	s.Rate *= s.windowShare()
	s.Window = math.Inf(1)
	return s
}

// windowShare returns the share of all interest ever that an item has had
// before it is dropped; 1 − α^M for the exponential law.
func (s *Source) windowShare() float64 {
	if math.IsInf(s.Window, 1) {
		return 1
	}
	return s.integral(s.Window) / s.integral(math.Inf(1))
}

// MeanState returns the state under the papers' mean dynamics, age epochs
// after a crawl. With H∞ the harvest curve without a window:
//
//	x(s) = H∞(s) · H∞(M)/H∞(∞)
//
// For the exponential law that is (2)-(3) of both papers, x = u*(1 − α^s).
// Where the window is finite it differs from [Source.Harvest]: the mean dynamics
// spread the loss through the window over all ages, while in truth nothing is
// old enough to be dropped until the window has passed. Both reach the same
// ceiling.
func (s Source) MeanState(age int) float64 { return s.MeanStateAt(float64(age)) }

// MeanStateAt is MeanState at any real age.
func (s Source) MeanStateAt(age float64) float64 {
	return s.gathered(age) * s.windowShare()
}

// Gain returns u, the mean interest that a source gains in an epoch: MeanState
// at age 1. For the exponential law that is (1) of TCNS with the window of
// Allerton, section II:
//
//	u = (λ ξ̄ / c)(1 − α)(1 − α^M)
func (s Source) Gain() float64 { return s.MeanState(1) }

// Ceiling returns u*, the limit of MeanState and of Harvest for a source that
// is never crawled; u/(1 − α) for the exponential law.
func (s Source) Ceiling() float64 {
	return s.gathered(math.Inf(1)) * s.windowShare()
}

// Factor returns α = e^(−c), under the exponential law the share of interest
// that is left after one epoch.
func (s Source) Factor() float64 { return math.Exp(-s.Decay) }

const (
	// maxCeiling bounds u*, so that products of eight states do not overflow.
	maxCeiling = 1e30
	// maxBatch bounds what a single arrival may hold.
	maxBatch = 10_000
	// maxFails bounds how many crawls one that succeeds takes in the mean: 20.
	maxFails = .95
)

// Validate reports the first field that is out of its range.
func (s Source) Validate() error {
	if err := s.validShape(); err != nil {
		return err
	}
	if s.Law == LawFreshness && s.Rate == 1 { // a page, of which a file has other words
		switch {
		case !(s.Decay > 0) || math.IsInf(s.Decay, 0):
			return fmt.Errorf("change is %v; allowed is a finite rate per epoch above 0", s.Decay)
		case !(s.Interest >= 0) || math.IsInf(s.Interest, 0):
			return fmt.Errorf("importance is %v; allowed is a finite number, 0 or more", s.Interest)
		}
	}
	switch {
	case s.Law != LawFreshness && (s.Recall != 0 || s.False != 0):
		return fmt.Errorf("recall is %v and false %v; they belong to pages, with change and importance",
			s.Recall, s.False)
	case !(s.Recall >= 0 && s.Recall <= 1):
		return fmt.Errorf("recall is %v; allowed is a share of the changes, 0 to 1", s.Recall)
	case !(s.False >= 0) || math.IsInf(s.False, 0):
		return fmt.Errorf("false is %v; allowed is a finite number of pings per epoch, 0 or more", s.False)
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
	case !(s.Fails >= 0 && s.Fails <= maxFails):
		return fmt.Errorf("fails is %v; allowed is the chance that a crawl fails, 0 to %v", s.Fails, maxFails)
	case s.Fails > 0 && (s.Bend() > 0 || s.Unbounded()):
		return fmt.Errorf("fails is %v; allowed is 0 under the law %s, "+
			"by which it may be right to wait after a failure", s.Fails, s.Law)
	case s.Batch < 0 || s.Batch > maxBatch:
		return fmt.Errorf("batch is %d; allowed are 1 to %d items", s.Batch, maxBatch)
	case !(s.Ceiling() <= maxCeiling):
		return fmt.Errorf("what gathers at a source that is never crawled, near rate × interest / decay, is %v; "+
			"allowed is at most %v",
			s.Ceiling(), maxCeiling)
	}
	return nil
}
