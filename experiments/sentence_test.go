package experiments

import (
	"strings"
	"testing"

	"ephemera/experiments/result"
)

func TestSentence(t *testing.T) {
	for _, x := range []struct {
		what                     string
		learned, whittle, greedy float64
		over                     float64 // of what was learned
		fitted                   bool
		steps                    int
		say                      string
	}{
		{"best", 100, 100, 90, 0, false, 50, "earns 100.0 %. No other policy compared here earns more."},
		{"just behind", 100, 90, 100.04, 0, false, 50, "The best policy compared here, greedy, earns less than 0.05 % more."},
		{"behind", 100, 100, 100.06, 0, false, 50, "The best policy compared here, greedy, earns 100.1 %."},
		{"over budget", 120, 100, 90, .25, false, 50, "earns 120.0 %, but goes over the budget in 25.0 % of the epochs."},
		{"nothing to compare with", 0, 0, 0, 0, false, 50, "Whittle, with which the learner is compared, earned nothing here"},
		{"short recording", 100, 100, 90, 0, true, 99, "of what Whittle with fitted parameters earns in the same 99 epochs. The policy that it learned earns 100.0 %. No other policy compared here earns more. 99 epochs are too few to tell"},
		{"long recording", 100, 100, 90, 0, true, 100, "No other policy compared here earns more."},
	} {
		r := &result.Report{Steps: x.steps, Fitted: x.fitted, Results: []result.Row{
			{Policy: "learning", Reward: 200}, {Policy: "learned", Reward: x.learned, Over: x.over}, {Policy: "whittle", Reward: x.whittle},
			{Policy: "greedy", Reward: x.greedy}, {Policy: "relaxed", Reward: 500, Over: .1},
		}}
		got := Sentence(r)
		if !strings.Contains(got, x.say) || strings.HasSuffix(got, "better.") != strings.HasSuffix(x.what, "short recording") {
			t.Errorf("%s: %q, want %q", x.what, got, x.say)
		}
	}
}
