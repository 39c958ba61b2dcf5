package replay

import (
	"cmp"
	_ "embed"
	"fmt"
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
	"ephemera/internal/plain"
)

//go:embed sentences.tmpl
var sentencesText string

var sentences = template.Must(template.New("").Option("missingkey=error").Funcs(template.FuncMap{
	"number": formatNumber, "percent": percent, "signed": signed, "count": plain.Count,
	"ratio": func(a, b float64) string { return percent(a / b) },
	"known": func(v float64) bool { return !math.IsNaN(v) },
	"date":  func(t time.Time) string { return t.Format("2006-01-02 15:04") },
}).Parse(sentencesText))

// sentence returns a text of sentences.tmpl about v.
func sentence(name string, v any) string {
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

// formatNumber writes a figure with up to four digits that count.
func formatNumber(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }

func signed(v float64) string { return fmt.Sprintf("%+.1f %%", 100*v) }

// What the sentences say of an answer.

// AtLeast reports whether even the least number of crawls that was tried is
// enough to earn what is earned now.
func (a *Answer) AtLeast() bool { return a.Fewer >= 1-shares[0] }

// Silent returns how many sources published nothing.
func (a *Answer) Silent() (n int) {
	for i := range a.Log.Names {
		if len(between(a.Log, i, float64(a.Log.First), math.Inf(1))) == 0 {
			n++
		}
	}
	return n
}

// Days returns how long the log lasts.
func (a *Answer) Days() float64 { return float64(a.Log.Last-a.Log.First) / day }

// Page returns the answer as a page.
func (a *Answer) Page() *report.Page {
	method := sentence("method", map[string]any{
		"From": unix(a.window.from), "To": unix(a.window.to), "Epochs": a.window.epochs(),
		"Epoch": seconds(a.window.length), "Answer": a, "Life": hours(a.HalfLife), "Late": hours(a.Late),
		"Floor": hours(a.longest(a.window)), "ShownFirst": shownFirst,
	})
	return &report.Page{
		Title: a.Name + ": what a better schedule would bring", Answer: sentence("answer", a),
		Notes: []string{sentence("log", a)}, Footnotes: []string{method},
		Sections: []report.Section{
			{
				Title: "Schedules", Table: scheduleTable(a.Rows), Figures: []plot.Figure{a.figure()},
				Notes: []string{sentence("schedules", a)},
			},
			a.fewer(),
			{
				Title: "A timetable on what it has not seen", Table: scheduleTable(a.SecondHalf),
				Notes: []string{sentence("second-half", a)},
			},
			a.toUse(),
		},
	}
}

func scheduleTable(rows []schedule) *result.Table {
	t := &result.Table{Header: []string{
		"schedule", "half of the items within", "nine in ten", "in the mean", "never found", "sources left out",
		"longest neglect", "interest per hour", "of now", "empty crawls",
	}}
	for _, r := range rows {
		t.Add(r.Policy, r.Median.String(), r.P90.String(), r.Mean.String(), percent(r.Missed), fmt.Sprint(r.LeftOut),
			r.Neglect.String(), formatNumber(r.Interest), r.OfNow.Text(percent), percent(r.Empty))
	}
	return t
}

func (a *Answer) fewer() report.Section {
	t := &result.Table{Header: []string{"crawls", "per hour", "interest of now"}}
	for _, s := range a.Budgets {
		t.Add(percent(s.Crawls), formatNumber(s.PerHour), percent(s.Interest))
	}
	return report.Section{Title: "With fewer crawls", Table: t, Notes: []string{sentence("fewer", a)}}
}

func (a *Answer) toUse() report.Section {
	visits := map[string]int{}
	for _, c := range a.Timetable {
		visits[a.Log.Names[c.Source]]++
	}
	names := slices.SortedStableFunc(slices.Values(a.Log.Names), func(x, y string) int { return visits[y] - visits[x] })
	t := &result.Table{Header: []string{"source", "crawls per week", "every"}}
	for _, name := range names[:len(visits)] {
		n := float64(visits[name])
		t.Add(name, formatNumber(n), hours(168/n).String())
	}
	text := sentence("timetable", map[string]any{"Timetable": a.Timetable, "LeftOut": len(names) - len(visits)})
	return report.Section{Title: "A schedule to use", Table: t, Notes: []string{text}}
}

// Week returns the timetable as a table, from Monday on.
func (a *Answer) Week() *result.Table {
	t := &result.Table{Header: []string{"weekday", "time_utc", "source"}}
	since := func(c Crawl) float64 { return math.Mod(c.At-4*day, week) } // Unix time began on a Thursday
	rows := slices.SortedStableFunc(slices.Values(a.Timetable), func(a, b Crawl) int {
		return cmp.Compare(since(a), since(b))
	})
	for _, c := range rows {
		at := unix(c.At)
		t.Add(at.Weekday().String(), at.Format("15:04:05"), a.Log.Names[c.Source])
	}
	return t
}

// Document implements [result.Printed]: in JSON the figures as one object, with the
// keys of all commands and its own, and otherwise the schedules; the page has more.
func (a *Answer) Document() result.Document {
	value := struct {
		result.Report
		Results  []schedule   `json:"results"`
		Epoch    float64      `json:"epoch_seconds"`
		Gain     result.Ratio `json:"gain"`
		GainLo   result.Ratio `json:"gain_lo"`
		GainHi   result.Ratio `json:"gain_hi"`
		Fewer    result.Ratio `json:"fewer_crawls"`
		HalfLife hours        `json:"half_life_hours"`
		Half     []schedule   `json:"second_half"`
	}{
		result.Report{
			Instance: a.Name, Algorithm: theLearner, Knowledge: string(env.LevelOnline), Budget: float64(a.Budget),
			Steps: a.window.epochs(), Seeds: 1, Seed: a.Seed,
		},
		a.Rows, a.window.length,
		result.RatioOf(a.Gain.Value), result.RatioOf(a.Gain.Lo), result.RatioOf(a.Gain.Hi), result.RatioOf(a.Fewer),
		hours(a.HalfLife), a.SecondHalf,
	}
	p, table := a.Page(), scheduleTable(a.Rows)
	return result.Document{
		Value: value, Rows: table, Table: table,
		First: append(slices.Clone(table.Header[:5]), "of now", "interest per hour"),
		Notes: slices.DeleteFunc(slices.Concat(
			[]string{p.Answer, sentence("second-half", a)}, p.Notes, p.Sections[0].Notes, p.Footnotes,
		), func(note string) bool { return note == "" }),
	}
}

// figure shows how long items wait until they are found, in the mean, the shortest first:
// in colours of their own the learner, and what is given the rates; as a line what is done
// now.
func (a *Answer) figure() plot.Figure {
	rows := slices.SortedStableFunc(slices.Values(a.Rows), func(x, y schedule) int {
		return cmp.Compare(x.Mean, y.Mean)
	})
	var names []string
	for _, r := range rows {
		names = append(names, a.Words(r.Policy))
	}
	title := fmt.Sprintf("%s, %s crawls an hour: how long items wait",
		plain.Count(len(a.Log.Names), "source"), formatNumber(a.Rate))
	f := plot.New("schedules", title, "hours until an item is found, in the mean", "")
	f.X.Log = true
	f = report.Dots(f, names, func(k int) (value, lo, hi float64, style int) {
		switch style = 1; rows[k].Policy {
		case "learning":
			style = 0
		case "whittle":
			style = plot.Plain
		}
		return float64(rows[k].Mean), math.NaN(), math.NaN(), style
	})
	return report.Against(f, float64(a.Rows[0].Mean))
}

// Words says what a schedule is.
func (a *Answer) Words(policy string) string {
	words := map[string]string{
		"now": "now: " + a.Now, "learning": "the learner, while it learns",
		"certainty": "Whittle of interest, rates estimated",
		"whittle":   "Whittle of interest, rates known", "round-robin": "every source in turn", "miniflux": "Miniflux",
		"commafeed": "CommaFeed", "nutch": "Nutch", "stormcrawler": "StormCrawler",
	}
	name, relative := strings.CutSuffix(policy, "-relative")
	switch text := words[name]; {
	case strings.HasPrefix(policy, learnsFor):
		return "the learner, aim " + strings.TrimPrefix(policy, learnsFor)
	case text == "":
		return policy
	case relative:
		return text + ", relative"
	default:
		return text
	}
}
