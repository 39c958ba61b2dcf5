package papers

import (
	"context"
	"errors"
	"fmt"

	"ephemera/experiments/stats"
)

// Options are the settings of [Run].
type Options struct {
	Seeds    int    // how many; at least 1, and 5 for intervals
	Seed     uint64 // the first
	Steps    int    // epochs of every random run; the papers have 10 000
	Workers  int    // runs at once; the result does not depend on it
	Progress func(done, total int)
}

// Row is one published figure with what was measured.
type Row struct {
	ID        string    `json:"id"`
	Document  string    `json:"document"`
	Place     string    `json:"place"`
	Quantity  string    `json:"quantity"`
	Unit      string    `json:"unit"`
	Printed   string    `json:"printed"`   // as in the document
	Published float64   `json:"published"` // the number that it is, or stands for
	Relation  Relation  `json:"relation"`  // in which measured has to stand to published
	Tolerance float64   `json:"tolerance"` // of published
	Measured  float64   `json:"measured"`
	Lo        *float64  `json:"lo"` // 95 % interval over seeds; nil where nothing is drawn
	Hi        *float64  `json:"hi"`
	RunLo     *float64  `json:"run_lo"` // where a single run falls 19 times of 20
	RunHi     *float64  `json:"run_hi"`
	Verdict   Verdict   `json:"verdict"`
	Reason    string    `json:"reason"`
	Tried     []Attempt `json:"tried"` // every reading, the one as printed first
}

// Report is the reproduction of all figures.
type Report struct {
	Seeds int    `json:"seeds"`
	Seed  uint64 `json:"seed"`
	Steps int    `json:"steps"`
	Rows  []Row  `json:"rows"`
}

// Run measures and judges every published figure.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Seeds < 1 || o.Steps < 1 || o.Workers < 1 {
		return nil, errors.New("papers: seeds, steps and workers have to be 1 or more")
	}
	s, err := study(ctx, o)
	if err != nil {
		return nil, err
	}
	boot := stats.New(o.Seed)
	rep := &Report{Seeds: o.Seeds, Seed: o.Seed, Steps: o.Steps}
	for _, f := range catalogue(s) {
		var attempts []Attempt
		for _, r := range f.readings {
			x, ok := s[r.key]
			if !ok {
				panic(fmt.Sprintf("papers: %s reads %q, which is not measured", f.id, r.key))
			}
			attempts = append(attempts, f.assess(r, x, boot))
		}
		rep.Rows = append(rep.Rows, f.row(attempts))
	}
	return rep, nil
}

func (f *figure) row(attempts []Attempt) Row {
	verdict, chosen, reason := judge(attempts, f.open)
	if f.note != "" {
		reason += ". " + f.note
	}
	a := attempts[chosen]
	return Row{
		ID: f.id, Document: f.document, Place: f.place, Quantity: f.quantity, Unit: f.unit,
		Printed: f.printed, Published: f.published, Relation: f.relation, Tolerance: f.tolerance,
		Measured: a.Measured, Lo: a.Lo, Hi: a.Hi, RunLo: a.RunLo, RunHi: a.RunHi,
		Verdict: verdict, Reason: reason, Tried: attempts,
	}
}
