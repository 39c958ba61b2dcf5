package replay

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"ephemera/env"
	"ephemera/experiments/plot"
	"ephemera/experiments/report"
	"ephemera/experiments/result"
)

//go:embed sentences.tmpl
var sentencesText string

var sentences = template.Must(template.New("").Option("missingkey=error").Funcs(template.FuncMap{
	"number": number, "percent": percent, "signed": signed, "count": result.Count,
	"known": func(v float64) bool { return !math.IsNaN(v) },
	"date":  func(t time.Time) string { return t.Format("2006-01-02 15:04") },
}).Parse(sentencesText))

// say returns a text of sentences.tmpl about v.
func say(name string, v any) string {
	var b strings.Builder
	if err := sentences.ExecuteTemplate(&b, name, v); err != nil {
		panic("replay: " + err.Error())
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// number writes a figure with up to four digits that count.
func number(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }

func signed(v float64) string { return fmt.Sprintf("%+.1f %%", 100*v) }

// What the sentences say of an answer.

// Another reports whether what is done now makes another number of crawls than
// was asked for.
func (a *Answer) Another() bool { return math.Abs(a.Rows[0].Crawls/a.Rate-1) > .03 }

// AtLeast reports whether even the least number of crawls that was tried is
// enough to earn what is earned now, and Enough returns how many per hour are.
func (a *Answer) AtLeast() bool   { return a.Fewer >= 1-a.Budgets[0].Crawls }
func (a *Answer) Enough() float64 { return (1 - a.Fewer) * a.Rate }

// Partly reports whether the tail, of so many Days, is not the whole.
func (a *Answer) Partly() bool  { return (a.tail.to-a.tail.from)/day < (a.whole.to-a.whole.from)/day-1 }
func (a *Answer) Days() float64 { return math.Round((a.tail.to - a.tail.from) / day) }

// What is measured: from when to when, in how many epochs of which length.
func (a *Answer) From() time.Time      { return unix(a.whole.from) }
func (a *Answer) To() time.Time        { return unix(a.whole.to) }
func (a *Answer) Epochs() int          { return int((a.whole.to - a.whole.from) / a.whole.length) }
func (a *Answer) Epoch() time.Duration { return seconds(a.whole.length) }

// Learner returns the name of the learner.
func (a *Answer) Learner() string { return a.learner.Name }

// AsTold returns what the timetable earns, over the policy that it is of.
func (a *Answer) AsTold() float64 { return a.Replayed.Interest / a.Frozen.Interest }

// Page returns the answer as a page.
func (a *Answer) Page() *report.Page {
	p := &report.Page{
		Title: a.Name + ": what a better schedule would bring", Answer: say("answer", a),
		Notes: []string{say("log", a.Seen)}, Footnotes: []string{say("method", a)},
		Sections: []report.Section{a.schedules(), a.fewer(), a.halfLives()},
	}
	if a.Fits != nil {
		p.Sections = append(p.Sections, a.decay())
	}
	p.Sections = append(p.Sections, a.toUse())
	return p
}

func (a *Answer) schedules() report.Section {
	t := &result.Table{Header: []string{"schedule", "interest per hour", "of now", "delay, half of the items", "nine in ten", "half of the utility", "seen within 1 h", "empty crawls", "longest neglect"}}
	for _, r := range a.Rows {
		t.Add(r.Policy, number(r.Interest), percent(r.Interest/a.Rows[0].Interest), r.Median.String(), r.P90.String(), r.Worth.String(),
			percent(r.Prompt), percent(r.Empty), r.Neglect.String())
	}
	return report.Section{Title: "Schedules", Table: t, Figures: []plot.Figure{a.Figure()}, Notes: []string{say("schedules", a), a.delay()}}
}

// delay compares the delays of the learner with those of the best rule.
func (a *Answer) delay() string {
	var best schedule
	for _, r := range a.Rows {
		if slices.Contains(rules, r.Policy) && (best.Policy == "" || r.Median < best.Median) {
			best = r
		}
	}
	learner := a.Rows[1]
	return say("delay", map[string]any{
		"Learner": learner, "Rule": best, "Less": float64(1 - learner.Median/best.Median),
		"LearnerOfAll": learner.Interest / a.Seen.PerHour, "RuleOfAll": best.Interest / a.Seen.PerHour,
	})
}

func (a *Answer) fewer() report.Section {
	t := &result.Table{Header: []string{"crawls", "per hour", "interest of now"}}
	for _, s := range a.Budgets {
		t.Add(percent(s.Crawls), number(s.PerHour), percent(s.Interest))
	}
	return report.Section{Title: "With fewer crawls", Table: t, Figures: []plot.Figure{a.curve()}, Notes: []string{say("fewer", a)}}
}

func (a *Answer) halfLives() report.Section {
	t := &result.Table{Header: []string{"half-life", "now", "learner", "more"}}
	for _, h := range a.HalfLives {
		t.Add(h.Hours.String(), number(h.Now), number(h.Learning), signed(h.Learning/h.Now-1))
	}
	return report.Section{Title: "If interest lasts longer or shorter", Table: t, Notes: []string{say("half-lives", a)}}
}

func (a *Answer) decay() report.Section {
	t := &result.Table{Header: []string{"form", "fitted", "R²"}, Left: map[int]bool{1: true}}
	for _, f := range a.Fits {
		t.Header = append(t.Header, "true "+f.Name)
	}
	for k, f := range a.Fits {
		fitted := f.says(f.Param)
		if !math.IsNaN(f.Lo) {
			fitted += fmt.Sprintf(" [%.3g, %.3g]", f.Lo, f.Hi)
		}
		row := []string{f.Name, fitted, strconv.FormatFloat(f.R2, 'f', 4, 64)}
		for truth := range a.Fits {
			row = append(row, percent(a.Wrong[truth][k]))
		}
		t.Add(row...)
	}
	return report.Section{Title: "How interest is lost", Table: t, Notes: []string{say("decay", a)}}
}

func (a *Answer) toUse() report.Section {
	visits := make([]int, len(a.Log.Names))
	for _, c := range a.Timetable {
		visits[c.Source]++
	}
	order := make([]int, len(visits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return visits[j] - visits[i] })
	t := &result.Table{Header: []string{"source", "crawls per week", "every"}}
	for _, i := range order {
		if n := float64(visits[i]); n > 0 {
			t.Add(result.Printable(a.Log.Names[i]), number(n), hours(168/n).String())
		}
	}
	text := say("timetable", map[string]any{"Timetable": a.Timetable, "AsTold": a.AsTold(), "LeftOut": len(visits) - len(t.Rows)})
	return report.Section{Title: "A schedule to use", Table: t, Notes: []string{text}}
}

// JSON writes the figures as one object: the keys of all commands, and its own.
func (a *Answer) JSON(w io.Writer) error {
	type row struct {
		result.Row
		OfNow *float64 `json:"of_now"`
		measures
	}
	out := struct {
		result.Report
		Results   []row       `json:"results"`
		Epoch     float64     `json:"epoch_seconds"`
		Gain      *float64    `json:"gain"`
		GainLo    *float64    `json:"gain_lo"`
		GainHi    *float64    `json:"gain_hi"`
		Fewer     *float64    `json:"fewer_crawls"`
		HalfLife  hours       `json:"half_life_hours"`
		HalfLives []otherLife `json:"half_lives"`
		AsTold    *float64    `json:"timetable_of_frozen"`
	}{
		Report: result.Report{Instance: a.Name, Algorithm: a.Learner(), Knowledge: string(env.LevelOnline), Budget: float64(a.Budget), Steps: a.Epochs(), Seeds: 1, Seed: a.Seed},
		Epoch:  a.Epoch().Seconds(), Gain: result.Ptr(a.Gain.Value), GainLo: result.Ptr(a.Gain.Lo), GainHi: result.Ptr(a.Gain.Hi), Fewer: result.Ptr(a.Fewer),
		HalfLife: a.Form.Half(), HalfLives: a.HalfLives, AsTold: result.Ptr(a.AsTold()),
	}
	perEpoch := a.Epoch().Hours()
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
			OfNow: result.Ptr(r.Interest / a.Rows[0].Interest), measures: r.measures,
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
	all := slices.Concat([]report.Section{{Title: "What a better schedule would bring", Notes: []string{p.Answer}}, {Title: "The log", Notes: p.Notes}},
		p.Sections, []report.Section{{Title: "How this was measured", Notes: p.Footnotes}})
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
		learner.X, learner.Y = append(learner.X, s.PerHour), append(learner.Y, s.Interest*a.nowAtEnd)
		now.X, now.Y = append(now.X, s.PerHour), append(now.Y, a.nowAtEnd)
	}
	f := plot.New("", "Interest with fewer crawls", "crawls per hour", "interest per hour")
	f.Series = []plot.Series{learner, now}
	return f
}

// Figure shows what every schedule earns, with intervals over weeks: in colours
// of their own the learner, and what is told the rates.
func (a *Answer) Figure() plot.Figure {
	var names []string
	for _, r := range a.Rows {
		names = append(names, r.Policy)
	}
	f := plot.New("schedules", fmt.Sprintf("%s, %s crawls per hour", a.Name, number(a.Rate)), "interest per hour, with 95 % intervals over weeks", "")
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
