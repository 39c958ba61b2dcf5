package experiments

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// Group is the runs of one row of a summary: of a policy, of a learner while it
// learns or as it has learned, or of a cell of a sweep.
type Group struct {
	Name string
	// Records are the runs, in one place of all groups under one seed and, of
	// policies, in one instance; nil where a run is missing.
	Records  []*Record
	Seeds    int      // so many runs in a row are of one instance
	Figures  []Figure // that are estimated
	Than     *Group   // with which it is compared; nil for none
	Learning bool     // it is of a learner while it learns, which is no policy of its own
}

// Row is what a summary says of a group.
type Row struct {
	Name string           `json:"id"`
	Mean []stats.Estimate `json:"mean"` // one per figure
	IQM  stats.Estimate   `json:"iqm"`  // of the metric
	// Of the metric: the mean less that of the group with which it is compared, over the
	// same seeds.
	Diff *stats.Estimate `json:"diff,omitempty"`
	Over bool            `json:"over,omitempty"` // its crawls cost more than the budget in some epochs
}

// Summary is what is said of groups of runs.
type Summary struct {
	Rows    []Row
	Order   []int    // numbers of the rows: the best by the metric first, those that exceed the budget last
	Notes   []string // sentences on the worlds of the runs
	Verdict string   // one sentence, "" where there is too little to tell
}

// Summarize estimates the figures of groups. The metric, one of them, is what the groups
// are compared by.
func Summarize(groups []Group, metric int) (s Summary) {
	for i, g := range groups {
		row := Row{Name: g.Name, IQM: stats.EstimateIQM(g.Values(metric))}
		for j, f := range g.Figures {
			x, _ := g.pair(&g, j)
			row.Mean = append(row.Mean, x.mean())
			row.Over = row.Over || f.Name == result.OverBudget && row.Mean[j].Value > 0
		}
		if g.Than != nil {
			x, y := g.pair(g.Than, metric)
			diff := x.minus(y).mean()
			row.Diff = &diff
		}
		s.Rows, s.Order = append(s.Rows, row), append(s.Order, i)
	}
	value := func(i int) float64 { // greater ones are better; NaN is less than any
		v := s.Rows[i].Mean[metric].Value
		if groups[i].Figures[metric].Less {
			v = -v
		}
		return v
	}
	slices.SortStableFunc(s.Order, func(i, j int) int { return cmp.Compare(value(j), value(i)) })
	var last []int
	var ranked []Group
	for _, i := range s.Order {
		if s.Rows[i].Over {
			last = append(last, i)
		} else if !groups[i].Learning && !math.IsNaN(value(i)) {
			ranked = append(ranked, groups[i])
		}
	}
	s.Order = append(slices.DeleteFunc(s.Order, func(i int) bool { return s.Rows[i].Over }), last...)
	s.Verdict = verdict(ranked, metric)
	for _, g := range groups {
		for _, r := range g.Records {
			for _, note := range r.notes() {
				if !slices.Contains(s.Notes, note) {
					s.Notes = append(s.Notes, note)
				}
			}
		}
	}
	return s
}

// notes are sentences on the world of a run: whether it is a recording, whether it
// changes, and when it becomes known in it what an item is worth, if they differ in that.
func (r *Record) notes() (notes []string) {
	if r == nil {
		return nil
	}
	if r.Fitted {
		notes = append(notes, "Whittle has parameters that were fitted on the first part of the recording.")
	}
	if len(r.Changes) > 0 {
		notes = append(notes,
			"The world changes: what is earned while learning is of all epochs, "+
				"the rest of the world that it becomes.")
	}
	wait, late := strings.CutPrefix(r.Run.World.FeedbackDelay, "late:")
	switch {
	case late:
		notes = append(notes,
			"What an item is worth becomes known "+wait+" after its publication; "+
				"learners of whole harvests count it as the mean of its source before.")
	case r.Run.World.FeedbackDelay == "now":
		notes = append(notes, "What an item is worth in the end is known when it is crawled.")
	case r.Run.World.FeedbackDelay == "never":
		notes = append(notes, "All items count 1, whatever their utility.")
	}
	return notes
}

// Warnings are sentences on rows that exceed the budget, and on what is wrong with the
// means of the figures that are shown, each once.
func Warnings(rows []Row, shown []int) (all []string) {
	about := map[string]bool{}
	for _, row := range rows {
		if row.Over {
			about["crawls of rows marked * cost more than the budget in some epochs; they are not ranked"] = true
		}
		for _, j := range shown {
			about[row.Mean[j].Warning] = true
		}
	}
	delete(about, "") // none
	for _, warning := range slices.Sorted(maps.Keys(about)) {
		all = append(all, "Warning: "+warning+".")
	}
	return all
}

// verdict says of groups, the best first, which is the best, or that the best two cannot
// be told apart, as the interval of their difference has it; nothing where there are too
// few runs to tell. That they are the best two of many needs no correction: of policies
// that earn the same the best two lie closer together than any two (Gutmann and Maymin,
// 1987; Hung and Fithian, 2019).
func verdict(ranked []Group, metric int) string {
	if len(ranked) < 2 {
		return ""
	}
	best, second := ranked[0], ranked[1]
	x, y := best.pair(&second, metric)
	diff := x.minus(y).mean()
	by := ""
	if name := best.Figures[metric].Name; name != "" {
		by = " by " + name
	}
	switch {
	case math.IsNaN(diff.Lo):
		return ""
	case diff.Leaves(0):
		return fmt.Sprintf("The best%s is %s, before %s.", by, best.Name, second.Name)
	}
	return fmt.Sprintf("The best two%s, %s and %s, cannot be told apart.", by, best.Name, second.Name)
}

// blockDays is the length of the blocks of days that vary by chance: a week, since
// weekdays differ and neighbouring days depend on each other.
const blockDays = 7

// sample is a figure of runs.
type sample struct {
	runs []float64
	// replicates are what varies by chance: the runs, under seeds of one
	// instance; the means of the instances where there are several, for seeds of one
	// share its parameters; the days of a recording, which is the same under every
	// seed.
	replicates []float64
	days       bool
}

// pair returns a figure in the runs that both groups have, of both. Of a recording of which one plays
// more days than the other there are no pairs of days, so that a difference has no interval.
func (g *Group) pair(other *Group, figure int) (x, y sample) {
	var own, others []*Record
	for k, r := range g.Records {
		if r != nil && other.Records[k] != nil {
			own, others = append(own, r), append(others, other.Records[k])
		}
	}
	x, y = g.sample(own, figure), g.sample(others, figure)
	if len(x.replicates) != len(y.replicates) {
		x.replicates, y.replicates = nil, nil
	}
	return x, y
}

func (g *Group) sample(runs []*Record, figure int) (s sample) {
	f := g.Figures[figure]
	for _, r := range runs {
		s.runs = append(s.runs, f.Of(r))
	}
	switch {
	case len(runs) > 0 && runs[0].Fitted && f.Days != nil:
		s.replicates, s.days = make([]float64, len(f.Days(runs[0]))), true
		for _, r := range runs {
			floats.AddScaled(s.replicates, 1/float64(len(runs)), f.Days(r))
		}
	default:
		s.replicates = g.replicates(s.runs)
	}
	return s
}

// replicates returns the runs, or the means of the instances where there are several.
func (g *Group) replicates(runs []float64) []float64 {
	if len(runs) > g.Seeds {
		return meansOf(runs, g.Seeds)
	}
	return runs
}

// Values returns a figure of the runs that there are.
func (g *Group) Values(figure int) []float64 {
	x, _ := g.pair(g, figure)
	return x.runs
}

// minus returns the difference of two samples of the same seeds.
func (s sample) minus(y sample) sample {
	return sample{
		runs:       floats.SubTo(make([]float64, len(s.runs)), s.runs, y.runs),
		replicates: floats.SubTo(make([]float64, len(s.replicates)), s.replicates, y.replicates),
		days:       s.days,
	}
}

// mean estimates the mean over the runs.
func (s sample) mean() (e stats.Estimate) {
	if s.days {
		return stats.EstimateBlocks(s.replicates, blockDays).Around(stats.Mean(s.runs))
	}
	if e = stats.EstimateMean(s.replicates); len(s.replicates) < len(s.runs) {
		e.Warning = strings.Replace(e.Warning, "seeds", "instances", 1)
	}
	e.Value = stats.Mean(s.runs)
	return e
}

// meansOf returns the mean of every n values in a row.
func meansOf(v []float64, n int) (means []float64) {
	for part := range slices.Chunk(v, n) {
		means = append(means, stats.Mean(part))
	}
	return means
}
