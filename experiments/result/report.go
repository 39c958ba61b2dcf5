package result

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Report is the outcome of a comparison of policies on one instance.
type Report struct {
	Instance  string   `json:"instance"`
	Algorithm string   `json:"algorithm"`
	Knowledge string   `json:"knowledge"` // model, observed or online
	Budget    float64  `json:"budget"`    // budget units per epoch
	Steps     int      `json:"steps"`     // epochs per run
	Seeds     int      `json:"seeds"`     // how many
	Seed      uint64   `json:"seed"`      // the first
	Bound     *float64 `json:"bound"`     // interest per epoch that no policy exceeds; nil where none is known
	Results   []Row    `json:"results"`

	// Several says that there are several instances, of which Instance names the first
	// and Bound is the mean.
	Several bool `json:"-"`

	// Speed is how many epochs the learner learned from in a second, 0 where that was
	// not measured now.
	Speed float64 `json:"-"`

	// Notes are sentences in plain words, printed below a table, and More is
	// a further table below them, or nil.
	Notes []string `json:"-"`
	More  *Table   `json:"-"`
}

// Row is one policy's figures.
type Row struct {
	Policy    string   `json:"policy"`
	Epochs    int      `json:"epochs"`     // over which it was measured
	Reward    float64  `json:"reward"`     // interest per epoch
	Lo        *float64 `json:"lo"`         // 95 % interval, over seeds, instances or weeks; nil where there are too few
	Hi        *float64 `json:"hi"`         //
	Crawls    float64  `json:"crawls"`     // per epoch
	OfWhittle *float64 `json:"of_whittle"` // ratio
	// 95 % interval of OfWhittle; nil where there is none.
	OfWhittleLo *float64 `json:"of_whittle_lo"`
	OfWhittleHi *float64 `json:"of_whittle_hi"`
	OfBound     *float64 `json:"of_bound"`    // ratio; nil where no bound is known
	Over        float64  `json:"over_budget"` // share of epochs whose crawls cost more than the budget
	Overrun     float64  `json:"overrun"`     // mean cost above the budget over all epochs, budget units

	// A comparison over seeds, instances or days fills these.
	Diff   *float64 `json:"diff"` // reward less Whittle's under the same seeds
	DiffLo *float64 `json:"diff_lo"`
	DiffHi *float64 `json:"diff_hi"`
	Worst  *float64 `json:"worst"` // least of_whittle of any run

	// Regret is the bound less the reward, interest per epoch; nil where no bound is
	// known.
	Regret *float64 `json:"-"`
	// Same says that all runs earned the same, so that there is no interval.
	Same bool `json:"-"`
}

// Ptr returns a pointer to v, or nil if v is not a finite number.
func Ptr(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Share returns the share that a reward has of another. Costs are below 0, and of them it
// is the other's over the reward: less than 1 is worse there too.
func Share(reward, of float64) float64 {
	if of < 0 {
		return of / reward
	}
	return reward / of
}

// Shares returns those of many.
func Shares(rewards, of []float64) (shares []float64) {
	for k, r := range rewards {
		shares = append(shares, Share(r, of[k]))
	}
	return shares
}

// OrNaN returns what v points to, or NaN if v is nil.
func OrNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// Sentence says what was run, and what no policy exceeds, if that is known.
func (r *Report) Sentence() string {
	line := "Instance " + r.Instance
	if r.Algorithm != "" {
		line += ", learner " + r.Algorithm
	}
	line += fmt.Sprintf(", knowledge %s, budget %v, %s, %s from %d",
		r.Knowledge, r.Budget, Count(r.Steps, "epoch"), Count(r.Seeds, "seed"), r.Seed)
	if r.Bound != nil {
		mean := ""
		if r.Several {
			mean = " in the mean"
		}
		line += fmt.Sprintf("; no policy that keeps the budget earns more than %s per epoch%s", Figure(*r.Bound), mean)
	}
	return line + "."
}

// Document implements [Printed].
func (r *Report) Document() Document {
	return Document{
		Value: r, Rows: r.rows(), Table: r.Table(), Notes: r.Notes, More: r.More,
		First: []string{
			"policy", "reward", "95 % interval", "% of Whittle", "share's interval", "crawls/epoch", "% over budget",
			"less Whittle", "its interval", "% of bound",
		},
	}
}

// rows is the table of CSV.
func (r *Report) rows() *Table {
	return List(r.Results, []Field[Row]{
		{"instance", func(Row) any { return r.Instance }},
		{"algorithm", func(Row) any { return r.Algorithm }},
		{"knowledge", func(Row) any { return r.Knowledge }},
		{"budget", func(Row) any { return r.Budget }},
		{"steps", func(Row) any { return r.Steps }},
		{"seeds", func(Row) any { return r.Seeds }},
		{"seed", func(Row) any { return r.Seed }},
		{"policy", func(x Row) any { return x.Policy }},
		{"reward", func(x Row) any { return x.Reward }},
		{"lo", func(x Row) any { return x.Lo }},
		{"hi", func(x Row) any { return x.Hi }},
		{"crawls", func(x Row) any { return x.Crawls }},
		{"of_whittle", func(x Row) any { return x.OfWhittle }},
		{"of_bound", func(x Row) any { return x.OfBound }},
		{"over_budget", func(x Row) any { return x.Over }},
		{"overrun", func(x Row) any { return x.Overrun }},
		{"diff", func(x Row) any { return x.Diff }},
		{"diff_lo", func(x Row) any { return x.DiffLo }},
		{"diff_hi", func(x Row) any { return x.DiffHi }},
		{"worst", func(x Row) any { return x.Worst }},
		{"epochs", func(x Row) any { return x.Epochs }},
		{"of_whittle_lo", func(x Row) any { return x.OfWhittleLo }},
		{"of_whittle_hi", func(x Row) any { return x.OfWhittleHi }},
	})
}

// Table is the table that people read. Columns that no row fills are left out, and what
// exceeds the budget is marked.
func (r *Report) Table() *Table {
	columns := []Column[Row]{
		{"policy", func(r Row) string { return Marked(r.Policy, r.Over > 0) }},
		{"reward", func(r Row) string { return Figure(r.Reward) }},
		{"95 % interval", func(r Row) string {
			if r.Same {
				return "all runs the same"
			}
			return between(r.Lo, r.Hi)
		}},
		{"less Whittle", func(r Row) string { return Optional(r.Diff, Figure) }},
		{"its interval", func(r Row) string { return between(r.DiffLo, r.DiffHi) }},
		{"crawls/epoch", func(r Row) string { return fmt.Sprintf("%.3f", r.Crawls) }},
		{"% of Whittle", func(r Row) string { return Optional(r.OfWhittle, percentOf) }},
		{"share's interval", func(r Row) string {
			if r.OfWhittleLo == nil || r.OfWhittleHi == nil {
				return ""
			}
			return percentOf(*r.OfWhittleLo) + " to " + percentOf(*r.OfWhittleHi)
		}},
		{"worst %", func(r Row) string { return Optional(r.Worst, percentOf) }},
		{"% of bound", func(r Row) string { return Optional(r.OfBound, percentOf) }},
		{"regret", func(r Row) string { return Optional(r.Regret, Figure) }},
	}
	if slices.ContainsFunc(r.Results, func(r Row) bool { return r.Over > 0 }) {
		columns = append(columns,
			Column[Row]{"% over budget", func(r Row) string { return fmt.Sprintf("%.2f", 100*r.Over) }},
			Column[Row]{"mean overrun", func(r Row) string { return fmt.Sprintf("%.3f", r.Overrun) }})
	}
	return Tabulate(r.Results, columns)
}

func between(lo, hi *float64) string {
	if lo == nil || hi == nil {
		return ""
	}
	return Figure(*lo) + " to " + Figure(*hi)
}

// Figure prints a number with two decimals, or in four digits and an exponent
// where that would hide it.
func Figure(v float64) string {
	if a := math.Abs(v); a != 0 && a < 0.1 || a >= 1e9 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// Count prints a number of things: 1 seed, 20 seeds.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// percentOf prints a share of Whittle or of the bound in per cent: with two
// decimals, or with as many as its distance from 1 needs.
func percentOf(v float64) string {
	decimals := 2
	if lost := math.Abs(1 - v); lost > 1e-12 && lost < 0.001 {
		decimals = -1 - int(math.Floor(math.Log10(lost)))
	}
	return strconv.FormatFloat(100*v, 'f', decimals, 64)
}

// Optional prints a number, or nothing for nil.
func Optional(v *float64, f func(float64) string) string {
	if v == nil {
		return ""
	}
	return f(*v)
}
