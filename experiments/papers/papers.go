// Package papers measures every figure that four documents print, judges it,
// and draws the figures of TCNS.
//
//   - TCNS: Avrachenkov and Borkar, "Whittle index policy for crawling ephemeral
//     content", IEEE Transactions on Control of Network Systems 5(1), 2018
//   - CDC: the conference version, CDC 2015
//   - slides: the talk at MAS 2016, Grenoble
//   - Allerton: the same authors, "A learning algorithm for the Whittle index
//     policy for scheduling web crawlers", Allerton conference 2019
//
// From a model to a verdict:
//
//  1. figures.toml says what was printed, where, and how it is measured: a
//     reading is one way to fill what a document leaves open. table.go reads it.
//  2. play.go measures every reading: one value, or one for each seed, on the
//     content that is drawn there.
//  3. judge.go compares what all readings gave with the printed figure.
//  4. The rows are printed here, and pictures.go draws.
package papers

import (
	"context"
	"fmt"
	"strings"

	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/internal/plain"
)

// DefaultSeeds are enough for the verdicts not to turn on the first seed.
const DefaultSeeds = 200

// Options are the settings of [Run]. Of the batch it takes directory, workers, shard
// and progress; its runs are seeds.
type Options struct {
	Seeds int    // how many; at least 1, and 5 for intervals
	Seed  uint64 // the first
	Steps int    // epochs of every random run; the papers have 10 000
	experiments.Batch
}

// Row is one published figure with what was measured.
type Row struct {
	ID       string `json:"id"`
	Document string `json:"document"` // all that print it, separated by semicolons
	Place    string `json:"place"`    // in each of them
	Quantity string `json:"quantity"`
	Unit     string `json:"unit"`
	Printed  string `json:"printed"` // as in the document
	// What the measured figure has to lie in: the printed number give or take its rounding,
	// or what words stand for.
	Accepted [2]float64 `json:"accepted"`
	Reading  string     `json:"reading"` // the one measured: "printed", or its name among those tried
	measure             // p is corrected for the readings tried
	Verdict  Verdict    `json:"verdict"`
	Reason   string     `json:"reason"`
	Wide     string     `json:"wide,omitempty"` // why next to nothing could fail Accepted, where that is so
	Same     string     `json:"same,omitempty"` // the figure of which this is another print: both are one finding
	Tried    []attempt  `json:"tried"`          // every reading, the one as printed first
}

// attempt is the outcome of one reading.
type attempt struct {
	Reading string `json:"reading"`
	Text    string `json:"text"`
	measure
	Excluded string `json:"excluded"` // why the reading may not stand for the figure; empty if it may

	scale float64 // standard deviation of a single run about the measured mean
	nu    float64 // its degrees of freedom
	off   float64 // how far what is printed lies from the mean beyond its rounding, in units of scale
}

// measure is what a reading gave.
type measure struct {
	Measured float64 `json:"measured"`
	// 95 % interval of the mean over seeds; missing where nothing is drawn or for too few seeds.
	Lo result.Ratio `json:"lo"`
	Hi result.Ratio `json:"hi"`
	// The least and the greatest of the single runs; missing where nothing is drawn.
	RunLo result.Ratio `json:"run_lo"`
	RunHi result.Ratio `json:"run_hi"`
	// Share of single runs that lie as far from the mean as what is printed; 0 or 1 where
	// nothing is drawn.
	P float64 `json:"p"`
}

// Report is the reproduction of all figures.
type Report struct {
	Seeds int    `json:"seeds"`
	Seed  uint64 `json:"seed"`
	Steps int    `json:"steps"`
	Rows  []Row  `json:"rows"`
}

// ReportFile is the file in which a directory of results has a [Report].
const ReportFile = "papers.json"

// Run measures and judges every published figure. With a shard it returns nil
// while seeds of other shards are not measured.
func Run(ctx context.Context, o Options) (*Report, error) {
	figures := readFigures()
	s, err := measureAll(ctx, o, figures)
	if err != nil || s == nil {
		return nil, err
	}
	fillIn(figures, s)
	rep := &Report{Seeds: o.Seeds, Seed: o.Seed, Steps: o.Steps}
	for _, f := range figures {
		rep.Rows = append(rep.Rows, f.row(s))
	}
	return rep, nil
}

// row judges a figure.
func (f *figure) row(s samples) Row {
	for _, r := range f.readings {
		f.Tried = append(f.Tried, f.assess(r, s[r.Key]))
	}
	verdict, chosen, p, reason := f.judge(f.Tried)
	if f.Wide != "" {
		reason += ". The accepted range is wide: " + f.Wide
	}
	if f.Same != "" {
		reason += ". It is one finding with " + f.Same
	}
	if f.Note != "" {
		reason += ". " + f.Note
	}
	f.Verdict, f.Reason, f.Reading, f.measure = verdict, reason, f.readings[chosen].Key, f.Tried[chosen].measure
	f.P = p
	if chosen == 0 {
		f.Reading = "printed"
	}
	return f.Row
}

// share is the unit of what is printed in per cent.
const share = "share"

// Document implements [result.Printed]. The notes say why each verdict is as it is,
// and what was tried where the printed reading did not give the figure; JSON holds
// all readings.
func (r *Report) Document() result.Document {
	t := &result.Table{
		Header: []string{"figure", "published", "measured", "95 % interval", "verdict", "document"},
		Left:   map[int]bool{4: true, 5: true},
	}
	var reasons strings.Builder
	for _, x := range r.Rows {
		verdict := string(x.Verdict)
		if x.Wide != "" {
			verdict += ", wide range"
		}
		t.Add(x.ID, x.Printed, figureIn(x.Unit, x.Measured), between(x.Unit, x.Lo, x.Hi), verdict, x.Document)
		x.explain(&reasons)
	}
	notes := []string{r.Sentence(), strings.TrimSpace(reasons.String())}
	return result.Document{Value: r, Rows: t, Table: t, Notes: notes}
}

// explain writes a list item about the row, and one below it for each reading that
// was tried.
func (x *Row) explain(b *strings.Builder) {
	fmt.Fprintf(b, "- %s (%s, %s; %s): %s, %s.\n",
		x.ID, x.Quantity, x.Unit, x.Place, x.Verdict, strings.TrimSuffix(x.Reason, "."))
	if len(x.Tried) == 1 || x.Verdict == reproduced {
		return
	}
	b.WriteString("  Tried:\n")
	others := 0
	for _, a := range x.Tried {
		if a.Excluded == untied {
			others++
			continue
		}
		fmt.Fprintf(b, "  - %s %s", a.Text, figureIn(x.Unit, a.Measured))
		if !a.RunLo.IsZero() {
			fmt.Fprintf(b, " (single runs %s)", between(x.Unit, a.RunLo, a.RunHi))
		}
		if a.Excluded != "" {
			fmt.Fprintf(b, "; left out, for %s", a.Excluded)
		}
		b.WriteString("\n")
	}
	if others > 0 {
		fmt.Fprintf(b, "  - and %d for which %s\n", others, untied)
	}
}

// Sentence counts the findings by their verdicts: a figure that is printed more
// than once is one finding.
func (r *Report) Sentence() string {
	n, wide := map[Verdict]int{}, map[Verdict]int{}
	findings := 0
	for _, x := range r.Rows {
		if x.Same != "" {
			continue
		}
		findings++
		n[x.Verdict]++
		if x.Wide != "" {
			wide[x.Verdict]++
		}
	}
	count := func(v Verdict) string {
		if wide[v] > 0 {
			return fmt.Sprintf("%d (%d of them over a range that next to nothing could fail)", n[v], wide[v])
		}
		return fmt.Sprint(n[v])
	}
	return fmt.Sprintf("%d published figures are %d findings, as some are printed more than once: "+
		"reproduced %s, reproduced by a reading %s, borderline %s, differ %s, not reproducible %s, "+
		"uninformative %s (%s from %d, %d epochs).",
		len(r.Rows), findings,
		count(reproduced), count(byReading), count(borderline), count(differs), count(notReproducible),
		count(uninformative), plain.Count(r.Seeds, "seed"), r.Seed, r.Steps)
}

// figureIn prints a figure, a share in per cent.
func figureIn(unit string, v float64) string {
	if unit == share {
		return fmt.Sprintf("%.2g %%", 100*v)
	}
	return result.Figure(v)
}

func between(unit string, lo, hi result.Ratio) string {
	if lo.IsZero() || hi.IsZero() {
		return ""
	}
	return figureIn(unit, lo.Value()) + " to " + figureIn(unit, hi.Value())
}
