package experiments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// Contender is a learner or a policy of a comparison with its records: of each
// instance under each seed, in the same order for all contenders. A learner gives
// two rows: what it earns while it learns, and what it has learned. So does each policy
// where the world changes: what it earns over the epochs of learning, with their
// changes, and what it earns where learned policies are measured, in the world that
// this one becomes.
type Contender struct {
	Name    string // of its row
	Learns  bool   // its rows are Name/learning and Name/learned, or without a Name learning and learned
	Records []*Record
}

// changes reports whether the world of a run changes while learning.
func (c Contender) changes() bool {
	return slices.ContainsFunc(c.Records, func(r *Record) bool { return len(r.Changes) > 0 })
}

// isWhittle reports whether it is the policy whittle, whatever its row is called.
func (c Contender) isWhittle() bool {
	algorithm, _, _ := strings.Cut(c.Records[0].Run.Algorithm(), "@")
	return algorithm == "whittle"
}

// groups returns the runs as those of the contender's rows. Their figures are the measures.
func (c Contender) groups(seeds int) []Group {
	group := func(name string, learning bool) Group {
		g := Group{Name: name, Records: c.Records, Seeds: seeds, Learning: learning}
		for _, m := range result.Measures {
			g.Figures = append(g.Figures, figureOf(m, m.Column, "", learning))
		}
		g.Figures[reward].Name = "" // by which policies are compared, as a matter of course
		return g
	}
	switch {
	case !c.Learns && c.changes():
		return []Group{group(c.Name+"/learning", true), group(c.Name, false)}
	case !c.Learns:
		return []Group{group(c.Name, false)}
	case c.Name != "":
		c.Name += "/"
	}
	return []Group{group(c.Name+"learning", true), group(c.Name+"learned", false)}
}

// reward is the place of what is earned among the measures.
var reward = slices.IndexFunc(result.Measures, func(m result.Measure) bool { return m.Name == "reward" })

// Compare summarizes a comparison of contenders under so many seeds from the first
// on: the mean of every row over all runs with its interval and its difference to
// the row of the policy whittle, ordered by reward, rows that break the budget last.
func Compare(contenders []Contender, level env.Level, seeds int, first uint64) result.Report {
	var groups []Group
	for _, c := range contenders {
		groups = append(groups, c.groups(seeds)...)
	}
	if k := slices.IndexFunc(contenders, Contender.isWhittle); k >= 0 {
		whittle := groups[slices.IndexFunc(groups, func(g Group) bool { return g.Name == contenders[k].Name })]
		for k := range groups {
			groups[k].Than = &whittle
		}
	}
	sum := Summarize(groups, reward)
	verdicts := []string{sum.Verdict}
	// What is earned over other epochs has a place, and a verdict, of its own.
	if slices.ContainsFunc(contenders, Contender.changes) {
		learning := func(i int) bool { return groups[i].Learning }
		var ranked []Group
		for _, i := range sum.Order {
			if learning(i) && !sum.Rows[i].Over {
				ranked = append(ranked, groups[i])
			}
		}
		verdicts = []string{verdict(ranked, reward), sum.Verdict}
		rest := slices.DeleteFunc(slices.Clone(sum.Order), learning)
		sum.Order = append(slices.DeleteFunc(sum.Order, func(i int) bool { return !learning(i) }), rest...)
	}
	var bounds []float64
	for _, r := range groups[0].Records {
		bounds = append(bounds, r.Bound.Value())
	}
	rep := compared(contenders, groups[0], level)
	rep.Seeds, rep.Seed, rep.Bound = seeds, first, result.RatioOf(stats.Mean(bounds))
	for _, i := range sum.Order {
		rep.Results = append(rep.Results, groups[i].report(&sum.Rows[i], bounds))
	}
	var shown []int
	if len(groups[0].Records) > 1 { // one run has no interval
		shown = []int{reward}
	}
	rep.Notes = slices.Concat([]string{rep.Sentence()}, sum.Notes, Warnings(sum.Rows, shown), verdicts)
	return rep
}

// compared opens the report of contenders: what was run, as the runs of one group have it.
func compared(contenders []Contender, g Group, level env.Level) result.Report {
	one := g.Records[0]
	rep := result.Report{
		Instance: one.Instance, Knowledge: string(level), Budget: one.Run.Instance.Budget,
		Steps: one.part(g.Learning).Epochs, Foresight: one.Fitted,
	}
	several := map[string]bool{} // instances: each compared under every seed, or each seed's own
	for _, r := range g.Records {
		several[r.Instance] = true
	}
	if n := len(several); n > 1 {
		rep.Instance = fmt.Sprintf("%s and %d more", rep.Instance, n-1)
	}
	var learners []string
	for _, c := range contenders {
		if c.Learns {
			rep.Speed = cmp.Or(rep.Speed, c.Records[0].Speed) // of the first
			learners = append(learners, strings.TrimSuffix(c.Records[0].Run.Algorithm(), "@"+string(level)))
		}
	}
	rep.Algorithm = strings.Join(learners, "+")
	return rep
}

// report returns the row of a group as commands print it. Its runs pair with Whittle's
// in the same epochs: where the world changes those of learning are others than those
// after it.
func (g *Group) report(r *Row, bounds []float64) result.Row {
	m, earned := r.Mean, g.Values(reward)
	mean := func(num, den []float64) result.Ratio {
		return result.RatioOf(stats.Mean(result.Shares(num, den)))
	}
	out := result.Row{
		Policy: g.Name, Same: m[reward].Same,
		OfBound: mean(earned, bounds), Regret: result.RatioOf(stats.Mean(bounds) - m[reward].Value),
	}
	out.Epochs = g.Records[0].part(g.Learning).Epochs
	for j, x := range result.Measures {
		*x.Of(&out.Outcome) = m[j].Value
	}
	if !out.Same {
		out.Lo, out.Hi = result.RatioOf(m[reward].Lo), result.RatioOf(m[reward].Hi)
	}
	if g.Than != nil {
		own, whittle := g.pair(g.Than, reward)
		share := g.share(own, whittle)
		out.OfWhittle, out.Diff = result.RatioOf(share.Value), result.RatioOf(r.Diff.Value)
		if !r.Diff.Same && g.Name != g.Than.Name {
			out.DiffLo, out.DiffHi = result.RatioOf(r.Diff.Lo), result.RatioOf(r.Diff.Hi)
			out.OfWhittleLo, out.OfWhittleHi = result.RatioOf(share.Lo), result.RatioOf(share.Hi)
		}
		if len(earned) > 1 {
			out.Worst = result.RatioOf(slices.Min(result.Shares(earned, whittle.runs)))
		}
	}
	return out
}

// share estimates the mean share that the runs of x have of what those of y earn.
func (g *Group) share(x, y sample) stats.Estimate {
	runs := result.Shares(x.runs, y.runs)
	if !x.days {
		return sample{runs: runs, replicates: g.replicates(runs)}.mean()
	}
	if floats.Sum(y.replicates) < 0 {
		x, y = y, x // as result.Share has it
	}
	return stats.EstimateRatio(x.replicates, y.replicates, blockDays).Around(stats.Mean(runs))
}

// Part is what a row of a comparison has of one run.
type Part struct {
	Policy   string `json:"policy"` // name of the row
	Instance string `json:"instance"`
	Seed     uint64 `json:"seed"`
	*Figures
	Curve []CurvePoint `json:"-"` // of the part that has one; the other's is empty
}

// Parts returns what each row of a comparison has of each run, in the contenders' order.
func Parts(contenders []Contender) (all []Part) {
	for _, c := range contenders {
		groups := c.groups(len(c.Records))
		for _, r := range c.Records {
			for k, g := range groups {
				p := Part{Policy: g.Name, Instance: r.Instance, Seed: r.Run.Seed, Figures: r.part(g.Learning)}
				if k == 0 {
					p.Curve = r.Curve
				}
				all = append(all, p)
			}
		}
	}
	return all
}

// RunsTable has a row for each part of each run.
func RunsTable(contenders []Contender) *result.Table {
	t := &result.Table{Header: []string{"policy", "instance", "seed", "epochs"}}
	for _, m := range result.Measures {
		t.Header = append(t.Header, m.Column)
	}
	t.Header = append(t.Header, "whittle", "of_whittle", "of_bound")
	for _, p := range Parts(contenders) {
		cells := []any{p.Policy, p.Instance, p.Seed, p.Epochs}
		for _, m := range result.Measures {
			cells = append(cells, *m.Of(&p.Outcome))
		}
		t.Add(append(cells, p.Whittle, p.OfWhittle, p.OfBound)...)
	}
	return t
}
