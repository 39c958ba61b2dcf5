package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"ephemera/baselines/index"
	"ephemera/experiments"
	"ephemera/experiments/plot"
	"ephemera/experiments/report"
	"ephemera/experiments/result"
)

const (
	mostNamed = 8   // sources that have a name in a legend
	mostLines = 200 // sources of which a line is drawn
	mostRows  = 1000
)

// page draws the run. What is exact is that of the mean dynamics, also where
// the run was in another world.
func (s *shown) page(ctx context.Context) (*report.Page, error) {
	in := s.scene.Instance
	relaxed, err := index.RelaxUntil(ctx, in, index.MeanDynamics)
	if err != nil {
		return nil, err
	}
	order := s.byCrawls()
	value, bound, err := s.budgets(ctx, relaxed)
	if err != nil {
		return nil, err
	}
	p := &report.Page{
		Title:  fmt.Sprintf("%s, budget %v", in.ID, in.Budget),
		Answer: fmt.Sprintf("%s earns %s interest per epoch over %d epochs; with the budget kept on average only, %s can be had.", s.entry.Name, result.Figure(s.reward), s.epochs, result.Figure(relaxed.Bound)),
		Notes:  []string{fmt.Sprintf("Knowledge %s. Price of a budget unit in the relaxed problem: %s interest.", s.level, result.Figure(relaxed.Price))},
	}
	if s.entry.Learns() {
		p.Notes = append(p.Notes, fmt.Sprintf("What is drawn is what %s has learned in %d epochs, run in the same world from its beginning.", s.entry.Name, s.epochs))
	}
	if len(order) > mostLines {
		p.Notes = append(p.Notes, fmt.Sprintf("Of %d sources the %d that are crawled most are drawn.", len(order), mostLines))
		order = order[:mostLines]
	}
	p.Sections = []report.Section{
		figures("Index of every source", "The Whittle index over the age, on the states of the mean dynamics. A source is worth a crawl from the age on at which its curve reaches the price. Points are the learned thresholds.", s.indices(order, relaxed)),
		figures("Content over time", "What waits at a source just before each decision.", s.content(order[:min(len(order), mostNamed)])),
		figures("Crawls", "Each stroke is a crawl.", report.Raster(s.names, s.crawled(), order)),
		figures("Price over time", "The clearing price of an epoch is the lowest index among the sources that were crawled in it: what the last budget unit bought.", s.clearing(relaxed), s.learning(relaxed)),
		figures("Value of the budget", "What one more budget unit per epoch is worth is the price of the relaxed problem, the slope of its optimum.", value, bound),
		figures("Value of an item", "Interest of one item after it is published.", s.items(order)),
		{Title: "Sources", Table: s.sources(relaxed)},
	}
	return p, nil
}

// crawled returns the epochs at which each source was crawled.
func (s *shown) crawled() [][]float64 {
	at := make([][]float64, len(s.names))
	for n, crawls := range s.crawls {
		for _, c := range crawls {
			at[c.Source] = append(at[c.Source], float64(s.epochs-len(s.crawls)+n))
		}
	}
	return at
}

// byCrawls orders the sources by how often they were crawled.
func (s *shown) byCrawls() []int {
	order := make([]int, len(s.count))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(s.count[j], s.count[i]) })
	return order
}

// line begins the series of the source at a place in the order. If all that are
// drawn can have names, it has one.
func (s *shown) line(order []int, k int) plot.Series {
	l := plot.Series{Style: k % mostNamed}
	if len(order) <= mostNamed {
		l.Name = "source " + s.names[order[k]]
	}
	return l
}

// lines draws y of each source at each x.
func (s *shown) lines(order []int, x plot.Values, y func(i int, x float64) float64) (all []plot.Series) {
	for k, i := range order {
		l := s.line(order, k)
		l.X = x
		for _, at := range x {
			l.Y = append(l.Y, y(i, at))
		}
		all = append(all, l)
	}
	return all
}

// indices draws the index of each source over its age, with the price and the
// learned thresholds.
func (s *shown) indices(order []int, relaxed index.Relaxed) plot.Figure {
	f := plot.New("index", "Whittle index", "age, epochs", "index, "+perUnit)
	in := s.scene.Instance
	priced, _ := s.trainee.(experiments.Priced)
	aged, _ := s.trainee.(experiments.Aged)
	last := 10.
	var thresholds []plot.Series
	for k, i := range order {
		x := in.Sources[i]
		if priced == nil || !in.Terms().Affordable(i) {
			continue
		}
		age := index.Wait(x, math.Min(priced.InverseIndex(i), x.Ceiling()))
		if aged != nil {
			age = aged.ThresholdAge(i)
		}
		// Where a crawl never pays its price, the threshold is of no use.
		pays := age >= 1 && age < 1e5 && x.MeanState(int(math.Ceil(age))) > priced.Price()*x.Cost
		if y := index.AtAge(x.Ceiling(), x.Decay, -math.Expm1(-x.Decay), age) / x.Cost; pays {
			t := s.line(order, k)
			t.Name, t.Kind, t.X, t.Y = "", plot.Points, plot.Values{age}, plot.Values{y}
			thresholds = append(thresholds, t)
			last = math.Max(last, 1.25*age)
		}
	}
	f.X.Log, f.Y.Log = last > 60, len(order) > mostNamed
	ages := plot.Values{}
	for a := 1.; a <= last; a = math.Max(a+1, math.Floor(a*1.03)) {
		ages = append(ages, a)
	}
	f.Series = s.lines(order, ages, func(i int, age float64) float64 { return index.WhittleAtAge(in.Sources[i], int(age)) })
	f.Series = append(f.Series, level("price of the relaxed problem", ages[0], last, relaxed.Price))
	if priced != nil {
		l := level("learned price", ages[0], last, priced.Price())
		l.Style = plot.Dotted
		f.Series = append(f.Series, l)
	}
	f.Series = append(f.Series, thresholds...)
	if len(thresholds) > 0 {
		f.Title += ", learned thresholds as points"
	}
	return f
}

const perUnit = "interest per budget unit"

// level is a level line.
func level(name string, from, to, at float64) plot.Series {
	return plot.Series{Name: name, Style: plot.Plain, X: plot.Values{from, to}, Y: plot.Values{at, at}}
}

func (s *shown) content(order []int) plot.Figure {
	f := plot.New("content", "Content over time under "+s.entry.Name, "epoch", "interest that waits")
	if len(order) < len(s.names) {
		f.Title += fmt.Sprintf(", the %d sources crawled most", len(order))
	}
	f.Series = s.lines(order, count(len(s.states), 1), func(i int, n float64) float64 { return s.states[int(n)][i] })
	return f
}

// count returns 0, step, 2 step, …, n of them.
func count(n int, step float64) (x plot.Values) {
	for k := range n {
		x = append(x, step*float64(k))
	}
	return x
}

// clearing draws the lowest index that was crawled in each epoch.
func (s *shown) clearing(relaxed index.Relaxed) plot.Figure {
	f := plot.New("price", "Clearing price under "+s.entry.Name, "epoch", perUnit)
	low := plot.Series{Name: "lowest index that was crawled", Kind: plot.Steps}
	first := float64(s.epochs - len(s.crawls))
	for k, crawls := range s.crawls {
		y := math.NaN()
		for _, c := range crawls {
			if at := index.WhittleAtAge(s.scene.Instance.Sources[c.Source], c.Age); !(at >= y) {
				y = at
			}
		}
		low.X, low.Y = append(low.X, first+float64(k)), append(low.Y, y)
	}
	f.Series = []plot.Series{low, level("price of the relaxed problem", first, float64(s.epochs-1), relaxed.Price)}
	return f
}

// learning draws the price that the learner came to.
func (s *shown) learning(relaxed index.Relaxed) plot.Figure {
	f := plot.New("learning-price", "Price while "+s.entry.Name+" learns", "epoch", perUnit)
	f.X.Log = true
	if l := s.prices; len(l.X) > 1 {
		f.Series = []plot.Series{l, level("price of the relaxed problem", 1, l.X[len(l.X)-1], relaxed.Price)}
	}
	return f
}

// budgets solves the relaxed problem for other budgets: from the dearest crawl,
// below which a source would drop out, to all sources at every epoch.
func (s *shown) budgets(ctx context.Context, here index.Relaxed) (value, bound plot.Figure, err error) {
	in := s.scene.Instance
	var lo, hi float64
	for _, x := range in.Sources {
		lo, hi = math.Max(lo, x.Cost), hi+x.Cost
	}
	points := 200
	if len(in.Sources) > 10000 {
		points = 20
	}
	price := plot.Series{Name: "worth of one more", Kind: plot.Steps}
	most := plot.Series{Name: "optimum of the relaxed problem", Style: 1}
	log := hi > 50*lo
	for k := range points {
		f := float64(k) / float64(points-1)
		in.Budget = lo + f*(hi-lo)
		if log {
			in.Budget = math.Min(hi, lo*math.Pow(hi/lo, f))
		}
		r, err := index.RelaxUntil(ctx, in, index.MeanDynamics)
		if err != nil {
			return value, bound, err
		}
		price.X, price.Y = append(price.X, in.Budget), append(price.Y, r.Price)
		most.X, most.Y = append(most.X, in.Budget), append(most.Y, r.Bound)
	}
	at := func(name string, y float64) plot.Series {
		return plot.Series{Name: name, Kind: plot.Points, Style: 3, X: plot.Values{s.scene.Instance.Budget}, Y: plot.Values{y}}
	}
	value = plot.New("value", "Value of an extra crawl per epoch", "budget, budget units per epoch", perUnit)
	bound = plot.New("bound", "What a budget can bring", "budget, budget units per epoch", "interest per epoch")
	value.X.Log, bound.X.Log = log, log
	value.Series, bound.Series = []plot.Series{price, at("this budget", here.Price)}, []plot.Series{most, at(s.entry.Name, s.reward)}
	return value, bound, nil
}

func (s *shown) items(order []int) plot.Figure {
	f := plot.New("item", "Value of an item over time", "time since publication, epochs", "interest of an item")
	var tenth []float64 // time to a tenth of the first interest
	for _, i := range order {
		tenth = append(tenth, math.Ln10/s.scene.Instance.Sources[i].Decay)
	}
	slices.Sort(tenth)
	f.Series = s.lines(order, count(101, tenth[len(tenth)/2]/100), func(i int, t float64) float64 {
		x := s.scene.Instance.Sources[i]
		if t > x.Window {
			return 0
		}
		return x.Interest * math.Exp(-x.Decay*t)
	})
	return f
}

// sources is a table of the sources: what they are, how often they are crawled
// and what was learned of them.
func (s *shown) sources(relaxed index.Relaxed) *result.Table {
	thresholds := experiments.Thresholds(s.trainee, s.scene.Instance)
	t := &result.Table{Header: []string{"source", "rate, items per epoch", "decay, 1/epoch", "interest of an item", "cost, budget units", "crawls per epoch", "crawls per epoch, relaxed"}}
	if thresholds != nil {
		t.Header = append(t.Header, thresholds.Header[1:]...)
	}
	for i, x := range s.scene.Instance.Sources[:min(mostRows, len(s.names))] {
		row := []string{s.names[i]}
		for _, v := range []float64{x.Rate, x.Decay, x.Interest, x.Cost, s.count[i] / float64(s.epochs), relaxed.Frequency[i]} {
			row = append(row, result.Figure(v))
		}
		if thresholds != nil {
			row = append(row, thresholds.Rows[i][1:]...)
		}
		t.Add(row...)
	}
	return t
}
