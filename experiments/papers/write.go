package papers

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ephemera/experiments/result"
)

// Write prints the report. Table and markdown say below the rows why each
// verdict is as it is, and what was tried where the first reading did not give
// the figure; JSON and CSV hold all readings.
func (r *Report) Write(w io.Writer, f result.Format) error {
	switch f {
	case result.JSON:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(r)
	case result.CSV:
		return r.csv().Write(w, f)
	}
	t := &result.Table{
		Header: []string{"figure", "document", "place", "published", "measured", "95 % interval", "verdict"},
		Left:   map[int]bool{1: true, 2: true, 3: true, 6: true},
	}
	for _, x := range r.Rows {
		t.Add(x.ID, x.Document, x.Place, x.Printed, figureIn(x.Unit, x.Measured), between(x.Unit, x.Lo, x.Hi), string(x.Verdict))
	}
	if err := t.Write(w, f); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n\n", r.Sentence())
	for _, x := range r.Rows {
		id, item := x.ID, ""
		if f == result.Markdown {
			id, item = "`"+id+"`", "- "
		}
		fmt.Fprintf(&b, "%s%s (%s, %s): %s, %s\n", item, id, x.Quantity, x.Unit, x.Verdict, stop(x.Reason))
		if x.plain() {
			continue
		}
		if f == result.Markdown {
			b.WriteString("\n")
		}
		if f == result.Text { // a line each; a terminal shows no list otherwise
			b.WriteString("  Tried:\n")
			for _, a := range x.Tried {
				fmt.Fprintf(&b, "    %s\n", a.in(x.Unit))
			}
			continue
		}
		b.WriteString("  Tried: ")
		for i, a := range x.Tried {
			if i > 0 {
				b.WriteString("; ")
			}
			b.WriteString(a.in(x.Unit))
		}
		b.WriteString(".\n")
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
	return fmt.Sprintf("Of %d published figures %d are reproduced, %d differ and %d are not reproducible (%s from %d, %d epochs).",
		len(r.Rows), n[Reproduced], n[Differs], n[NotReproducible], result.Count(r.Seeds, "seed"), r.Seed, r.Steps)
}

// plain reports whether the first reading gives the figure.
func (x Row) plain() bool {
	return len(x.Tried) == 1 || x.Verdict == Reproduced && x.Tried[0].Agrees && x.Tried[0].Barred == ""
}

// in returns the reading and what it gave in that unit, with the range of
// single runs.
func (a Attempt) in(unit string) string {
	s := a.Reading + " " + figureIn(unit, a.Measured)
	if a.RunLo != nil && a.RunHi != nil {
		s += " (single runs " + between(unit, a.RunLo, a.RunHi) + ")"
	}
	return s
}

func (r *Report) csv() *result.Table {
	t := &result.Table{Header: []string{"id", "document", "place", "quantity", "unit", "printed", "published", "relation", "tolerance", "measured", "lo", "hi", "run_lo", "run_hi", "verdict", "reason", "tried"}}
	full := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	maybe := func(v *float64) string {
		if v == nil {
			return ""
		}
		return full(*v)
	}
	for _, x := range r.Rows {
		tried := make([]string, len(x.Tried))
		for i, a := range x.Tried {
			tried[i] = a.in(x.Unit)
		}
		t.Add(x.ID, x.Document, x.Place, x.Quantity, x.Unit, x.Printed, full(x.Published), string(x.Relation), full(x.Tolerance),
			full(x.Measured), maybe(x.Lo), maybe(x.Hi), maybe(x.RunLo), maybe(x.RunHi), string(x.Verdict), x.Reason, strings.Join(tried, "; "))
	}
	return t
}

// shares is the unit of figures that the papers print in per cent.
const shares = "share"

// figureIn prints a figure, a share in per cent.
func figureIn(unit string, v float64) string {
	if unit == shares {
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

// stop ends a sentence.
func stop(s string) string {
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}
