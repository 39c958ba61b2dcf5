package result

import "fmt"

// Outcome is what an agent earned over a run, or in the mean over runs: an entry of
// [Measures] for each of its figures.
type Outcome struct {
	Epochs  int     `json:"epochs"`
	Reward  float64 `json:"reward"`
	Crawls  float64 `json:"crawls"`
	Cost    float64 `json:"cost"`
	Over    float64 `json:"over"`
	Overrun float64 `json:"overrun"`
}

// Epoch is what one epoch of a run brought, of which figures are added up.
type Epoch struct {
	Interest float64
	Crawls   int
	Cost     float64 // of the crawls, budget units
	Excess   float64 // what of the cost is above the budget, budget units; 0 where the crawls keep it
}

// Measure is a figure that is added up over the epochs of a run. Within a run it is the mean
// over the epochs; a comparison has the mean over the runs, and a sweep that with its
// interval. What prints or keeps figures reads them from the table of [Measures].
type Measure struct {
	Name   string                    // its key in records
	Words  string                    // what it is, with the unit, as the axis of a picture says it
	Less   bool                      // lower values are better
	Add    func(e Epoch) float64     // what an epoch adds to it
	Of     func(o *Outcome) *float64 // where an outcome has it
	Column string                    // its name where comparisons and lists of runs are printed for programs

	// In the table of a comparison for people it has this heading, and is printed so. One
	// without a heading is a figure of single runs.
	Head string
	Cell func(v float64) string

	// Its names among the figures of a sweep: while learning, and of what was learned. It is
	// none of them where they are empty.
	Learning, Learned string
}

// Measures are the figures that are added up.
var Measures = []Measure{
	{
		Name: "reward", Words: "interest per epoch", Column: "reward",
		Add: func(e Epoch) float64 { return e.Interest },
		Of:  func(o *Outcome) *float64 { return &o.Reward },

		Head: "reward", Cell: Figure, Learning: "learning_reward", Learned: "learned_reward",
	},
	{
		Name: "crawls", Words: "crawls per epoch", Column: "crawls",
		Add: func(e Epoch) float64 { return float64(e.Crawls) },
		Of:  func(o *Outcome) *float64 { return &o.Crawls },

		Head: "crawls/epoch", Cell: fixed("%.3f", 1), Learning: "learning_crawls", Learned: "learned_crawls",
	},
	{
		Name: "cost", Words: "budget units per epoch", Column: "cost",
		Add: func(e Epoch) float64 { return e.Cost },
		Of:  func(o *Outcome) *float64 { return &o.Cost },
	},
	{
		Name: "over", Words: "share of epochs over the budget", Less: true, Column: OverBudget,
		Add: func(e Epoch) float64 {
			if e.Excess > 0 {
				return 1
			}
			return 0
		},
		Of: func(o *Outcome) *float64 { return &o.Over },

		Head: "% over budget", Cell: fixed("%.2f", 100), Learning: OverBudget,
	},
	{
		Name: "overrun", Words: "mean cost above the budget over all epochs, budget units",
		Less: true, Column: "overrun",
		Add: func(e Epoch) float64 { return e.Excess },
		Of:  func(o *Outcome) *float64 { return &o.Overrun },

		Head: "mean overrun", Cell: fixed("%.3f", 1),
	},
}

// OverBudget is the column that is above 0 where crawls break the budget.
const OverBudget = "over_budget"

// fixed prints so many times a figure in a format.
func fixed(format string, times float64) func(v float64) string {
	return func(v float64) string { return fmt.Sprintf(format, times*v) }
}

// measure returns the measure of a column.
func measure(column string) *Measure {
	for k := range Measures {
		if Measures[k].Column == column {
			return &Measures[k]
		}
	}
	panic("result: no measure has the column " + column)
}
