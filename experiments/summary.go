package experiments

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

// Contender is a learner or a policy of a comparison with its records: of each
// instance under each seed, in the same order for all contenders. A learner gives
// two rows: what it earns while it learns, and what it has learned.
type Contender struct {
	Name    string // of its row
	Learns  bool   // its rows are Name/learning and Name/learned, or without a Name learning and learned
	Records []*Record
}

// row is one row of a comparison in the making.
type row struct {
	policy   string
	records  []*Record
	learning bool // it is of what was earned while learning
}

func (c Contender) rows() []row {
	if !c.Learns {
		return []row{{c.Name, c.Records, false}}
	}
	prefix := ""
	if c.Name != "" {
		prefix = c.Name + "/"
	}
	return []row{{prefix + "learning", c.Records, true}, {prefix + "learned", c.Records, false}}
}

// part returns the figures of a run that the row is of.
func (x row) part(r *Record) *Figures {
	if x.learning {
		return &r.Learning
	}
	return &r.Learned
}

// values returns a figure of every run.
func (x row) values(figure func(f *Figures) float64) (all []float64) {
	for _, r := range x.records {
		all = append(all, figure(x.part(r)))
	}
	return all
}

func (x row) mean(figure func(f *Figures) float64) float64 { return stats.Mean(x.values(figure)) }

func (x row) rewards() []float64 { return x.values(func(f *Figures) float64 { return f.Reward }) }

// Compare summarizes a comparison of contenders under so many seeds from the first
// on: the mean of every row over all runs with its interval and its difference to
// the row named whittle, ordered by reward, rows that break the budget last. The
// notes say which of the best two rows is better, if one is.
func Compare(contenders []Contender, level env.Level, seeds int, first uint64) result.Report {
	var rows []row
	var learners []string
	speed := 0.
	for _, c := range contenders {
		rows = append(rows, c.rows()...)
		if c.Learns {
			speed = cmp.Or(speed, c.Records[0].Speed) // of the first
			learners = append(learners, strings.TrimSuffix(c.Records[0].Run.Algorithm(), "@"+string(level)))
		}
	}
	records := rows[0].records
	rep := result.Report{
		Instance: records[0].Instance, Algorithm: strings.Join(learners, "+"), Knowledge: string(level), Budget: records[0].Run.Instance.Budget,
		Steps: rows[0].part(records[0]).Epochs, Seeds: seeds, Seed: first, Speed: speed, Fitted: records[0].Fitted,
	}
	if n := len(records) / seeds; n > 1 {
		rep.Instance = fmt.Sprintf("%s and %d more", rep.Instance, n-1)
	}
	if bounds := boundsOf(records); bounds != nil {
		rep.Bound = result.Ptr(stats.Mean(bounds))
	}
	var whittle row
	if i := slices.IndexFunc(rows, func(x row) bool { return x.policy == "whittle" }); i >= 0 {
		whittle = rows[i]
	}
	boot := stats.New(first)
	for _, x := range rows {
		rep.Results = append(rep.Results, x.summarize(boot, whittle, seeds))
	}
	slices.SortStableFunc(rep.Results, func(a, b result.Row) int {
		if (a.Over > 0) != (b.Over > 0) {
			return cmp.Compare(a.Over, b.Over)
		}
		return cmp.Compare(b.Reward, a.Reward)
	})
	if len(records[0].Changes) > 0 {
		rep.Notes = append(rep.Notes, "The world changes: rows of learning are of all epochs, the others of the world that it becomes.")
	}
	rep.Notes = append(rep.Notes, verdict(rep.Results, rows, seeds)...)
	return rep
}

// boundsOf returns the bound of each run, or nil where one has none.
func boundsOf(records []*Record) (all []float64) {
	for _, r := range records {
		if r.Bound == nil {
			return nil
		}
		all = append(all, *r.Bound)
	}
	return all
}

// summarize aggregates a row. Its runs pair with Whittle's in the same epochs: where
// the world changes those of learning are others than those after it.
func (x row) summarize(boot *stats.Bootstrap, whittle row, seeds int) result.Row {
	whittle.learning = x.learning
	out := result.Row{
		Policy:  x.policy,
		Reward:  stats.Mean(x.rewards()),
		Crawls:  x.mean(func(f *Figures) float64 { return f.Crawls }),
		Over:    x.mean(func(f *Figures) float64 { return f.Over }),
		Overrun: x.mean(func(f *Figures) float64 { return f.Overrun }),
	}
	level, diff := x.intervals(boot, whittle, seeds)
	out.Same = level.Same
	if !level.Same {
		out.Lo, out.Hi = result.Ptr(level.Lo), result.Ptr(level.Hi)
	}
	if whittle.records != nil {
		ratios := floats.DivTo(make([]float64, len(x.records)), x.rewards(), whittle.rewards())
		out.OfWhittle = result.Ptr(stats.Mean(ratios))
		out.Diff = result.Ptr(out.Reward - stats.Mean(whittle.rewards()))
		if !diff.Same && x.policy != whittle.policy {
			out.DiffLo, out.DiffHi = result.Ptr(diff.Lo), result.Ptr(diff.Hi)
		}
		if len(ratios) > 1 {
			out.Worst = result.Ptr(slices.Min(ratios))
		}
	}
	if bounds := boundsOf(x.records); bounds != nil {
		out.OfBound = result.Ptr(stats.Mean(floats.DivTo(make([]float64, len(bounds)), x.rewards(), bounds)))
		out.Regret = result.Ptr(stats.Mean(bounds) - out.Reward)
	}
	return out
}

// blockDays is the length of the blocks that the bootstrap over days draws: a
// week, since weekdays differ and neighbouring days depend on each other.
const blockDays = 7

// intervals estimates the mean reward and its difference to Whittle's. What is
// drawn anew is what varies by chance: the seeds of one instance; the instances
// where there are several, for seeds of one share its parameters; weeks of a
// recording, which is the same under every seed.
func (x row) intervals(boot *stats.Bootstrap, whittle row, seeds int) (level, diff stats.Estimate) {
	if whittle.records == nil {
		whittle = x
	}
	own, base := x.independent(seeds), whittle.independent(seeds)
	less := floats.SubTo(make([]float64, len(own)), own, base)
	if x.records[0].Fitted {
		return boot.Blocks(own, blockDays), boot.Blocks(less, blockDays)
	}
	return boot.Mean(own), boot.Mean(less)
}

// independent returns the rewards of what varies by chance: of the days of a
// recording, of instances, or of seeds.
func (x row) independent(seeds int) []float64 {
	switch {
	case x.records[0].Fitted:
		days := make([]float64, len(x.part(x.records[0]).Days))
		for _, r := range x.records {
			floats.AddScaled(days, 1/float64(len(x.records)), x.part(r).Days)
		}
		return days
	case len(x.records) > seeds:
		return meansOf(x.rewards(), seeds)
	}
	return x.rewards()
}

// meansOf returns the mean of every n values in a row.
func meansOf(v []float64, n int) (means []float64) {
	for part := range slices.Chunk(v, n) {
		means = append(means, stats.Mean(part))
	}
	return means
}

// verdict says whether the best two rows that keep the budget can be told apart.
// While a learner learns it is no policy of its own.
func verdict(results []result.Row, rows []row, seeds int) []string {
	var ranked []row
	for _, r := range results {
		x := rows[slices.IndexFunc(rows, func(x row) bool { return x.policy == r.Policy })]
		if r.Over == 0 && !x.learning {
			ranked = append(ranked, x)
		}
	}
	if len(ranked) < 2 {
		return nil
	}
	best, second := ranked[0], ranked[1]
	x, y := best.independent(seeds), second.independent(seeds)
	if best.records[0].Fitted {
		days := len(x) / blockDays * blockDays // of whole weeks
		x, y = meansOf(x[:days], blockDays), meansOf(y[:days], blockDays)
	}
	switch {
	case len(x) < stats.MinSeeds:
		return nil
	case stats.Distinct(x, y, len(ranked)):
		return []string{fmt.Sprintf("The best is %s, before %s.", best.policy, second.policy)}
	}
	return []string{fmt.Sprintf("The best two, %s and %s, cannot be told apart.", best.policy, second.policy)}
}

// RunsTable has a row of what each part of each run earned, in the contenders' order.
func RunsTable(contenders []Contender) *result.Table {
	t := &result.Table{Header: []string{"policy", "instance", "seed", "epochs", "reward", "crawls", "cost", "over_budget", "overrun"}}
	for _, c := range contenders {
		for _, r := range c.Records {
			for _, x := range c.rows() {
				f := x.part(r)
				t.Add(x.policy, r.Instance, strconv.FormatUint(r.Run.Seed, 10), strconv.Itoa(f.Epochs),
					result.Exact(f.Reward), result.Exact(f.Crawls), result.Exact(f.Cost), result.Exact(f.Over), result.Exact(f.Overrun))
			}
		}
	}
	return t
}
