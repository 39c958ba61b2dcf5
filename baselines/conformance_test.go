package baselines_test

import (
	"testing"

	"ephemera/baselines"
	"ephemera/baselines/calendar"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// Every policy of the package keeps the contract and the budget, with equal
// costs and without.
func TestPoliciesConform(t *testing.T) {
	for _, in := range []env.Instance{env.Paper(1), env.Paper(2), env.Mixed(12, 4.5, 2)} {
		terms := in.Terms()
		rnd := func() *stream.Rand { return stream.New(1, stream.Policy) }
		t.Run(in.ID, func(t *testing.T) {
			conforms(t, in, "whittle", func() env.Policy[env.Model] { return baselines.NewWhittle(in) })
			conforms(t, in, "whittle observed", func() env.Policy[env.Observed] { return baselines.NewWhittleObserved(in, false) })
			conforms(t, in, "whittle literal", func() env.Policy[env.Observed] { return baselines.NewWhittleObserved(in, true) })
			conforms(t, in, "lagrangian", func() env.Policy[env.Model] { return baselines.NewLagrangian(in) })
			conforms(t, in, "greedy", func() env.Policy[env.Model] { return baselines.NewGreedy(in) })
			conforms(t, in, "myopic", func() env.Policy[env.Model] { return baselines.NewMyopic(in) })
			conforms(t, in, "myopic observed", func() env.Policy[env.Observed] { return baselines.NewMyopicObserved(in) })
			conforms(t, in, "round robin", func() env.Policy[env.Online] { return baselines.NewRoundRobin(terms) })
			conforms(t, in, "best source", func() env.Policy[env.Model] { return baselines.NewBestSource(in) })
			conforms(t, in, "calendar", func() env.Policy[env.Online] {
				return calendar.NewPolicy(terms, calendar.NewWhittle(in.Sources))
			})
			f := baselines.Allocate(in, baselines.Spread(0)).Frequency
			conforms(t, in, "even schedule", func() env.Policy[env.Model] { return baselines.NewEvenSchedule(terms, f) })
			conforms(t, in, "credit schedule", func() env.Policy[env.Model] { return baselines.NewCreditSchedule(terms, f) })
			conforms(t, in, "random schedule", func() env.Policy[env.Model] { return baselines.NewRandomSchedule(terms, f, rnd()) })
			conforms(t, in, "entry frequency", func() env.Policy[env.Online] { return baselines.NewEntryFrequency(terms, baselines.EntryFrequency{}) })
			conforms(t, in, "nutch", func() env.Policy[env.Online] { return baselines.NewNutch(terms, baselines.Adaptive{}) })
			conforms(t, in, "stormcrawler", func() env.Policy[env.Online] { return baselines.NewStormCrawler(terms, baselines.Adaptive{}) })
			conforms(t, in, "certainty", func() env.Policy[env.Online] { return baselines.NewCertainty(terms, baselines.Certainty{}) })
			conforms(t, in, "q-whittle", func() env.Policy[env.Online] { return baselines.NewQWhittle(terms, baselines.QWhittle{}, rnd()) })
			conforms(t, in, "salmut", func() env.Policy[env.Online] { return baselines.NewSalmut(terms, baselines.Salmut{}, rnd()) })
			t.Run("relaxed control", func(t *testing.T) {
				envtest.OverrunPolicy(t, in, func() env.Policy[env.Model] {
					return baselines.NewRelaxedControl(in, baselines.RelaxedOptions{})
				})
			})
		})
	}
	in := env.Paper(1)
	t.Run("optimum", func(t *testing.T) {
		o, err := baselines.SolveOptimum(in, baselines.OptimumOptions{})
		if err != nil {
			t.Fatal(err)
		}
		envtest.Policy(t, in, func() env.Policy[env.Model] { return o })
	})
}

func conforms[O env.Knowledge](t *testing.T, in env.Instance, name string, newPolicy func() env.Policy[O]) {
	t.Run(name, func(t *testing.T) { envtest.Policy(t, in, newPolicy) })
}
