package baselines

import (
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// Every policy of this package that is built from parameters or from the terms
// keeps the contract of env.Policy, with equal and unequal costs, windows and a
// budget that they do not divide.
func TestPoliciesKeepTheContract(t *testing.T) {
	uneven := env.Paper(3)
	uneven.Sources[0].Cost, uneven.Sources[2].Cost = 1.7, 0.4
	uneven.Sources[1].Window, uneven.Sources[3].Window = 2.5, 6
	uneven.Budget = 2.2
	laws := env.Paper(2)
	laws.Sources[0].Law, laws.Sources[1].Law, laws.Sources[2].Batch = env.LawHump, env.LawPower, 20
	laws.Sources[1].Shape, laws.Sources[3].Law, laws.Sources[3].Window = 4, env.LawHump, 3
	for _, instance := range []struct {
		name string
		in   env.Instance
	}{{"Table I", env.Paper(2)}, {"uneven", uneven}, {"laws", laws}} {
		name, in := instance.name, instance.in
		for _, policy := range []struct {
			name  string
			build func() env.Policy[env.Model]
		}{
			{"whittle", func() env.Policy[env.Model] { return NewWhittle(in) }},
			{"lagrangian", func() env.Policy[env.Model] { return NewLagrangian(in) }},
			{"greedy", func() env.Policy[env.Model] { return NewGreedy(in) }},
			{"myopic", func() env.Policy[env.Model] { return NewMyopic(in) }},
			{"best", func() env.Policy[env.Model] { return NewBestSource(in) }},
			{"optimum", func() env.Policy[env.Model] {
				o, err := solveOptimum(in, but(usualLimits, func(l *limits) { l.truncation, l.gap = 1e-2, 1e-3 }))
				if err != nil {
					t.Fatal(err)
				}
				return o
			}},
			{"even schedule", func() env.Policy[env.Model] { return NewEvenSchedule(in) }},
		} {
			t.Run(name+"/"+policy.name, func(t *testing.T) { envtest.Policy(t, in, policy.build) })
		}
		t.Run(name+"/relaxed", func(t *testing.T) {
			envtest.OverrunPolicy(t, in, func() env.Policy[env.Model] {
				return must(NewRelaxedControl(in, RelaxedOptions{}))
			})
		})
		t.Run(name+"/round robin", func(t *testing.T) {
			envtest.Policy(t, in, func() env.Policy[env.Online] { return NewRoundRobin(in.Terms()) })
		})
		for _, policy := range []struct {
			name  string
			build func() env.Policy[env.Observed]
		}{
			{"whittle on the state", func() env.Policy[env.Observed] { return NewWhittleObserved(in, false) }},
			{"literal whittle on the state", func() env.Policy[env.Observed] { return NewWhittleObserved(in, true) }},
			{"packed whittle on the state", func() env.Policy[env.Observed] { return NewWhittlePackedObserved(in) }},
			{"myopic on the state", func() env.Policy[env.Observed] { return NewMyopicObserved(in) }},
			{"stochastic", func() env.Policy[env.Observed] { return NewStochasticWhittle(in, env.MarksConstant) }},
			{"learned stochastic", func() env.Policy[env.Observed] {
				few := schooling{nodes: 40, thresholds: 8, steps: 50}
				return learnedPolicy(in, env.MarksConstant, few, stream.New(1, stream.Policy))
			}},
		} {
			t.Run(name+"/"+policy.name, func(t *testing.T) { envtest.Policy(t, in, policy.build) })
		}
	}
}

// Select writes into what the caller and the policy own.
func TestPoliciesAllocateNothing(t *testing.T) {
	in := env.Paper(2)
	o, err := solveOptimum(in, but(usualLimits, func(l *limits) { l.truncation, l.gap = 1e-2, 1e-3 }))
	if err != nil {
		t.Fatal(err)
	}
	view := mean(t, in, false).View()
	dst := make([]int, 0, 8)
	for _, tt := range []struct {
		name  string
		agent env.Agent
	}{
		{"whittle", env.NewAgent(NewWhittle(in))},
		{"lagrangian", env.NewAgent(NewLagrangian(in))},
		{"optimum", env.NewAgent[env.Model](o)},
		{"relaxed", env.NewAgent(must(NewRelaxedControl(in, RelaxedOptions{Price: 50, First: 1e-9})))},
		{"even", env.NewAgent(NewEvenSchedule(in))},
		{"stochastic", env.NewAgent(NewStochasticWhittle(in, env.MarksPerItem))},
	} {
		if n := testing.AllocsPerRun(100, func() { dst = tt.agent.Select(dst[:0], view) }); n != 0 {
			t.Errorf("%s allocates %v times", tt.name, n)
		}
	}
}
