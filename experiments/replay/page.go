package replay

import (
	"bytes"
	_ "embed"
	"html/template"

	"ephemera/experiments/plot"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// Page returns the answer as one page of HTML that needs nothing else. The command
// is what makes it again.
func (a *Answer) Page(command string) ([]byte, error) {
	curve, err := a.curve()
	if err != nil {
		return nil, err
	}
	pictures := map[string][]template.HTML{"With fewer crawls": curve}
	type section struct {
		Section
		Pictures []template.HTML
	}
	var sections []section
	for _, s := range a.Sections() {
		sections = append(sections, section{s, pictures[s.Title]})
	}
	var b bytes.Buffer
	err = page.Execute(&b, struct {
		Name, Command string
		Sections      []section
	}{a.Name, command, sections})
	return b.Bytes(), err
}

// curve draws what the learner earns with fewer crawls, and what is earned now,
// for light and for dark screens.
func (a *Answer) curve() (pictures []template.HTML, err error) {
	learner, now := plot.Series{Name: "learner"}, plot.Series{Name: "now, with all crawls", Style: plot.Plain}
	for _, s := range a.Budgets {
		learner.X, learner.Y = append(learner.X, s.Crawls*a.Rate), append(learner.Y, s.Interest*a.nowAtEnd)
		now.X, now.Y = append(now.X, s.Crawls*a.Rate), append(now.Y, a.nowAtEnd)
	}
	f := plot.Figure{
		Title: "Interest with fewer crawls",
		X:     plot.Axis{Label: "crawls per hour"}, Y: plot.Axis{Label: "interest per hour"},
		Series: []plot.Series{learner, now},
	}
	if err := f.Fit(); err != nil {
		return nil, err
	}
	for _, theme := range []plot.Theme{plot.Light, plot.Dark} {
		svg, err := f.SVG(theme)
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, template.HTML(svg[bytes.Index(svg, []byte("<svg")):]))
	}
	return pictures, nil
}
