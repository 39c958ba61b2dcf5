package env

import (
	"errors"
	"fmt"
)

// Instance is a set of sources and a budget.
type Instance struct {
	ID      string   `toml:"id"`
	Budget  float64  `toml:"budget"` // what the crawls of one epoch may cost together, budget units
	Sources []Source `toml:"source"`
}

// Paper returns Table I, the reference example of both papers, with the mean
// interests ξ̄ that Allerton leaves out and TCNS gives.
func Paper(budget float64) Instance {
	return Instance{
		ID: "paper",
		Sources: []Source{
			NewSource("1", 250, 0.70, 1.00),
			NewSource("2", 250, 0.35, 0.70),
			NewSource("3", 250, 0.70, 0.20),
			NewSource("4", 250, 0.21, 0.08),
		},
		Budget: budget,
	}
}

// TotalCost returns ΣC, what crawling every source costs.
func (in Instance) TotalCost() float64 {
	var sum float64
	for _, s := range in.Sources {
		sum += s.Cost
	}
	return sum
}

// ErrBudget is wrapped by errors about the budget of an instance.
var ErrBudget = errors.New("budget")

// Validate reports the first thing that is wrong, with the source and the
// field, what was found and what is allowed.
func (in Instance) Validate() error {
	if len(in.Sources) == 0 {
		return fmt.Errorf("instance %.60q has no source; at least one is needed", in.ID)
	}
	for i, s := range in.Sources {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("instance %.60q, source %d (%.60q): %w", in.ID, i+1, s.Name, err)
		}
	}
	total := in.TotalCost()
	if !(in.Budget > 0) || in.Budget > total*(1+1e-12) {
		return fmt.Errorf("instance %.60q: %w is %v; allowed is above 0 and at most %v, the cost of crawling every source", in.ID, ErrBudget, in.Budget, total)
	}
	if cheapest := cheapest(in); in.Budget < cheapest {
		return fmt.Errorf("instance %.60q: %w is %v, but the cheapest crawl costs %v; nothing could ever be crawled", in.ID, ErrBudget, in.Budget, cheapest)
	}
	return nil
}

// Terms returns what every crawler knows of the instance beforehand.
func (in Instance) Terms() Terms {
	t := Terms{Names: make([]string, len(in.Sources)), Costs: make([]float64, len(in.Sources)), Budget: in.Budget}
	for i, s := range in.Sources {
		t.Names[i], t.Costs[i] = s.Name, s.Cost
	}
	return t
}
