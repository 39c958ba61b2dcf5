package lspe

import (
	"testing"

	"ephemera/env/envtest"
)

// TestBacklog: after the first pass over 3000 sources many are overdue at once, and are crawled later than the
// noise asks. The pooled curve is no steeper for that: interest decays within a few epochs, so that
// beyond a round of 100 harvests hardly grow.
func TestBacklog(t *testing.T) {
	envtest.Alone(t)
	for seed := uint64(1); seed <= 2; seed++ {
		in := named("lognormal:3000:%d", 30)(seed)
		l := newLearner(t, in, seed, nil)
		newHarvests(in, seed).learn(l, 1200)
		if rise := l.pooled.at(10*l.round) / l.pooled.at(l.round); rise > 2 {
			t.Errorf("seed %d: from one round to ten the curve rises %.2f times; want 2 at the most", seed, rise)
		} else {
			t.Logf("seed %d: from one round to ten the curve rises %.2f times", seed, rise)
		}
	}
}
