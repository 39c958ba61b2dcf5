package baselines

import (
	"testing"

	"ephemera/baselines/index"
	"ephemera/env"
)

// What the schedule earns on Table I, of the bound.
func TestScheduleOnTableI(t *testing.T) {
	for _, tt := range []struct{ budget, want float64 }{{1, .99999}, {2, .997}, {3, .9999}} {
		in := env.Paper(tt.budget)
		bound, _ := index.Bound(in)
		got := longRun(t, in, NewEvenSchedule(in), 1000, 20_000) / bound
		t.Logf("budget %v: %.5f of the bound", tt.budget, got)
		if got < tt.want || got > 1+1e-9 {
			t.Errorf("budget %v: %.5f of the bound; want %v", tt.budget, got, tt.want)
		}
	}
}
