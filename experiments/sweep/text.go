package sweep

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// textRows is how many cells the terminal shows.
const textRows = 40

// Text writes the summary for a terminal: the answer, the short table, and the
// metric of each cell as a point between the ends of its interval.
func (s *Summary) Text(w io.Writer) error {
	shown := make([]int, 0, textRows)
	for i := range s.Cells {
		shown = append(shown, i)
	}
	more := ""
	if len(shown) > textRows {
		shown = s.Ranking()[:textRows]
		more = fmt.Sprintf("The %d best of %d cells; summary.md has all.\n", textRows, len(s.Cells))
	}
	t := result.Table{Header: s.Head()}
	for _, i := range shown {
		t.Add(s.Body(i)...)
	}
	if err := t.Write(w, result.Text); err != nil {
		return err
	}
	fmt.Fprintln(w, more)
	s.dots(w, shown)
	for _, warning := range s.Warnings() {
		fmt.Fprintf(w, "\nWarning: %s.", warning)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", s.Answer)
	return err
}

// dots draws the metric of the cells on one scale.
func (s *Summary) dots(w io.Writer, cells []int) {
	const width = 50
	m := s.Column(s.Metric)
	lo, hi := math.Inf(1), math.Inf(-1)
	name := 0
	bounds := func(e stats.Estimate) (float64, float64) {
		if math.IsNaN(e.Lo) {
			return e.Value, e.Value
		}
		return e.Lo, e.Hi
	}
	for _, i := range cells {
		name = max(name, utf8.RuneCountInString(s.Cells[i].ID))
		a, b := bounds(s.Cells[i].Mean[m])
		if math.IsNaN(a) || math.IsInf(a, 0) || math.IsInf(b, 0) {
			continue
		}
		lo, hi = math.Min(lo, a), math.Max(hi, b)
	}
	if !(lo < hi) {
		return
	}
	at := func(v float64) int { return int(math.Round((v - lo) / (hi - lo) * (width - 1))) }
	fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", name+2), s.Metric)
	for _, i := range cells {
		line := []rune(strings.Repeat(" ", width))
		e := s.Cells[i].Mean[m]
		if a, b := bounds(e); !math.IsNaN(a) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
			for k := at(a); k <= at(b); k++ {
				line[k] = '─'
			}
			line[at(e.Value)] = '●'
		}
		id := s.Cells[i].ID
		fmt.Fprintf(w, "%s%s  %s\n", id, strings.Repeat(" ", name-utf8.RuneCountInString(id)), strings.TrimRight(string(line), " "))
	}
	left, right := stats.Format(lo), stats.Format(hi)
	fmt.Fprintf(w, "%s%s%s%s\n", strings.Repeat(" ", name+2), left, strings.Repeat(" ", max(1, width-utf8.RuneCountInString(left)-utf8.RuneCountInString(right))), right)
}
