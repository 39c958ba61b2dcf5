package experiments

import (
	"strings"
	"testing"

	"ephemera/experiments/result"
)

func TestSentence(t *testing.T) {
	for _, x := range []struct {
		learned, whittle float64
		over             float64 // of what was learned
		fitted           bool
		say              string
	}{
		{100, 100, 0, false, "the learner earned 200.0 % of what exact Whittle earns in the same 50 epochs. The policy that it learned earns 100.0 %."},
		{120, 100, .25, false, "earns 120.0 %, but goes over the budget in 25.0 % of the epochs."},
		{0, 0, 0, false, "Whittle, with which the learner is compared, earned nothing here"},
		{100, 100, 0, true, "of what Whittle with fitted parameters earns in the same 50 epochs."},
	} {
		r := &result.Report{Steps: 50, Fitted: x.fitted, Results: []result.Row{
			{Policy: "learning", Reward: 200}, {Policy: "learned", Reward: x.learned, Over: x.over}, {Policy: "whittle", Reward: x.whittle},
		}}
		if got := Sentence(r); !strings.Contains(got, x.say) {
			t.Errorf("%q, want %q", got, x.say)
		}
	}
}
