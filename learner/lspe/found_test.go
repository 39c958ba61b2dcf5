package lspe

import (
	"slices"
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
)

// TestFoundLate: where the first pass finds nothing it is repeated until something
// is found, and what was learned then is finite.
func TestFoundLate(t *testing.T) {
	in := env.Instance{Budget: 1}
	for range 5 {
		in.Sources = append(in.Sources, env.NewSource("", .01, .5, 1))
	}
	for seed := range uint64(20) {
		l := newLearner(t, in, seed, nil)
		newHarvests(in, seed).learn(l, 2000)
		for i := range in.Sources {
			if theta := l.Threshold(i); !(theta >= 1 && theta <= l.most()) {
				t.Fatalf("seed %d: threshold %v", seed, theta)
			}
		}
	}
}

// TestAllFail: a learner whose crawls fail for long begins when one succeeds.
func TestAllFail(t *testing.T) {
	in := env.Lognormal(20, 2, 1)
	l, w := newLearner(t, in, 1, nil), newHarvests(in, 1)
	for range 60 {
		l.Select(nil, &w.view)
		w.view.Epoch++
		l.Update(nil, &w.view)
	}
	if got := w.learn(l, 2000) / whittle(in, 2000).learning; got < .95 {
		t.Errorf("%.4f of Whittle afterwards; want .95", got)
	}
}

// quiet returns n sources with one item in ten epochs, of which half are gone after
// an epoch and a half.
func quiet(n int, budget float64) env.Instance {
	return env.Instance{Sources: slices.Repeat([]env.Source{env.NewSource("", .1, .5, 1)}, n), Budget: budget}
}

// strand puts source i to a threshold of 1000 epochs, as if it had been there for so
// many cycles, with the narrow slope and small steps that go with them.
func strand(l *Learner, w *harvests, i int, cycles int32) {
	s := &l.src[i]
	s.LastTheta = 0
	l.plan += l.costs[i]/1000 - l.costs[i]/s.Theta
	s.Theta = 1000
	s.measure()
	for range 30 {
		takeIn(l, i, 1000, w.draw(i, 1000), .1)
	}
	s.Cycles = cycles
	if _, asleep := l.ring.Wake(i); asleep {
		l.ring.Remove(i)
	}
	l.release(func(w Waiting) bool { return int(w.ID) == i })
	l.sleep(l.standing(i, 0, l.mean(i)))
}

// TestComesBack: a source that waits a thousand epochs, and has done so for long, comes
// back where it is worth its crawls, though harvests there show hardly anything.
func TestComesBack(t *testing.T) {
	busy := quiet(1, 1)
	busy.Sources[0].Rate = 50
	for _, c := range []struct {
		name   string
		in     env.Instance
		cycles int32
	}{{"busy", busy, 1e6}, {"quiet", quiet(1, 1), 1e4}} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(5) {
				l, w := newLearner(t, c.in, seed, nil), newHarvests(c.in, seed)
				w.learn(l, 1000)
				strand(l, w, 0, c.cycles)
				w.learn(l, 100_000)
				if theta := l.Threshold(0); theta > 50 {
					t.Errorf("seed %d: after 100 000 epochs the threshold is %.1f; want at most 50", seed, theta)
				}
			}
		})
	}
}

// TestNotLost: one quiet source, to which the whole budget goes, is crawled as often as
// it should be over a million epochs.
func TestNotLost(t *testing.T) {
	envtest.Alone(t)
	in := quiet(1, 1)
	best := whittle(in, 10_000).frozen
	for seed := uint64(1); seed <= 3; seed++ {
		l, w := newLearner(t, in, seed, nil), newHarvests(in, seed)
		w.learn(l, 10_000)
		for part := range 99 {
			if got := w.learn(l, 10_000) / best; got < .99 {
				t.Errorf("seed %d: %.3f of Whittle from epoch %d on; want .99", seed, got, 10_000*(part+1))
			}
		}
	}
}
