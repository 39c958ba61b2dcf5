package replay

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments/plot"
	"ephemera/experiments/report"
	"ephemera/experiments/result"
)

// Page returns the answer as a page.
func (a *Answer) Page() *report.Page {
	p := &report.Page{
		Title: a.Name + ": what a better schedule would bring", Answer: a.headline(),
		Notes: []string{a.log()}, Footnotes: []string{a.method()},
		Sections: []report.Section{a.schedules(), a.fewer(), a.halfLives()},
	}
	if a.Fits != nil {
		p.Sections = append(p.Sections, a.decay())
	}
	p.Sections = append(p.Sections, a.timetable())
	return p
}

// number writes a figure with up to four digits that count.
func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "never"
	case math.IsNaN(v):
		return ""
	case math.Abs(v) >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }

func signed(v float64) string { return fmt.Sprintf("%+.1f %%", 100*v) }

// hours writes a length of time in hours, or in days where there are many.
func hours(h float64) string {
	if h >= 100 && !math.IsInf(h, 1) {
		return number(math.Round(h/24)) + " d"
	}
	if math.IsInf(h, 1) {
		return "never"
	}
	return strconv.FormatFloat(h, 'f', 1, 64) + " h"
}

func (a *Answer) headline() string {
	now, learning := a.Rows[0], a.Rows[1]
	gain := signed(a.Gain.Value)
	if !math.IsNaN(a.Gain.Lo) {
		gain += fmt.Sprintf(" [%s, %s]", signed(a.Gain.Lo), signed(a.Gain.Hi))
	}
	with, knows := "as many crawls, "+number(now.Crawls)+" per hour", "knows nothing at first"
	if a.another() {
		with = fmt.Sprintf("%s crawls per hour instead of %s", number(a.Rate), number(now.Crawls))
	}
	if a.Warm {
		knows = "has learned on the first half"
	}
	text := fmt.Sprintf("Now, with %s, you earn %s interest per hour. With %s, the learner earns %s, %s; it %s.", now.About, number(now.Interest), with, number(learning.Interest), gain, knows)
	switch {
	case math.IsNaN(a.Fewer):
		return text + " It brings nothing here."
	case a.Fewer >= 1-fewer[0]:
		return text + fmt.Sprintf(" It would earn what you earn now with less than %s crawls per hour%s.", number(fewer[0]*a.Rate), a.partly())
	case a.another():
		return text + fmt.Sprintf(" It would earn what you earn now with %s crawls per hour%s.", number((1-a.Fewer)*a.Rate), a.partly())
	}
	return text + fmt.Sprintf(" It would earn what you earn now with %s fewer crawls%s.", percent(a.Fewer), a.partly())
}

// another reports whether what is done now makes another number of crawls than
// was asked for.
func (a *Answer) another() bool { return math.Abs(a.Rows[0].Crawls/a.Rate-1) > .03 }

func (a *Answer) log() string {
	s := a.Log
	text := fmt.Sprintf("%s of %s over %s days.", result.Count(s.Items, "item"), result.Count(s.Sources, "source"), number(s.Days))
	if s.Never > 0 {
		text += fmt.Sprintf(" %s published nothing at all.", result.Count(s.Never, "source"))
	}
	if s.Silent > 0 {
		text += fmt.Sprintf(" %s published nothing in the last quarter of that time.", result.Count(s.Silent, "source"))
	}
	if s.Gaps > 0 {
		text += fmt.Sprintf(" It has %s without any item, of %s at most: was it interrupted?", result.Count(s.Gaps, "gap"), hours(s.Longest))
	}
	if s.Share > .1 {
		text += fmt.Sprintf(" %s brings %s of all utility.", s.Dearest, percent(s.Share))
	}
	return text
}

func (a *Answer) schedules() report.Section {
	t := &result.Table{Header: []string{"schedule", "interest per hour", "of now", "delay, half of the items", "nine in ten", "half of the utility", "seen within 1 h", "empty crawls", "longest neglect"}}
	for _, r := range a.Rows {
		t.Add(r.Policy, number(r.Interest), percent(r.Interest/a.Rows[0].Interest), hours(r.Median), hours(r.P90), hours(r.Worth),
			percent(r.Prompt), percent(r.Empty), hours(r.Neglect))
	}
	crawls := "All schedules make as many crawls."
	if a.another() {
		crawls = fmt.Sprintf("The first schedule makes %s crawls per hour, the others %s.", number(a.Rows[0].Crawls), number(a.Rate))
	}
	return report.Section{Title: "Schedules", Table: t, Figures: []plot.Figure{a.Figure()}, Notes: []string{
		crawls + " Delay is the time from the publication of an item to the crawl that finds it; “never” is written where fewer items than that were found. Neglect is the longest that a source with items waited.",
		a.delay(),
	}}
}

// delay compares the delays of the learner with those of the best rule.
func (a *Answer) delay() string {
	best := -1
	for k, r := range a.Rows {
		if slices.Contains(rules, r.Policy) && (best < 0 || r.Median < a.Rows[best].Median) {
			best = k
		}
	}
	learning, rule := a.Rows[1], a.Rows[best]
	less := 1 - learning.Median/rule.Median
	if less >= .2 {
		return fmt.Sprintf("The learner finds half of the items within %s, in %s less time than the best of these rules, %s (%s).", hours(learning.Median), percent(less), rule.Policy, hours(rule.Median))
	}
	text := fmt.Sprintf("The learner finds half of the items within %s, the best of these rules, %s, within %s.", hours(learning.Median), rule.Policy, hours(rule.Median))
	if learning.Worth < rule.Worth {
		return text + fmt.Sprintf(" It goes where items are worth most, not where most items are: half of all utility it finds within %s, that rule within %s. Leave out the column utility to have all items count the same.", hours(learning.Worth), hours(rule.Worth))
	}
	return text + fmt.Sprintf(" There is little to be gained: of all that interest could bring with no delay at all, that rule brings %s and the learner %s.", percent(rule.Interest/a.Log.PerHour), percent(learning.Interest/a.Log.PerHour))
}

func (a *Answer) fewer() report.Section {
	t := &result.Table{Header: []string{"crawls", "per hour", "interest of now"}}
	for _, s := range a.Budgets {
		t.Add(percent(s.Crawls), number(s.Crawls*a.Rate), percent(s.Interest))
	}
	return report.Section{Title: "With fewer crawls", Table: t, Figures: []plot.Figure{a.curve()}, Notes: []string{
		"What the learner earns with a part of the crawls, of what is earned now with all" + a.partly() + "."}}
}

func (a *Answer) partly() string {
	if a.Days >= a.To.Sub(a.From).Hours()/24-1 {
		return ""
	}
	return fmt.Sprintf(" (on the last %s days only)", number(math.Round(a.Days)))
}

func (a *Answer) halfLives() report.Section {
	t := &result.Table{Header: []string{"half-life", "now", "learner", "more"}}
	for _, h := range a.HalfLives {
		t.Add(hours(h.Hours), number(h.Now), number(h.Learning), signed(h.Learning/h.Now-1))
	}
	return report.Section{Title: "If interest lasts longer or shorter", Table: t, Notes: []string{
		"Interest per hour for other half-lives" + a.partly() + ". The longer interest lasts, the less it matters when a source is crawled."}}
}

func (a *Answer) decay() report.Section {
	t := &result.Table{Header: []string{"form", "fitted", "R²"}, Left: map[int]bool{1: true}}
	for _, f := range a.Fits {
		t.Header = append(t.Header, "true "+f.Name)
	}
	for k, f := range a.Fits {
		fitted := f.String()
		if !math.IsNaN(f.Lo) {
			fitted += fmt.Sprintf(" [%.3g, %.3g]", f.Lo, f.Hi)
		}
		row := []string{f.Name, fitted, strconv.FormatFloat(f.R2, 'f', 4, 64)}
		for truth := range a.Fits {
			row = append(row, percent(a.Wrong[truth][k]))
		}
		t.Add(row...)
	}
	return report.Section{Title: "How interest is lost", Table: t, Notes: []string{
		"Forms fitted to the feedback, and what a schedule earns that takes the form of its row for true while the form of the column is: in shares of what it would earn with the right one (rates from the first half, measured in the second). All other figures take interest to be lost exponentially with the half-life that was fitted."}}
}

func (a *Answer) timetable() report.Section {
	visits := a.Timetable.visits(len(a.Names))
	order := make([]int, len(visits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return visits[j] - visits[i] })
	t := &result.Table{Header: []string{"source", "crawls per week", "every"}}
	for _, i := range order {
		if n := float64(visits[i]); n > 0 {
			t.Add(result.Printable(a.Names[i]), number(n), hours(168/n))
		}
	}
	never := len(order) - len(t.Rows)
	text := fmt.Sprintf("timetable.csv holds what the learner would do in a week with all that it has learned, crawl by crawl, to be repeated (%s). ", result.Count(len(a.Timetable), "crawl"))
	text += fmt.Sprintf("A timetable made in the middle of the log, replayed as told from there to the end, earns %s of what the learner as it was in the middle earns there.", percent(a.Replayed.Interest/a.Frozen.Interest))
	if never > 0 {
		text += fmt.Sprintf(" It leaves out %s, where the learner found too little to be worth a crawl. Look in from time to time, or run the learner, which does.", result.Count(never, "source"))
	}
	return report.Section{Title: "A schedule to use", Notes: []string{text}, Table: t}
}

func (a *Answer) method() string {
	return fmt.Sprintf("From %s to %s (UTC), %s, each with %s. An item is worth its utility when it is published, half of it after %s, and so on; a crawl earns what the items that it finds are still worth. The learner is %s with its defaults. The interval is over weeks, which are drawn anew; it speaks of this log only. Schedules that repeat a period make their crawls evenly in it; rules and learner decide every %v.",
		a.From.Format("2006-01-02 15:04"), a.To.Format("2006-01-02 15:04"), result.Count(a.Epochs, "decision"), result.Count(a.Budget, "crawl"), hours(a.Form.half()), a.Learner, a.Epoch.Round(time.Second))
}

// JSON writes the figures as one object: the keys of all commands, and its own.
func (a *Answer) JSON(w io.Writer) error {
	type row struct {
		result.Row
		OfNow   *float64 `json:"of_now"`
		Median  *float64 `json:"delay_median_hours"`
		P90     *float64 `json:"delay_p90_hours"`
		Worth   *float64 `json:"delay_utility_median_hours"`
		Prompt  float64  `json:"seen_within_1h"`
		Empty   float64  `json:"empty_crawls"`
		Neglect float64  `json:"longest_neglect_hours"`
	}
	out := struct {
		result.Report
		Results   []row       `json:"results"`
		Epoch     float64     `json:"epoch_seconds"`
		Gain      *float64    `json:"gain"`
		GainLo    *float64    `json:"gain_lo"`
		GainHi    *float64    `json:"gain_hi"`
		Fewer     *float64    `json:"fewer_crawls"`
		HalfLife  float64     `json:"half_life_hours"`
		HalfLives []otherLife `json:"half_lives"`
		Replayed  *float64    `json:"timetable_of_frozen"`
	}{
		Report: result.Report{Instance: a.Name, Algorithm: a.Learner, Knowledge: string(env.LevelOnline), Budget: float64(a.Budget), Steps: a.Epochs, Seeds: 1, Seed: a.seed},
		Epoch:  a.Epoch.Seconds(), Gain: result.Ptr(a.Gain.Value), GainLo: result.Ptr(a.Gain.Lo), GainHi: result.Ptr(a.Gain.Hi), Fewer: result.Ptr(a.Fewer),
		HalfLife: a.Form.half(), HalfLives: a.HalfLives, Replayed: result.Ptr(a.Replayed.Interest / a.Frozen.Interest),
	}
	perEpoch := a.Epoch.Hours()
	for k, r := range a.Rows {
		name := r.Policy
		if k == 0 {
			name = "now"
		}
		out.Results = append(out.Results, row{
			Row: result.Row{
				Policy: name, Reward: r.Interest * perEpoch, Lo: result.Ptr(r.Interval.Lo * perEpoch), Hi: result.Ptr(r.Interval.Hi * perEpoch),
				Crawls: r.Crawls * perEpoch, OfWhittle: result.Ptr(r.Interest / a.Rows[2].Interest),
			},
			OfNow: result.Ptr(r.Interest / a.Rows[0].Interest), Median: result.Ptr(r.Median), P90: result.Ptr(r.P90), Worth: result.Ptr(r.Worth),
			Prompt: r.Prompt, Empty: r.Empty, Neglect: r.Neglect,
		})
	}
	return result.WriteJSON(w, out)
}

// shown is how many rows of a table are printed; the page has all.
const shown = 20

// Write prints the answer: all sections as a table or in Markdown, the
// schedules alone as CSV, or the figures as JSON.
func (a *Answer) Write(w io.Writer, f result.Format) error {
	switch f {
	case result.JSON:
		return a.JSON(w)
	case result.CSV:
		return a.schedules().Table.First(shown).Write(w, f)
	}
	mark := ""
	if f == result.Markdown {
		mark = "## "
	}
	p := a.Page()
	all := []report.Section{{Title: "What a better schedule would bring", Notes: []string{p.Answer}}, {Title: "The log", Notes: p.Notes}}
	all = append(append(all, p.Sections...), report.Section{Title: "How this was measured", Notes: p.Footnotes})
	for k, s := range all {
		if k > 0 {
			fmt.Fprintln(w)
		}
		if _, err := fmt.Fprintf(w, "%s%s\n\n%s\n", mark, s.Title, strings.Join(s.Notes, "\n\n")); err != nil {
			return err
		}
		if s.Table != nil {
			fmt.Fprintln(w)
			if err := s.Table.First(shown).Write(w, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// curve shows what the learner earns with fewer crawls, and what is earned now.
func (a *Answer) curve() plot.Figure {
	learner, now := plot.Series{Name: "learner"}, plot.Series{Name: "now, with all crawls", Style: plot.Plain}
	for _, s := range a.Budgets {
		learner.X, learner.Y = append(learner.X, s.Crawls*a.Rate), append(learner.Y, s.Interest*a.nowAtEnd)
		now.X, now.Y = append(now.X, s.Crawls*a.Rate), append(now.Y, a.nowAtEnd)
	}
	return plot.Figure{
		Title: "Interest with fewer crawls",
		X:     plot.Axis{Label: "crawls per hour"}, Y: plot.Axis{Label: "interest per hour"},
		Series: []plot.Series{learner, now},
	}
}

// Figure shows what every schedule earns, with intervals over weeks: in colours
// of their own the learner, and what is told the rates.
func (a *Answer) Figure() plot.Figure {
	var names []string
	for _, r := range a.Rows {
		names = append(names, r.Policy)
	}
	f := plot.Figure{Name: "schedules", Title: fmt.Sprintf("%s, %s crawls per hour", a.Name, number(a.Rate)), X: plot.Axis{Label: "interest per hour, with 95 % intervals over weeks"}}
	return report.Dots(f, names, func(k int) (value, lo, hi float64, style int) {
		switch style = 1; names[k] {
		case "learning":
			style = 0
		case "whittle":
			style = plot.Plain
		}
		return a.Rows[k].Interest, a.Rows[k].Interval.Lo, a.Rows[k].Interval.Hi, style
	})
}
