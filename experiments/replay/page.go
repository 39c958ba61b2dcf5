package replay

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"

	"ephemera/experiments/plot"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// Page returns the answer as one page of HTML that needs nothing else. The command
// is what makes it again.
func (a *Answer) Page(command string) ([]byte, error) {
	pictures := map[string][]template.HTML{}
	for title, f := range map[string]plot.Figure{"With fewer crawls": a.curve(), "Schedules": a.Figure()} {
		for _, theme := range []plot.Theme{plot.Light, plot.Dark} {
			svg, err := f.SVG(theme)
			if err != nil {
				return nil, err
			}
			pictures[title] = append(pictures[title], template.HTML(svg[bytes.Index(svg, []byte("<svg")):]))
		}
	}
	type section struct {
		Section
		Pictures []template.HTML
	}
	var sections []section
	for _, s := range a.Sections() {
		sections = append(sections, section{s, pictures[s.Title]})
	}
	var b bytes.Buffer
	err := page.Execute(&b, struct {
		Name, Command string
		Sections      []section
	}{a.Name, command, sections})
	return b.Bytes(), err
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

// Figure shows what every schedule earns, with intervals over weeks.
func (a *Answer) Figure() plot.Figure {
	var names []string
	series := []plot.Series{
		{Kind: plot.Across, Style: 0},          // the learner
		{Kind: plot.Across, Style: 1},          // now, and the rules
		{Kind: plot.Across, Style: plot.Plain}, // what is told the rates
	}
	for k, r := range a.Rows {
		at := float64(len(a.Rows) - 1 - k)
		names = append([]string{r.Policy}, names...)
		s := &series[1]
		switch r.Policy {
		case "learning":
			s = &series[0]
		case "whittle":
			s = &series[2]
		}
		s.X, s.Y = append(s.X, r.Interest), append(s.Y, at)
		s.Lo, s.Hi = append(s.Lo, r.Interval.Lo), append(s.Hi, r.Interval.Hi)
	}
	return plot.Figure{
		Name: "schedules", Title: fmt.Sprintf("%s, %s crawls per hour", a.Name, number(a.Rate)),
		X:      plot.Axis{Label: "interest per hour, with 95 % intervals over weeks"},
		Y:      plot.Axis{Lo: -.6, Hi: float64(len(names)) - .4, Ticks: plot.Names(names)},
		Series: series,
	}
}
