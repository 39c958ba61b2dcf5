package lspe

import (
	"testing"

	"gonum.org/v1/gonum/floats"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// inWorld returns what the learner earns as it has learned, as a share of what Whittle earns,
// in worlds where crawls fail, and the learner.
func inWorld(t *testing.T, in env.Instance, epochs int) (float64, *Learner) {
	t.Helper()
	l, err := New(in.Terms(), nil, stream.New(1, stream.Policy))
	if err != nil {
		t.Fatal(err)
	}
	earned := func(a env.Agent) float64 {
		return floats.Sum(envtest.Play(t, envtest.Poisson(t, in, 1, env.PoissonOptions{}, a), a, epochs))
	}
	earned(env.NewAgent[env.Online](l))
	return earned(env.NewAgent[env.Online](l.Frozen())) / earned(env.NewAgent(baselines.NewWhittle(in))), l
}

// TestHosts: five of six sources are at a host with room for one crawl, so that one of a
// budget of two goes to the sixth, of which a crawl brings little. With one price for all it
// is never crawled.
func TestHosts(t *testing.T) {
	envtest.Alone(t)
	in := named("hosts:6:%d", 2)(1)
	share, l := inWorld(t, in, 5000)
	if share < .93 {
		t.Errorf("%.4f of Whittle; want .93", share)
	}
	if full, free := l.priced(2, l.price), l.priced(5, l.price); !(full > 3*free) {
		t.Errorf("a crawl at the full host is worth %v, elsewhere %v; want three times as much", full, free)
	}
}

// TestFailures: where nine crawls of ten fail, crawls cost ten times as much as those that
// succeed.
func TestFailures(t *testing.T) {
	envtest.Alone(t)
	in := env.Paper(1)
	for i := range in.Sources {
		in.Sources[i].Fails = .9
	}
	share, l := inWorld(t, in, 10_000)
	if share < .88 {
		t.Errorf("%.4f of Whittle; want .88", share)
	}
	if failed := l.src[0].Failed; !(failed > 6 && failed < 13) {
		t.Errorf("%v crawls fail until one succeeds; want about 9", failed)
	}
}
