package report

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/papers"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
	"ephemera/internal/files"
)

// resultFile is the report of train, bench, or compare in Python.
const resultFile = "result.json"

// readResult makes the page of what train or bench kept.
func readResult(ctx context.Context, dir string) (*Page, error) {
	r, err := files.ReadJSON[result.Report](filepath.Join(dir, resultFile))
	if err != nil {
		return nil, err
	}
	of, err := experiments.ReadRuns(dir)
	if errors.Is(err, fs.ErrNotExist) && !exists(filepath.Join(dir, experiments.RunsFile)) {
		return readSaved(dir, r)
	}
	if err != nil {
		return nil, err
	}
	p := &Page{Title: fmt.Sprintf("%s, budget %v", r.Instance, r.Budget)}
	if p.Command, err = readText(dir, "command.txt"); err != nil {
		return nil, err
	}
	if exists(filepath.Join(dir, "metrics.csv")) { // of train
		if p.Config, err = readText(dir, "config.toml"); err != nil {
			return nil, err
		}
	}
	var groups []group
	var contenders []experiments.Contender
	for k, row := range r.Results {
		name := strings.TrimSuffix(row.Policy, "/learned")
		c := experiments.Contender{Name: name, Learns: name != row.Policy, Records: of[name]}
		g := group{name: name, style: k, records: of[name]}
		if g.records == nil {
			continue
		}
		if name == "learned" {
			c.Name, c.Learns = "", true
			if algorithm, _, _ := strings.Cut(g.records[0].Run.Algorithm(), "@"); of[algorithm] == nil {
				g.name = algorithm
			}
		}
		g.over = slices.ContainsFunc(g.records, func(rec *experiments.Record) bool { return rec.Learning.Over > 0 })
		contenders, groups = append(contenders, c), append(groups, g)
	}
	if len(contenders) == 0 {
		return nil, fmt.Errorf("%s has no run of a policy of %s; make the comparison again",
			filepath.Join(dir, experiments.RunsFile), resultFile)
	}
	compared := experiments.Compare(contenders, env.Level(r.Knowledge), r.Seeds, r.Seed)
	p.Notes, p.Sections = compared.Notes, []Section{rewards(r), learning(groups)}
	for _, g := range groups {
		if rec := g.records[0]; r.Seeds == 1 && g.name == r.Algorithm {
			in, err := played(ctx, dir, rec)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			} else if err != nil {
				p.Warnings = append(p.Warnings, fmt.Sprintf("What was learned of each source is not drawn: %v.", err))
				continue
			}
			p.Sections = append(p.Sections, drawTraining(in, rec)...)
		}
	}
	return p, nil
}

// played returns the instance of a run that a directory keeps. The files that its settings name are
// read anew, and may be gone, or others than the run had.
func played(ctx context.Context, dir string, rec *experiments.Record) (env.Instance, error) {
	e := new(experiments.Engine)
	job, err := e.Resolve(ctx, rec.Run)
	if err != nil {
		return env.Instance{}, err
	}
	hash, err := e.Hash(job)
	if err != nil {
		return env.Instance{}, err
	}
	if _, err := experiments.ReadRecord(dir, hash, rec.Run.Seed); err != nil {
		return env.Instance{}, errors.New("the learner, or a file that the settings name, is another now")
	}
	return job.Scene.Instance, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readText returns what a file of a directory holds, "" where there is none.
func readText(dir, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return strings.TrimSpace(string(text)), err
}

// readSaved makes the page of a comparison of the Python package: of its result and
// its curves, since it keeps no records.
func readSaved(dir string, r *result.Report) (*Page, error) {
	groups, err := readCurves(filepath.Join(dir, "curves.csv"), r)
	if err != nil {
		return nil, err
	}
	return &Page{
		Title: fmt.Sprintf("%s, budget %v", r.Instance, r.Budget), Notes: []string{r.Sentence()},
		Sections: []Section{rewards(r), learning(groups)},
	}, nil
}

// readCurves reads learning curves, a point a line, as the groups of their rows.
func readCurves(path string, r *result.Report) ([]group, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) == 0 {
		return nil, fmt.Errorf("%s: %w", path, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	number := func(line []string, column string) float64 {
		k := slices.Index(lines[0], column)
		if k < 0 {
			return math.NaN()
		}
		v, err := strconv.ParseFloat(line[k], 64)
		if err != nil {
			return math.NaN()
		}
		return v
	}
	word := func(line []string, column string) string { return line[max(0, slices.Index(lines[0], column))] }
	records := map[string][]*experiments.Record{}
	last := ""
	for k, line := range lines[1:] {
		policy, run := word(line, "policy"), word(line, "policy")+" "+word(line, "instance")+" "+word(line, "seed")
		if run != last {
			records[policy] = append(records[policy], new(experiments.Record))
		}
		last = run
		p := experiments.CurvePoint{
			Epoch: int(number(line, "epoch")), Reward: number(line, "reward"), Crawls: number(line, "crawls"),
			Whittle: number(line, "whittle"), OfWhittle: result.RatioOf(number(line, "of_whittle")),
		}
		if math.IsNaN(number(line, "epoch") + p.Reward + p.Crawls) {
			return nil, fmt.Errorf("%s: line %d has no epoch, reward and crawls in numbers", path, k+2)
		}
		of := records[policy][len(records[policy])-1]
		of.Curve = append(of.Curve, p)
	}
	var groups []group
	for k, row := range r.Results {
		if records[row.Policy] != nil {
			groups = append(groups, group{name: row.Policy, style: k, records: records[row.Policy], over: row.Over > 0})
		}
	}
	return groups, nil
}

// readPapers makes the page of the reproduction of the published figures.
func readPapers(_ context.Context, dir string) (*Page, error) {
	r, err := files.ReadJSON[papers.Report](filepath.Join(dir, papers.ReportFile))
	if err != nil {
		return nil, err
	}
	p := &Page{Title: "What the papers print, and what is measured here", Answer: r.Sentence()}
	if p.Command, err = readText(dir, "command.txt"); err != nil {
		return nil, err
	}
	pictures, err := papers.Pictures(r.Seed)
	if err != nil {
		return nil, err
	}
	d := r.Document()
	p.Sections = []Section{
		{Title: "Figures", Table: d.Table},
		{Title: "Pictures of TCNS", Figures: pictures},
		{Title: "Why, and what was tried", Notes: strings.Split(d.Notes[1], "\n")},
	}
	return p, nil
}

// rewards are those of the policies and, where runs were compared, their
// differences to Whittle's. A policy's place is its style.
func rewards(r *result.Report) Section {
	var names []string
	for _, row := range r.Results {
		names = append(names, result.Marked(row.Policy, row.Over > 0))
	}
	title := fmt.Sprintf("%s, budget %v", r.Instance, r.Budget)
	if slices.ContainsFunc(r.Results, func(row result.Row) bool { return row.Over > 0 }) {
		title += " (* breaks the budget)"
	}
	reward := plot.New("policies", title, "interest per epoch", "")
	reward = Dots(reward, names, func(k int) (value, lo, hi float64, style int) {
		row := &r.Results[k]
		return row.Reward, row.Lo.Value(), row.Hi.Value(), k
	})
	if at := r.Bound.Value(); !r.Bound.IsZero() {
		bound := plot.Guide("bound that no policy exceeds", at, -.6, at, float64(len(names))-.4)
		reward.Series = append(reward.Series, bound)
	}
	diff := plot.New("difference", "Reward less that of Whittle under the same seeds", "interest per epoch", "")
	diff = Dots(diff, names, func(k int) (value, lo, hi float64, style int) {
		row := &r.Results[k]
		return row.Diff.Value(), row.DiffLo.Value(), row.DiffHi.Value(), k
	})
	s := Section{Title: "Policies", Table: r.Table(), Figures: []plot.Figure{reward, diff}}
	if r.Seeds > 1 {
		s.Notes = []string{"Means with 95 % intervals."}
	}
	return s
}

// drawnSources is how many sources of a large instance are drawn.
const drawnSources = 8

const perUnit = "interest per budget unit"

// training is what a learner has learned on an instance.
type training struct {
	env.Instance
	rec     *experiments.Record
	relaxed index.Relaxed // optimum with the budget kept on average only
}

// drawTraining draws what was learned: index curves with thresholds, the price while
// learning, and what a budget unit is worth. What is exact is that of the mean
// dynamics, also where the learner was in another world.
func drawTraining(in env.Instance, rec *experiments.Record) []Section {
	t := &training{in, rec, index.Relax(in)}
	section := func(title, note string, figure plot.Figure) Section {
		return Section{Title: title, Notes: []string{note}, Figures: []plot.Figure{figure}}
	}
	return []Section{
		section("Index", "The Whittle index over the age. A source is worth a crawl from the age on at which its "+
			"curve reaches the price. Points are the learned thresholds.", t.indices()),
		section("Price", "Each point of a learned price is at the end of so many epochs.", t.learnedPrice()),
		section("Value of the budget", "What one more budget unit per epoch is worth is the slope of the line, "+
			"the price of the relaxed problem.", t.budgets()),
	}
}

// relaxedPrice is the line at the price of the relaxed problem.
func (t *training) relaxedPrice(from, to float64) plot.Series {
	return plot.Guide("price of the relaxed problem", from, t.relaxed.Price, to, t.relaxed.Price)
}

// indices draws the index of sources over their age, with the learned thresholds; of
// many sources those of a few, evenly spaced.
func (t *training) indices() plot.Figure {
	f := plot.New("index-by-age", "Whittle index, learned thresholds as points", "age, epochs", "index, "+perUnit)
	const never = 100_000
	last := 10
	var thresholds []plot.Series
	var drawn []env.Source
	for k := range min(len(t.Sources), drawnSources) {
		src := t.Sources[k*len(t.Sources)/min(len(t.Sources), drawnSources)]
		drawn = append(drawn, src)
		for _, p := range t.rec.Pairs {
			if p.Source != src.Name {
				continue
			}
			// Under delay states are costs, below 0, which grow as well.
			reached := func(age int) bool { return math.Abs(src.MeanState(age)) >= math.Abs(p.Learned) }
			age := index.FirstAge(0, never, reached)
			if age >= never {
				continue
			}
			s := plot.Series{Kind: plot.Points, Style: k}
			s.Add(float64(age), index.WhittleAtAge(src, age))
			thresholds = append(thresholds, s)
			last = max(last, age+age/4)
		}
	}
	f.X.Log = last > 60
	for _, src := range drawn {
		curve := f.Of("source " + src.Name)
		for age := 1; age <= last; age = max(age+1, age*103/100) {
			curve.Add(float64(age), index.WhittleAtAge(src, age))
		}
	}
	f.Series = append(f.Series, t.relaxedPrice(1, float64(last)))
	f.Series = append(f.Series, thresholds...)
	return f
}

// learnedPrice draws the price of a learner while it learned.
func (t *training) learnedPrice() plot.Figure {
	f := plot.New("learning-price", "Price while learning", "epoch", perUnit)
	f.X.Log = true
	k := slices.Index(t.rec.Metrics, "price")
	if k < 0 {
		return f // it learns none
	}
	learned := f.Of("learned price")
	for _, p := range t.rec.Curve {
		learned.Add(float64(p.Epoch), p.Own[k])
	}
	f.Series = append(f.Series, t.relaxedPrice(1, learned.X[len(learned.X)-1]))
	return f
}

// budgets draws what the relaxed problem brings with other budgets: from the dearest
// crawl, below which a source would drop out, to all sources at every epoch.
func (t *training) budgets() plot.Figure {
	var lo, hi float64
	for _, x := range t.Sources {
		lo, hi = math.Max(lo, x.Cost), hi+x.Cost
	}
	f := plot.New("bound", "What a budget can bring", "budget, budget units per epoch", "interest per epoch")
	f.X.Log = hi > 50*lo
	other := t.Instance
	const points = 100
	for k := range points {
		share := float64(k) / (points - 1)
		other.Budget = lo + share*(hi-lo)
		if f.X.Log {
			other.Budget = math.Min(hi, lo*math.Pow(hi/lo, share))
		}
		f.Of("optimum of the relaxed problem").Add(other.Budget, index.Relax(other).Bound)
	}
	f.Series = append(f.Series, plot.Series{
		Name: "learned", Kind: plot.Points, Style: 3,
		X: plot.Values{t.Budget}, Y: plot.Values{t.rec.Learned.Reward},
	})
	return f
}
