package papers

import (
	"fmt"
	"strings"

	"ephemera/experiments/result"
)

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
	return result.Document{Value: r, Rows: t, Table: t, Notes: []string{r.Sentence(), strings.TrimSpace(reasons.String())}}
}

// explain writes a list item about the row, and one below it for each reading that
// was tried.
func (x *Row) explain(b *strings.Builder) {
	fmt.Fprintf(b, "- %s (%s, %s; %s): %s, %s.\n", x.ID, x.Quantity, x.Unit, x.Place, x.Verdict, strings.TrimSuffix(x.Reason, "."))
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
		fmt.Fprintf(b, "  - %s\n", a.in(x.Unit))
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
	return fmt.Sprintf("%d published figures are %d findings, as some are printed more than once: reproduced %s, reproduced by a reading %s, borderline %s, differ %s, not reproducible %s, uninformative %s (%s from %d, %d epochs).",
		len(r.Rows), findings, count(reproduced), count(byReading), count(borderline), count(differs), count(notReproducible), count(uninformative), result.Count(r.Seeds, "seed"), r.Seed, r.Steps)
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

// figureIn prints a figure, a share in per cent.
func figureIn(unit string, v float64) string {
	if unit == share {
		return fmt.Sprintf("%.2g %%", 100*v)
	}
	return result.Figure(v)
}

func between(unit string, lo, hi *float64) string {
	if lo == nil || hi == nil {
		return ""
	}
	return figureIn(unit, *lo) + " to " + figureIn(unit, *hi)
}
