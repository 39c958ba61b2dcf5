package experiments

import (
	"fmt"

	"ephemera/experiments/result"
)

// Sentence says in plain words what a training's report shows.
func Sentence(r *result.Report) string {
	rows := map[string]result.Row{}
	for _, row := range r.Results {
		rows[row.Policy] = row
	}
	learned, whittle := rows["learned"], rows["whittle"]
	if learned.Policy == "" || whittle.Policy == "" {
		return ""
	}
	if whittle.Reward <= 0 {
		return "Whittle, with which the learner is compared, earned nothing here, so there is no share of it."
	}
	reference := "exact Whittle"
	if r.Fitted {
		reference = "Whittle with fitted parameters"
	}
	s := fmt.Sprintf("While it learned, the learner earned %s of what %s earns in the same %d epochs. The policy that it learned earns %s",
		share(rows["learning"].Reward/whittle.Reward), reference, r.Steps, share(learned.Reward/whittle.Reward))
	if learned.Over > 0 {
		s += fmt.Sprintf(", but goes over the budget in %s of the epochs", share(learned.Over))
	}
	return s + "."
}

func share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
