package experiments

import (
	"fmt"

	"ephemera/experiments/result"
)

// Sentence says in plain words what a training's report shows.
func Sentence(r *result.Report) string {
	row := func(name string) *result.Row {
		for i := range r.Results {
			if r.Results[i].Policy == name {
				return &r.Results[i]
			}
		}
		return nil
	}
	learning, learned, whittle := row("learning"), row("learned"), row("whittle")
	if learning == nil || learned == nil || whittle == nil || whittle.Reward <= 0 {
		return ""
	}
	best := learned
	for i := range r.Results {
		if b := &r.Results[i]; b.Over == 0 && b.Policy != "learning" && b.Reward > best.Reward {
			best = b
		}
	}
	reference := "exact Whittle"
	if r.Fitted {
		reference = "Whittle with fitted parameters"
	}
	s := fmt.Sprintf("In %d epochs the learner earned %s of what %s earns while it learned, and the policy that it ended with earns %s",
		r.Steps, share(learning.Reward/whittle.Reward), reference, share(learned.Reward/whittle.Reward))
	switch {
	case learned.Over > 0:
		s += fmt.Sprintf(", going over the budget in %s of the epochs.", share(learned.Over))
	case best == learned:
		s += "; no other policy in this comparison earns more."
	case best.Reward < learned.Reward*1.0005:
		s += fmt.Sprintf("; the best in this comparison, %s, earns less than 0.05 %% more.", best.Policy)
	default:
		s += fmt.Sprintf("; the best in this comparison is %s with %s.", best.Policy, share(best.Reward/whittle.Reward))
	}
	return s
}

func share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
