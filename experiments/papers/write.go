package papers

import (
	"fmt"
	"io"
	"strings"

	"ephemera/experiments/result"
)

// share is the unit of what is printed in per cent.
const share = "share"

// Write prints the report. Table and markdown say below the rows why each
// verdict is as it is, and what was tried where the printed reading did not give
// the figure; JSON and CSV hold all readings.
func (r *Report) Write(w io.Writer, f result.Format) error {
	switch f {
	case result.JSON:
		return result.WriteJSON(w, r)
	case result.CSV:
		return r.csv().Write(w, f)
	}
	t := &result.Table{
		Header: []string{"figure", "published", "measured", "95 % interval", "verdict", "document"},
		Left:   map[int]bool{4: true, 5: true},
	}
	for _, x := range r.Rows {
		t.Add(x.ID, x.Printed, figureIn(x.Unit, x.Measured), between(x.Unit, x.Lo, x.Hi), string(x.Verdict), x.Document)
	}
	if err := t.Write(w, f); err != nil {
		return err
	}
	item := ""
	if f == result.Markdown {
		item = "- "
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n\n", r.Sentence())
	for _, x := range r.Rows {
		fmt.Fprintf(&b, "%s%s (%s, %s; %s): %s, %s.\n", item, x.ID, x.Quantity, x.Unit, x.Place, x.Verdict, strings.TrimSuffix(x.Reason, "."))
		if len(x.Tried) == 1 || x.Verdict == reproduced {
			continue
		}
		b.WriteString("  Tried:\n")
		others := 0
		for _, a := range x.Tried {
			if a.Excluded == untied {
				others++
				continue
			}
			fmt.Fprintf(&b, "  %s%s\n", item, a.in(x.Unit))
		}
		if others > 0 {
			fmt.Fprintf(&b, "  %sand %d for which %s\n", item, others, untied)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Sentence counts the verdicts.
func (r *Report) Sentence() string {
	n := map[Verdict]int{}
	for _, x := range r.Rows {
		n[x.Verdict]++
	}
	return fmt.Sprintf("Of %d published figures %d are reproduced, %d are reproduced by a reading, %d are borderline, %d differ and %d are not reproducible (%s from %d, %d epochs).",
		len(r.Rows), n[reproduced], n[byReading], n[borderline], n[differs], n[notReproducible], result.Count(r.Seeds, "seed"), r.Seed, r.Steps)
}

// in returns the reading and what it gave in that unit.
func (a attempt) in(unit string) string {
	s := a.Text + " " + figureIn(unit, a.Measured)
	if a.RunLo != nil {
		s += " (single runs " + between(unit, a.RunLo, a.RunHi) + ")"
	}
	if a.Excluded != "" {
		s += "; left out, for " + a.Excluded
	}
	return s
}

func (r *Report) csv() *result.Table {
	t := &result.Table{Header: []string{"id", "document", "place", "quantity", "unit", "printed", "accepted_lo", "accepted_hi", "reading", "measured", "lo", "hi", "run_lo", "run_hi", "p", "verdict", "reason", "tried"}}
	for _, x := range r.Rows {
		tried := make([]string, len(x.Tried))
		for i, a := range x.Tried {
			tried[i] = a.in(x.Unit)
		}
		t.Add(x.ID, x.Document, x.Place, x.Quantity, x.Unit, x.Printed, result.Exact(x.Accepted[0]), result.Exact(x.Accepted[1]), x.Reading,
			result.Exact(x.Measured), result.Optional(x.Lo, result.Exact), result.Optional(x.Hi, result.Exact), result.Optional(x.RunLo, result.Exact), result.Optional(x.RunHi, result.Exact), result.Exact(x.P), string(x.Verdict), x.Reason, strings.Join(tried, "; "))
	}
	return t
}

// figureIn prints a figure, a share in per cent.
func figureIn(unit string, v float64) string {
	if unit == share {
		return fmt.Sprintf("%.2g %%", 100*v)
	}
	return number(v)
}

func between(unit string, lo, hi *float64) string {
	if lo == nil || hi == nil {
		return ""
	}
	return figureIn(unit, *lo) + " to " + figureIn(unit, *hi)
}
