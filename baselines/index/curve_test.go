package index

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/envtest"
)

// drawLaw gives a source any law of interest, with little left at age 70.
func drawLaw(t *rapid.T, s *env.Source) {
	s.Law = rapid.SampledFrom(env.Laws()).Draw(t, "law")
	s.Decay = max(s.Decay, .3)
	if s.Unbounded() {
		s.Window = math.Inf(1)
		s.Shape = rapid.SampledFrom([]float64{0, .5, 1, 2, 3.3}).Draw(t, "exponent")
	}
	if s.Law == env.LawPower {
		s.Shape = rapid.Float64Range(3, 5).Draw(t, "shape")
	}
}

// drawCurve draws a curve with any law and window.
func drawCurve(t *rapid.T) Curve {
	s := envtest.DrawInstance(t, 1, 1, true, true).Sources[0]
	drawLaw(t, &s)
	if s.Bend() > 0 {
		s.Decay = rapid.Float64Range(.1, 1.5).Draw(t, "slow")
	}
	return NewCurve(s)
}

// size is a harvest against which rounding is measured.
func size(c Curve) float64 { return math.Abs(c.At(120)) }

// worth solves the problem of one source at a charge by value iteration, where a crawl fails
// with the chance φ,
//
//	V(s) + β = max((1 − φ)(H(s) + V(1)) + φV(s+1) − charge, V(s+1))
//
// for ages up to the number of h; at the last one a crawl is due where harvests are
// below 0, as to wait there for ever would be free. It returns for each age what crawling
// is worth more than waiting.
func worth(h []float64, charge, fails float64) []float64 {
	n := len(h)
	v, w, more := make([]float64, n), make([]float64, n), make([]float64, n)
	for {
		for s := range h {
			wait := v[min(s+1, n-1)]
			crawl := (1-fails)*(h[s]+v[0]) + fails*wait - charge
			if s == n-1 && h[s] < 0 {
				wait = math.Inf(-1)
			}
			more[s] = crawl - wait
			w[s] = (max(crawl, wait) + v[s]) / 2 // half steps, against the period
		}
		floats.AddConst(-w[0], w)
		// Once all that moves is the first value, all others move alike.
		if floats.Distance(v, w, math.Inf(1)) < 1e-9*math.Abs(h[n-1]) {
			return more
		}
		v, w = w, v
	}
}

// The index against value iteration, on any curve: at a charge a little below
// it crawling is worth more than waiting, and less at one a little above.
func TestIndexAgainstValueIteration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCurve(t)
		h := make([]float64, 120)
		for k := range h {
			h[k] = c.At(k + 1)
		}
		age := rapid.IntRange(1, 25).Draw(t, "age")
		charge, d := c.Index(age), 2e-5*size(c)
		below, above := worth(h, charge-d, 0)[age-1], worth(h, charge+d, 0)[age-1]
		if !(below > 0 && above < 0) {
			t.Fatalf("%+v, age %d: at a charge a little below %v crawling is worth %v more, above %v",
				c.Source, age, charge, below, above)
		}
	})
}

// Where crawls fail the index is that by value iteration too, and the age at which it reaches
// a price is the best one for a source alone: no other yields as much, by what cycles of an
// age bring and last.
func TestIndexWhereCrawlsFail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := envtest.DrawInstance(t, 1, 1, true, true).Sources[0]
		s.Decay = max(s.Decay, .3)
		if rapid.Bool().Draw(t, "power") {
			s.Law, s.Shape = env.LawPower, rapid.Float64Range(3, 5).Draw(t, "shape")
		}
		s.Fails = rapid.Float64Range(.01, .8).Draw(t, "fails")
		c := NewCurve(s)
		h, mean := make([]float64, 200), make([]float64, 120)
		for k := range h {
			h[k] = s.Harvest(float64(k + 1))
		}
		for k := range mean { // of what a crawl brings that succeeds, begun at an age
			chance := 1 - s.Fails
			for j := k; ; j++ {
				mean[k] += chance * h[min(j, len(h)-1)]
				if chance *= s.Fails; chance < 1e-12 {
					break
				}
			}
			envtest.Near(t, "harvest", c.At(k+1), mean[k], 1e-5)
		}
		age := rapid.IntRange(1, 25).Draw(t, "age")
		charge, d := c.Index(age)*(s.Cost/c.Cost), 2e-5*size(c) // of any crawl
		below, above := worth(h, charge-d, s.Fails)[age-1], worth(h, charge+d, s.Fails)[age-1]
		if !(below > 0 && above < 0) {
			t.Fatalf("%+v, age %d: at a charge a little below %v crawling is worth %v more, above %v",
				s, age, charge, below, above)
		}
		price := rapid.Float64Range(.01, .9).Draw(t, "price") * c.Top
		best, most := c.Age(price, 1, Never), math.Inf(-1)
		for k := range mean {
			most = max(most, (mean[k]-price)/(float64(k+1)+s.Fails/(1-s.Fails)))
		}
		if best < len(mean) && c.Yield(best, price) < most-1e-5*size(c) {
			t.Fatalf("%+v, price %v: age %d yields %v; the best %v", s, price, best, c.Yield(best, price), most)
		}
	})
}

// The index against its definition by chords, over all ages; where it is at
// least 0 it is that of the neighbouring ages, and does not fall.
func TestIndexByChords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCurve(t)
		last := math.Inf(-1)
		for age := 1; age < 60; age++ {
			steepest, want := math.Inf(-1), math.Inf(-1)
			for k := 1; k < 300; k++ {
				steepest = max(steepest, (c.At(age+k)-c.At(age))/float64(k))
			}
			for k := 1; k < 300; k++ {
				want = max(want, c.At(k)-float64(k)*steepest)
			}
			got, near := c.Index(age), float64(age+1)*c.At(age)-float64(age)*c.At(age+1)
			if math.Abs(got-want) > 1e-11*size(c) {
				t.Fatalf("%+v, age %d: index %v; by all chords %v", c.Source, age, got, want)
			}
			if negative := got < -1e-11*size(c); negative && near > 1e-11*size(c) ||
				!negative && math.Abs(got-near) > 1e-11*size(c) {
				t.Fatalf("%+v, age %d: index %v; of the neighbouring ages %v", c.Source, age, got, near)
			}
			if last >= 0 && got < last-1e-11*size(c) {
				t.Fatalf("%+v: the index falls from %v to %v at age %d", c.Source, last, got, age)
			}
			last = got
			if c.Concave() && got < -1e-15*size(c) {
				t.Fatalf("%+v, age %d: index %v of a concave curve", c.Source, age, got)
			}
		}
	})
}

// Age is the least age whose index reaches a charge, whatever the orders of magnitude.
func TestAgeIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		power := func(name string, lo, hi float64) float64 {
			return math.Exp(rapid.Float64Range(math.Log(lo), math.Log(hi)).Draw(t, name))
		}
		s := env.NewSource("", power("rate", 1e-4, 1e4), power("decay", 1e-7, 50), 1)
		if rapid.Bool().Draw(t, "windowed") {
			s.Window = power("window", .3, 1e4)
		}
		c := NewCurve(s)
		charge := c.Top * power("charge", 1e-12, 1)
		age := c.Age(charge, 1, Never)
		const far = min(1<<45, math.MaxInt/2)
		if age == Never && c.Index(far) >= charge || age != Never && c.Index(age) < charge {
			t.Fatalf("%+v: charge %v is not reached at age %d", s, charge, age)
		}
		if age > 1 && age < Never && c.Index(age-1) >= charge {
			t.Fatalf("%+v: charge %v is reached before age %d", s, charge, age)
		}
	})
}

// The ages that Newton's method finds are right but for one, so that few indices are
// computed.
func TestGuess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := env.NewSource("", 1, math.Exp(rapid.Float64Range(-14, 2).Draw(t, "ln decay")), 1)
		c := NewCurve(s)
		charge := c.Top * rapid.Float64Range(1e-6, .999).Draw(t, "charge")
		least := FirstAge(0, Never, func(age int) bool { return c.Index(age) >= charge })
		if got := c.guess(charge); math.Abs(got-float64(least)) > 1+1e-6*float64(least) {
			t.Fatalf("decay %v: charge %v is reached at age %d; the guess is %v", s.Decay, charge/c.Top, least, got)
		}
	})
}

// Under the mean dynamics a crawl earns the mean state.
func TestMeanDynamics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCurve(t).Source
		c := NewCurve(s.MeanDynamics())
		for age := 1; age < 40; age++ {
			envtest.Near(t, "harvest", c.At(age), s.MeanState(age), 1e-12)
		}
		if !s.Unbounded() {
			envtest.Near(t, "limit", c.Top, s.Ceiling(), 1e-12)
		}
	})
}
