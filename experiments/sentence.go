package experiments

import (
	"fmt"

	"ephemera/experiments/result"
)

// fewEpochs of a recording say little: what one crawl more or less brings is a
// large part of all.
const fewEpochs = 100

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
	if learned == nil || whittle == nil {
		return ""
	}
	if whittle.Reward <= 0 {
		return "Whittle, with which the learner is compared, earned nothing here, so there is no share of it."
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
	s := fmt.Sprintf("The policy that was learned earns %s of what %s earns in the same %d epochs", share(learned.Reward/whittle.Reward), reference, r.Steps)
	if learning != nil {
		s = fmt.Sprintf("While it learned, the learner earned %s of what %s earns in the same %d epochs. The policy that it learned earns %s",
			share(learning.Reward/whittle.Reward), reference, r.Steps, share(learned.Reward/whittle.Reward))
	}
	switch {
	case learned.Over > 0:
		s += fmt.Sprintf(", but goes over the budget in %s of the epochs.", share(learned.Over))
	case best == learned:
		s += ". No other policy compared here earns more."
	case best.Reward < learned.Reward*1.0005:
		s += fmt.Sprintf(". The best policy compared here, %s, earns less than 0.05 %% more.", best.Policy)
	default:
		s += fmt.Sprintf(". The best policy compared here, %s, earns %s.", best.Policy, share(best.Reward/whittle.Reward))
	}
	if r.Fitted && r.Steps < fewEpochs {
		s += fmt.Sprintf(" %d epochs are too few to tell which policy is better.", r.Steps)
	}
	return s
}

func share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
