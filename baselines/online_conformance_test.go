package baselines_test

import (
	"testing"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// The policies that know nothing beforehand keep the contract
// and the budget, with equal costs and without.
func TestOnlinePoliciesConform(t *testing.T) {
	for _, in := range []env.Instance{env.Paper(1), env.Paper(2), env.Mixed(12, 4.5, 2)} {
		terms := in.Terms()
		rnd := func() *stream.Rand { return stream.New(1, stream.Policy) }
		t.Run(in.ID, func(t *testing.T) {
			conforms(t, in, "entry frequency", func() env.Policy[env.Online] { return baselines.NewEntryFrequency(terms, baselines.EntryFrequency{}) })
			conforms(t, in, "nutch", func() env.Policy[env.Online] { return baselines.NewNutch(terms, baselines.Adaptive{}) })
			conforms(t, in, "stormcrawler", func() env.Policy[env.Online] { return baselines.NewStormCrawler(terms, baselines.Adaptive{}) })
			conforms(t, in, "q-whittle", func() env.Policy[env.Online] { return baselines.NewQWhittle(terms, baselines.QWhittle{}, rnd()) })
			conforms(t, in, "salmut", func() env.Policy[env.Online] { return baselines.NewSalmut(terms, baselines.Salmut{}, rnd()) })
		})
	}
}

func conforms[O env.Knowledge](t *testing.T, in env.Instance, name string, newPolicy func() env.Policy[O]) {
	t.Run(name, func(t *testing.T) { envtest.Policy(t, in, newPolicy) })
}
