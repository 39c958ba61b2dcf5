package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"ephemera/internal/plain"
)

// Report is the outcome of a comparison of policies on one instance.
type Report struct {
	Instance  string  `json:"instance"`
	Algorithm string  `json:"algorithm"`
	Knowledge string  `json:"knowledge"` // model, observed or online
	Budget    float64 `json:"budget"`    // budget units per epoch
	Steps     int     `json:"steps"`     // epochs per run
	Seeds     int     `json:"seeds"`     // how many
	Seed      uint64  `json:"seed"`      // the first
	Bound     Ratio   `json:"bound"`     // interest per epoch that no policy exceeds, where one is known
	Results   []Row   `json:"results"`

	// Foresight says that the bound holds for those, too, who know what will be published.
	Foresight bool `json:"-"`

	// Speed is how many epochs the learner learned from in a second, 0 where that was
	// not measured now.
	Speed float64 `json:"-"`

	// Notes are sentences in plain words, printed below a table, and More is
	// a further table below them, or nil.
	Notes []string `json:"-"`
	More  *Table   `json:"-"`
}

// Row is one policy's figures. Those of its outcome are means over the runs.
type Row struct {
	Policy string
	Outcome
	Lo, Hi Ratio // 95 % interval of the reward, over seeds, instances or weeks, unless there are too few

	OfWhittle                Ratio
	OfWhittleLo, OfWhittleHi Ratio // its 95 % interval
	OfBound                  Ratio // where a bound is known

	// A comparison over seeds, instances or days fills these.
	Diff           Ratio // reward less Whittle's under the same seeds, interest per epoch
	DiffLo, DiffHi Ratio
	Worst          Ratio // least OfWhittle of any run

	// Regret is the bound less the reward, interest per epoch, where a bound is known.
	Regret Ratio
	// Same says that all runs earned the same, so that there is no interval.
	Same bool
}

// column is a column of rows as programs read them.
type column struct {
	name string
	in   func(r *Row) any // where a row has it; nil for that of a measure of the name
	late bool             // it came later, and stands behind the others in CSV
}

// columns are those of rows, in the order of JSON. Measures that are not named here stand
// behind them.
var columns = withMeasures([]column{
	{name: "policy", in: func(r *Row) any { return &r.Policy }},
	{name: "epochs", in: func(r *Row) any { return &r.Epochs }, late: true},
	{name: "reward"},
	{name: "lo", in: func(r *Row) any { return &r.Lo }},
	{name: "hi", in: func(r *Row) any { return &r.Hi }},
	{name: "crawls"},
	{name: "of_whittle", in: func(r *Row) any { return &r.OfWhittle }},
	{name: "of_whittle_lo", in: func(r *Row) any { return &r.OfWhittleLo }, late: true},
	{name: "of_whittle_hi", in: func(r *Row) any { return &r.OfWhittleHi }, late: true},
	{name: "of_bound", in: func(r *Row) any { return &r.OfBound }},
	{name: OverBudget},
	{name: "overrun"},
	{name: "diff", in: func(r *Row) any { return &r.Diff }},
	{name: "diff_lo", in: func(r *Row) any { return &r.DiffLo }},
	{name: "diff_hi", in: func(r *Row) any { return &r.DiffHi }},
	{name: "worst", in: func(r *Row) any { return &r.Worst }},
})

// withMeasures completes columns by the table of measures.
func withMeasures(all []column) []column {
	in := func(m Measure) func(r *Row) any { return func(r *Row) any { return m.Of(&r.Outcome) } }
	for k := range all {
		if all[k].in == nil {
			all[k].in = in(*measure(all[k].name))
		}
	}
	for _, m := range Measures {
		if m.Head != "" && !slices.ContainsFunc(all, func(c column) bool { return c.name == m.Column }) {
			all = append(all, column{m.Column, in(m), true})
		}
	}
	return all
}

// MarshalJSON implements json.Marshaler: an object of the columns.
func (r Row) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // that is up to what prints it
	for k, c := range columns {
		b.WriteByte("{,"[min(k, 1)])
		err := e.Encode(c.name)
		b.WriteByte(':')
		if err := errors.Join(err, e.Encode(c.in(&r))); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON implements json.Unmarshaler. It leaves columns as they are that are missing.
func (r *Row) UnmarshalJSON(text []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	for _, c := range columns {
		if v, ok := values[c.name]; ok {
			if err := json.Unmarshal(v, c.in(r)); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	return nil
}

// Sentence says what was run, and what no policy exceeds, if that is known.
func (r *Report) Sentence() string {
	line := "Instance " + r.Instance
	if r.Algorithm != "" {
		line += ", learner " + r.Algorithm
	}
	line += fmt.Sprintf(", knowledge %s, budget %v, %s, %s from %d",
		r.Knowledge, r.Budget, plain.Count(r.Steps, "epoch"), plain.Count(r.Seeds, "seed"), r.Seed)
	if !r.Bound.IsZero() {
		line += "; in the mean no policy that keeps the budget earns more than " + r.Bound.Text(Figure) + " per epoch"
		switch {
		case r.Foresight:
			line += ", also one that knows what will be published"
		case r.Bound.Value() < 0: // a cost, to which the beginning adds little
			line += " in the long run; a short run, in which nothing waits at first, costs less"
		default:
			line += ", but where content is drawn at random a run may by chance"
		}
	}
	return line + "."
}

// Document implements [Printed].
func (r *Report) Document() Document {
	return Document{
		Value: r, Rows: r.rows(), Table: r.Table(), Notes: r.Notes, More: r.More,
		First: []string{
			"policy", "reward", "95 % interval", "% of Whittle", "share's interval", "crawls/epoch", "% over budget",
			"less Whittle", "difference's interval", "% of bound",
		},
	}
}

// rows is the table of CSV.
func (r *Report) rows() *Table {
	t := &Table{Header: []string{"instance", "algorithm", "knowledge", "budget", "steps", "seeds", "seed"}}
	var ordered []column
	for _, late := range []bool{false, true} {
		for _, c := range columns {
			if c.late == late {
				t.Header, ordered = append(t.Header, c.name), append(ordered, c)
			}
		}
	}
	for _, row := range r.Results {
		cells := []any{r.Instance, r.Algorithm, r.Knowledge, r.Budget, r.Steps, r.Seeds, r.Seed}
		for _, c := range ordered {
			cells = append(cells, reflect.ValueOf(c.in(&row)).Elem().Interface())
		}
		t.Add(cells...)
	}
	return t
}

// Table is the table that people read. Columns that no row fills are left out, and what
// exceeds the budget is marked. Measures that are not named here stand behind the others,
// where they are not 0 in all rows.
func (r *Report) Table() *Table {
	of := func(m *Measure) Column[Row] {
		return Column[Row]{m.Head, func(r Row) string { return m.Cell(*m.Of(&r.Outcome)) }}
	}
	columns := []Column[Row]{
		{"policy", func(r Row) string { return Marked(r.Policy, r.Over > 0) }},
		of(measure("reward")),
		{"95 % interval", func(r Row) string {
			if r.Same {
				return "all runs the same"
			}
			return between(Figure, r.Lo, r.Hi)
		}},
		{"less Whittle", func(r Row) string { return r.Diff.Text(Figure) }},
		{"difference's interval", func(r Row) string { return between(Figure, r.DiffLo, r.DiffHi) }},
		of(measure("crawls")),
		{"% of Whittle", func(r Row) string { return r.OfWhittle.Text(percentOf) }},
		{"share's interval", func(r Row) string { return between(percentOf, r.OfWhittleLo, r.OfWhittleHi) }},
		{"worst %", func(r Row) string { return r.Worst.Text(percentOf) }},
		{"% of bound", func(r Row) string { return r.OfBound.Text(percentOf) }},
		{"regret", func(r Row) string { return r.Regret.Text(Figure) }},
	}
	for k := range Measures {
		m := &Measures[k]
		named := slices.ContainsFunc(columns, func(c Column[Row]) bool { return c.Head == m.Head })
		there := slices.ContainsFunc(r.Results, func(r Row) bool { return *m.Of(&r.Outcome) != 0 })
		if m.Head != "" && !named && there {
			columns = append(columns, of(m))
		}
	}
	return Tabulate(r.Results, columns)
}

// between prints an interval, or nothing where there is none.
func between(print func(v float64) string, lo, hi Ratio) string {
	if lo.IsZero() || hi.IsZero() {
		return ""
	}
	return lo.Text(print) + " to " + hi.Text(print)
}

// Figure prints a number with two decimals, or in four digits and an exponent
// where that would hide it.
func Figure(v float64) string {
	if a := math.Abs(v); a != 0 && a < 0.1 || a >= 1e9 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
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
