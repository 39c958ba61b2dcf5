package lspe

import (
	"math"
	"testing"

	"ephemera/env/envtest"
)

// TestAlike: ten sources that are alike are found to be, in slopes and in levels.
func TestAlike(t *testing.T) {
	envtest.Alone(t)
	for seed := uint64(1); seed <= 3; seed++ {
		in := quiet(10, 5)
		l := newLearner(t, in, seed, nil)
		newHarvests(in, seed).learn(l, 10000)
		if slopes := l.slopes(); slopes > .03 {
			t.Errorf("seed %d: the variance of slopes is taken for %.4f; want up to .03", seed, slopes)
		}
		if cycles := l.alike(); cycles < 30 {
			t.Errorf("seed %d: the mean level counts for %.1f harvests; want 30 or more", seed, cycles)
		}
	}
}

// TestSlopes: the variance of slopes is that by which the true curves differ from the pooled one, in the
// mean over cycles weighed as there, and the slopes that sources are taken to have go with the true ones.
func TestSlopes(t *testing.T) {
	envtest.Alone(t)
	for seed := uint64(1); seed <= 3; seed++ {
		in := rare(1)(seed)
		l := newLearner(t, in, seed, nil)
		newHarvests(in, seed).learn(l, 5000)
		var sum, weight, found, product float64
		for i := range l.src {
			s := &l.src[i]
			wide := math.Exp(1 / l.slope(i))
			young, old := s.Theta/wide, s.Theta*wide
			difference := func(age float64) float64 { return math.Log(in.Sources[i].Harvest(age) / l.pooled.at(age)) }
			delta := (difference(old) - difference(young)) / (l.pooled.features(old)[0] - l.pooled.features(young)[0])
			w := float64(s.Square) * float64(s.Square) * float64(s.Cycles) * float64(s.Cycles)
			sum, weight = sum+w*delta*delta, weight+w
			own := l.steeper(s)
			found, product = found+w*own*own, product+w*own*delta
		}
		truth, got := sum/weight, l.slopes()
		t.Logf("seed %d: the variance of slopes is taken for %.4f; that of the true ones is %.4f", seed, got, truth)
		if got < truth/3 || got > 3*truth {
			t.Errorf("seed %d: want it within a factor of 3", seed)
		}
		if r := product / math.Sqrt(found*sum); r < .7 {
			t.Errorf("seed %d: learned and true slopes have the correlation %.3f; want .7", seed, r)
		}
	}
}
