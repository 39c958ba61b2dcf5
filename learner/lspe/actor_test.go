package lspe

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"

	"ephemera/env"
	"ephemera/env/stream"
)

// crawlChances returns 1 − f(s) of ages s, f being the chance that a source of that
// threshold was crawled at s or before.
func crawlChances(theta, kappa float64) []float64 {
	left := []float64{1}
	for s := 1.; left[len(left)-1] > 1e-14; s++ {
		left = append(left, 1/(1+math.Exp(kappa*(math.Log(s+half)-math.Log(theta)))))
	}
	return left
}

// TestGradient holds the policy gradient against differences of the average reward β:
// the sum over ages with the true advantages to seven digits, and the one that the
// actor takes with what its critic has learned from cycles nearly.
func TestGradient(t *testing.T) {
	source := env.NewSource("", 50, .1, 1)
	set := DefaultSettings()
	set.KappaMax = set.Kappa
	kappa := set.Kappa
	for _, theta := range []float64{5, 12, 30} {
		worth := (theta+1)*source.Harvest(theta) - theta*source.Harvest(theta+1) // Whittle's index at θ
		for _, price := range []float64{worth / 2, worth, 2 * worth} {
			reward := func(s int) float64 { return source.Harvest(float64(s)) - price*source.Cost }
			average := func(lnTheta float64) float64 {
				var sum, span float64
				left := crawlChances(math.Exp(lnTheta), kappa)
				for s := 1; s < len(left); s++ {
					sum += (left[s-1] - left[s]) * reward(s)
					span += left[s-1]
				}
				return sum / span
			}
			want := fd.Derivative(average, math.Log(theta), &fd.Settings{Formula: fd.Central})

			// V backwards: V(s) = p(s)(X(s) − λC) + (1 − p(s))(V(s + 1) − β).
			left := crawlChances(theta, kappa)
			beta, span := average(math.Log(theta)), 0.
			var sum, next float64
			for s := len(left) - 1; s > 0; s-- {
				wait := next - beta
				sum -= kappa * left[s] * (left[s-1] - left[s]) * (reward(s) - wait)
				span += left[s-1]
				p := 1 - left[s]/left[s-1]
				next = p*reward(s) + (1-p)*wait
			}
			if got := sum / span; math.Abs(got-want) > 1e-7*(1+math.Abs(want)) {
				t.Errorf("θ = %v, λ = %v: the sum over ages is %v, and differences of β are %v",
					theta, price, got, want)
			}

			l := newLearner(t, env.Instance{Sources: []env.Source{source}, Budget: .1}, 1, nil)
			l.set, l.costs[0], l.pooled.mean, l.square = set, source.Cost, source.Harvest(l.round), 1
			r := stream.New(1, stream.Test)
			v := &l.src[0]
			v.Theta, v.Unit = theta, float32(theta)
			for range 5000 {
				u := r.Float64()
				age := math.Ceil(max(1, theta*math.Pow(u/(1-u), -1/kappa)-half))
				v.Cycles++
				takeIn(l, 0, age, source.Harvest(age), l.set.B.At(int(v.Cycles)))
			}
			ax, ac := l.advantage(0)
			// In units of the price's part, by which steps are measured; ∫f(1 − f)²dm = ½.
			got := (ax - price*ac) / (allScores * price * source.Cost)
			want /= -kappa / float64(v.Span) * price * source.Cost / 2
			if math.Abs(got-want) > .05 {
				t.Errorf("θ = %v, λ = %v: the actor's gradient is %.3f, and differences of β are %.3f",
					theta, price, got, want)
			}
		}
	}
}

// TestSurelyEachEpoch: below 1½ a threshold comes to rest where W exceeds the price by X̄/C ln(1½/θ), and at 1
// where it exceeds it by more.
func TestSurelyEachEpoch(t *testing.T) {
	for _, c := range []struct{ excess, want float64 }{{.2, 1.5 * math.Exp(-.2)}, {.1, 1.5 * math.Exp(-.1)}, {.5, 1}} {
		l := drawn(t, 1.2)
		s := &l.src[0]
		s.Cycles = 1000
		s.Crawl, s.Wait, s.Toll = [1 + degree]float64{2}, [degree]float64{}, [degree]float64{}
		s.LastTheta = 0
		mean := .1
		l.price = l.Index(0) - c.excess*mean
		for range 20_000 {
			l.act(0, 1, mean)
		}
		if math.Abs(s.Theta-c.want) > .005 {
			t.Errorf("where W exceeds the price by %v of the mean the threshold is %.4f; want %.4f",
				c.excess, s.Theta, c.want)
		}
	}
}

// TestPlanBelowTwoEpochs: the plan has for a threshold below 1½ about the epochs that its cycles have.
func TestPlanBelowTwoEpochs(t *testing.T) {
	for _, theta := range []float64{1, 1.2, 1.3, 1.45} {
		l := drawn(t, theta)
		s := &l.src[0]
		s.Cycles, l.price = 1e6, 1
		const cycles = 20_000
		var epochs float64
		for range cycles {
			l.draw(s)
			epochs += max(1, math.Ceil(l.reach(0, float64(s.Noise))-half)) / cycles
		}
		if got := l.costs[0] / l.spends(0, theta); math.Abs(got/epochs-1) > .05 {
			t.Errorf("at the threshold %v the plan has cycles of %.3f epochs; drawn are %.3f", theta, got, epochs)
		}
	}
}

// TestAgesWhereCrawlsAreFree: at the threshold 1 one crawl in some 60 has age 2 where crawls are free, and one
// in some 660 elsewhere.
func TestAgesWhereCrawlsAreFree(t *testing.T) {
	for _, c := range []struct{ price, least, most float64 }{{0, 1. / 70, 1. / 50}, {1, 1. / 1000, 1. / 450}} {
		l := drawn(t, 1)
		s := &l.src[0]
		s.Cycles, l.price = 1e6, c.price
		const cycles = 50_000
		var twos float64
		for range cycles {
			if l.draw(s); l.reach(0, float64(s.Noise)) > 1+half {
				twos++
			}
		}
		if got := twos / cycles; got < c.least || got > c.most {
			t.Errorf("at the price %v one crawl in %.0f has age 2; want %.0f to %.0f",
				c.price, 1/got, 1/c.most, 1/c.least)
		}
	}
}

// TestLongWaitNeedsEvidence: beyond four rounds a source that seems worth somewhat less than
// the price waits for no longer after a few cycles, and for longer after many; up to four
// rounds it does after a few.
func TestLongWaitNeedsEvidence(t *testing.T) {
	for _, c := range []struct {
		rounds float64
		cycles int32
		longer bool
	}{{6, 30, false}, {6, 30000, true}, {3, 30, true}} {
		l := drawn(t, 2)
		theta := c.rounds * l.round
		s := &l.src[0]
		s.Theta, s.Unit = theta, float32(theta)
		for k := range int32(30) { // one harvest of ten is not empty
			s.Cycles++
			takeIn(l, 0, theta+float64(k%3), float64(k%10/9), l.set.B.At(int(s.Cycles)))
		}
		s.Dispersion, s.Cycles, s.LastTheta = 1, c.cycles, 0
		l.price = 1.1 * l.Index(0)
		if l.price <= 0 {
			t.Fatalf("W is %v; want one above 0", l.Index(0))
		}
		l.act(0, 1, l.mean(0))
		if longer := s.Theta > theta; longer != c.longer {
			t.Errorf("at %v rounds, after %d cycles: the threshold goes from %.2f to %.2f; want a longer wait: %v",
				c.rounds, c.cycles, theta, s.Theta, c.longer)
		}
	}
}
