package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ephemera/baselines/index"
	"ephemera/env"
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

const perUnit = "interest per budget unit"

// page draws the run. What is exact is that of the mean dynamics, also where
// the run was in another world.
func (s *shown) page() *report.Page {
	in := s.scene.Instance
	s.relaxed = index.Relax(in)
	p := &report.Page{
		Title:  fmt.Sprintf("%s, budget %v", in.ID, in.Budget),
		Answer: fmt.Sprintf("%s earns %s interest per epoch over %d epochs; with the budget kept on average only, %s can be had.", s.entry.Name, result.Figure(s.reward), s.epochs, result.Figure(s.relaxed.Bound)),
		Notes:  []string{fmt.Sprintf("Knowledge %s. Price of a budget unit in the relaxed problem: %s interest.", s.level, result.Figure(s.relaxed.Price))},
	}
	if s.entry.Learns() {
		p.Notes = append(p.Notes, fmt.Sprintf("What is drawn is what %s has learned in %d epochs, run in the same world from its beginning.", s.entry.Name, s.epochs))
	}
	order := s.byCrawls()
	if len(order) > mostLines {
		p.Notes = append(p.Notes, fmt.Sprintf("Of %d sources the %d that are crawled most are drawn.", len(order), mostLines))
		order = order[:mostLines]
	}
	add := func(title, note string, figures ...plot.Figure) {
		p.Sections = append(p.Sections, report.Section{Title: title, Notes: []string{note}, Figures: figures})
	}
	add("Index of every source", "The Whittle index over the age, on the states of the mean dynamics. A source is worth a crawl from the age on at which its curve reaches the price. Points are the learned thresholds.", s.indices(order))
	add("Content over time", "What waits at a source just before each decision.", s.content(order[:min(len(order), mostNamed)]))
	add("Crawls", "Each point is a crawl.", s.raster())
	add("Price over time", "The clearing price of an epoch is the lowest index among the sources that were crawled in it: what the last budget unit bought.",
		s.priced("price", "Clearing price under "+s.entry.Name, s.clearing), s.priced("learning-price", "Price while "+s.entry.Name+" learns", s.prices))
	add("Value of the budget", "What one more budget unit per epoch is worth is the price of the relaxed problem, the slope of its optimum.", s.budgets()...)
	add("Value of an item", "Interest of one item after it is published.", s.items(order))
	p.Sections = append(p.Sections, report.Section{Title: "Sources", Table: s.sources()})
	return p
}

// raster draws which source was crawled when.
func (s *shown) raster() plot.Figure {
	f := plot.New("crawls", "Crawls", "epoch", "source")
	for i, at := range s.crawled {
		if len(at) == 0 || len(f.Y.Names) == 60 {
			continue
		}
		p := plot.Series{Kind: plot.Points}
		for _, n := range at {
			p.Add(n, float64(len(f.Y.Names)))
		}
		f.Series, f.Y.Names = append(f.Series, p), append(f.Y.Names, s.names[i])
	}
	return f
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
func (s *shown) lines(order []int, x []float64, y func(i int, x float64) float64) (all []plot.Series) {
	for k, i := range order {
		l := s.line(order, k)
		for _, at := range x {
			l.Add(at, y(i, at))
		}
		all = append(all, l)
	}
	return all
}

// price is the line at the price of the relaxed problem.
func (s *shown) price(from, to float64) plot.Series {
	return plot.Guide("price of the relaxed problem", from, s.relaxed.Price, to, s.relaxed.Price)
}

// indices draws the index of each source over its age, with the price and the
// learned thresholds.
func (s *shown) indices(order []int) plot.Figure {
	f := plot.New("index", "Whittle index", "age, epochs", "index, "+perUnit)
	learned, _ := s.trainee.(experiments.Priced)
	last := 10.
	var thresholds []plot.Series
	for k, i := range order {
		age := s.threshold(i)
		if math.IsNaN(age) {
			continue
		}
		x := s.scene.Instance.Sources[i]
		t := s.line(order, k)
		t.Name, t.Kind = "", plot.Points
		t.Add(age, index.AtAge(x.Ceiling(), x.Decay, -math.Expm1(-x.Decay), age)/x.Cost)
		thresholds = append(thresholds, t)
		last = math.Max(last, 1.25*age)
	}
	f.X.Log, f.Y.Log = last > 60, len(order) > mostNamed
	var ages []float64
	for a := 1.; a <= last; a = math.Max(a+1, math.Floor(a*1.03)) {
		ages = append(ages, a)
	}
	f.Series = s.lines(order, ages, func(i int, age float64) float64 { return index.WhittleAtAge(s.scene.Instance.Sources[i], int(age)) })
	f.Series = append(f.Series, s.price(1, last))
	if learned != nil {
		l := plot.Guide("learned price", 1, learned.Price(), last, learned.Price())
		l.Style = plot.Dotted
		f.Series = append(f.Series, l)
	}
	if len(thresholds) > 0 {
		f.Title += ", learned thresholds as points"
	}
	f.Series = append(f.Series, thresholds...)
	return f
}

// threshold returns the age from which a source is crawled at the learned price;
// NaN where nothing is learned, or a crawl never pays its price.
func (s *shown) threshold(i int) float64 {
	x := s.scene.Instance.Sources[i]
	learned, ok := s.trainee.(experiments.Priced)
	if !ok || !env.Fits(x.Cost, s.scene.Instance.Budget) {
		return math.NaN()
	}
	age := index.Wait(x, math.Min(learned.InverseIndex(i), x.Ceiling()))
	if aged, ok := learned.(experiments.Aged); ok {
		age = aged.ThresholdAge(i)
	}
	if age >= 1 && age < 1e5 && x.MeanState(int(math.Ceil(age))) > learned.Price()*x.Cost {
		return age
	}
	return math.NaN()
}

// content draws what waits at sources.
func (s *shown) content(order []int) plot.Figure {
	f := plot.New("content", "Content over time under "+s.entry.Name, "epoch", "interest that waits")
	if len(order) < len(s.names) {
		f.Title += fmt.Sprintf(", the %d sources crawled most", len(order))
	}
	f.Series = s.lines(order, count(len(s.states), 1), func(i int, n float64) float64 { return s.states[int(n)][i] })
	return f
}

// count returns 0, step, 2 step, …, n of them.
func count(n int, step float64) (x []float64) {
	for k := range n {
		x = append(x, step*float64(k))
	}
	return x
}

// priced draws prices over the epochs beside that of the relaxed problem.
func (s *shown) priced(name, title string, prices plot.Series) plot.Figure {
	f := plot.New(name, title, "epoch", perUnit)
	f.X.Log = name == "learning-price"
	if n := len(prices.X); n > 0 {
		f.Series = []plot.Series{prices, s.price(prices.X[0], prices.X[n-1])}
	}
	return f
}

// budgets solves the relaxed problem for other budgets: from the dearest crawl,
// below which a source would drop out, to all sources at every epoch.
func (s *shown) budgets() []plot.Figure {
	in := s.scene.Instance
	var lo, hi float64
	for _, x := range in.Sources {
		lo, hi = math.Max(lo, x.Cost), hi+x.Cost
	}
	points := 200
	if len(in.Sources) > 10000 {
		points = 20
	}
	value := plot.New("value", "Value of an extra crawl per epoch", "budget, budget units per epoch", perUnit)
	bound := plot.New("bound", "What a budget can bring", "budget, budget units per epoch", "interest per epoch")
	log := hi > 50*lo
	value.X.Log, bound.X.Log = log, log
	price := plot.Series{Name: "worth of one more", Kind: plot.Steps}
	most := plot.Series{Name: "optimum of the relaxed problem", Style: 1}
	for k := range points {
		share := float64(k) / float64(points-1)
		in.Budget = lo + share*(hi-lo)
		if log {
			in.Budget = math.Min(hi, lo*math.Pow(hi/lo, share))
		}
		r := index.Relax(in)
		price.Add(in.Budget, r.Price)
		most.Add(in.Budget, r.Bound)
	}
	here := plot.Series{Name: "this budget", Kind: plot.Points, Style: 3}
	here.Add(s.scene.Instance.Budget, s.relaxed.Price)
	earned := plot.Series{Name: s.entry.Name, Kind: plot.Points, Style: 3}
	earned.Add(s.scene.Instance.Budget, s.reward)
	value.Series, bound.Series = []plot.Series{price, here}, []plot.Series{most, earned}
	return []plot.Figure{value, bound}
}

// items draws what an item of each source is worth, until half of the sources'
// have lost nine tenths of it.
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
func (s *shown) sources() *result.Table {
	thresholds := experiments.Thresholds(s.trainee, s.scene.Instance)
	t := &result.Table{Header: []string{"source", "rate, items per epoch", "decay, 1/epoch", "interest of an item", "cost, budget units", "crawls per epoch", "crawls per epoch, relaxed"}}
	if thresholds != nil {
		t.Header = append(t.Header, thresholds.Header[1:]...)
	}
	for i, x := range s.scene.Instance.Sources[:min(mostRows, len(s.names))] {
		row := []string{s.names[i]}
		for _, v := range []float64{x.Rate, x.Decay, x.Interest, x.Cost, s.count[i] / float64(s.epochs), s.relaxed.Frequency[i]} {
			row = append(row, result.Figure(v))
		}
		if thresholds != nil {
			row = append(row, thresholds.Rows[i][1:]...)
		}
		t.Add(row...)
	}
	return t
}
