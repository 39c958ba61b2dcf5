package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"math"
	"strconv"

	"ephemera/experiments/plot"
	"ephemera/experiments/stats"
	"ephemera/experiments/sweep"
)

// uPlot (github.com/leeoniya/uPlot, MIT) is carried unchanged from its npm
// package, version 1.6.32.
var (
	//go:embed page/uPlot.iife.min.js
	uplotJS string
	//go:embed page/uPlot.min.css
	uplotCSS string
	//go:embed page/report.js
	pageJS string
	//go:embed page/report.css
	pageCSS string
	//go:embed page/report.html
	pageHTML string

	page = template.Must(template.New("report").Funcs(template.FuncMap{"format": stats.Format}).Parse(pageHTML))
)

// num is a number as the page has it: null where there is none, and no more
// digits than tell lines and rows apart.
type num float64

// MarshalJSON implements json.Marshaler.
func (n num) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, v, 'g', 10, 64), nil
}

// band is an estimate: value, lo, hi.
type band [3]num

func bandOf(e stats.Estimate) band { return band{num(e.Value), num(e.Lo), num(e.Hi)} }

// pageData is what the page's script works on.
type pageData struct {
	Figures   []sweep.Figure `json:"figures"`
	Curves    []sweep.Figure `json:"curveFigures"`
	Show      []int          `json:"show"`
	Metric    int            `json:"metric"`
	Reference string         `json:"reference"`
	Drawn     []string       `json:"drawn"`
	Cells     []pageCell     `json:"cells"`
	Lines     []pageCurve    `json:"curves"`
	Profile   *pageProfile   `json:"profile"`
	Learned   []pageLearned  `json:"learned"`
	Axis      string         `json:"axis"`
	Log       bool           `json:"log"`
	Paths     []pagePath     `json:"paths"`
}

type pagePath struct {
	Name  string    `json:"name"`
	X     []float64 `json:"x"`
	Cells []int     `json:"cells"`
}

type pageCell struct {
	ID      string `json:"id"`
	N       int    `json:"n"`
	Mean    []band `json:"mean"`
	IQM     band   `json:"iqm"`
	Diff    *band  `json:"diff"`
	Improve *band  `json:"improve"`
	Warning string `json:"warning,omitempty"`
}

type pageCurve struct {
	Cell   string   `json:"cell"`
	Epochs []int    `json:"epochs"`
	Bands  [][]band `json:"bands"`
}

type pageProfile struct {
	Scores []float64 `json:"scores"`
	Lines  []struct {
		Name  string `json:"name"`
		Share []band `json:"share"`
	} `json:"lines"`
}

type pageLearned struct {
	Cell    string  `json:"cell"`
	What    string  `json:"what"`
	Source  string  `json:"source"`
	At      float64 `json:"at"`
	Learned band    `json:"learned"`
	Exact   num     `json:"exact"`
}

// tile is a cell of a heat map.
type tile struct {
	ID, Text, Back string
	Dark           bool
}

type heatPage struct {
	Title, X, Y string
	XNames      []string
	Rows        []heatRow
	Lo, Hi      float64
}

type heatRow struct {
	Name  string
	Tiles []tile
}

// HTML returns the page. It loads nothing: script, style and data are in it.
func (r *Report) HTML() ([]byte, error) {
	s := r.Summary
	// The script goes through lists, which must be lists where they are empty.
	d := pageData{
		Figures: s.Figures, Curves: append([]sweep.Figure{}, s.Curves...), Show: []int{}, Metric: s.Column(s.Metric), Reference: s.Reference,
		Drawn: append([]string{}, r.Drawn...), Cells: []pageCell{}, Lines: []pageCurve{}, Learned: []pageLearned{}, Paths: []pagePath{},
	}
	for _, f := range s.Show {
		d.Show = append(d.Show, s.Column(f))
	}
	for _, c := range s.Cells {
		p := pageCell{ID: c.ID, N: c.IQM.N, IQM: bandOf(c.IQM), Warning: c.IQM.Warning}
		for _, e := range c.Mean {
			p.Mean = append(p.Mean, bandOf(e))
		}
		if c.Diff != nil {
			diff, improve := bandOf(*c.Diff), bandOf(*c.Improve)
			p.Diff, p.Improve = &diff, &improve
		}
		d.Cells = append(d.Cells, p)
	}
	for _, c := range r.Curves {
		p := pageCurve{Cell: c.Cell, Epochs: c.Epochs, Bands: [][]band{}}
		for _, b := range c.Bands {
			p.Bands = append(p.Bands, bandsOf(b))
		}
		d.Lines = append(d.Lines, p)
	}
	if s.Profile != nil {
		d.Profile = &pageProfile{Scores: s.Profile.Scores}
		for _, l := range s.Profile.Lines {
			d.Profile.Lines = append(d.Profile.Lines, struct {
				Name  string `json:"name"`
				Share []band `json:"share"`
			}{l.Name, bandsOf(l.Share)})
		}
	}
	for _, l := range r.Learned {
		d.Learned = append(d.Learned, pageLearned{l.Cell, l.What, l.Source, l.At, bandOf(l.Learned), num(l.Exact)})
	}
	d.Axis, d.Log = r.Axis, true
	for _, p := range r.Paths {
		d.Paths = append(d.Paths, pagePath{p.Name, p.X, p.Cells})
		d.Log = d.Log && spread(p.X)
	}
	data, err := json.Marshal(d) // escapes <, > and &, so that it can stand in a page
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = page.Execute(&b, map[string]any{
		"Summary": s, "Config": r.Config, "Command": r.Command, "Heat": r.heatPages(), "Warnings": s.Warnings(), "Notes": r.notes(), "Less": s.Figures[s.Column(s.Metric)].Less,
		"Data": template.JS(data), "UPlot": template.JS(uplotJS), "Script": template.JS(pageJS),
		"UPlotCSS": template.CSS(uplotCSS), "CSS": template.CSS(pageCSS),
	})
	return b.Bytes(), err
}

func bandsOf(e []stats.Estimate) []band {
	out := make([]band, len(e))
	for i, v := range e {
		out[i] = bandOf(v)
	}
	return out
}

func (r *Report) heatPages() []heatPage {
	s := r.Summary
	m := s.Column(s.Metric)
	var out []heatPage
	for _, p := range r.Heat {
		g := plot.Grid{}
		for _, line := range p.Cells {
			var v []float64
			for _, i := range line {
				if i >= 0 {
					v = append(v, s.Cells[i].Mean[m].Value)
				}
			}
			g.Values = append(g.Values, v)
		}
		h := heatPage{Title: p.Title, X: p.X, Y: p.Y, XNames: p.XNames}
		h.Lo, h.Hi = g.Range()
		// The greatest value of the vertical setting stands on top, as in the
		// still picture.
		for y := len(p.Cells) - 1; y >= 0; y-- {
			row := heatRow{Name: p.YNames[y]}
			for _, i := range p.Cells[y] {
				t := tile{Text: "–", Back: "transparent"}
				if i >= 0 {
					if v := s.Cells[i].Mean[m].Value; !math.IsNaN(v) && !math.IsInf(v, 0) {
						c := plot.Shade(v, h.Lo, h.Hi)
						t = tile{Text: stats.Format(v), Back: hex(c.R, c.G, c.B), Dark: plot.Dark(c)}
					}
					t.ID = s.Cells[i].ID
				}
				row.Tiles = append(row.Tiles, t)
			}
			h.Rows = append(h.Rows, row)
		}
		out = append(out, h)
	}
	return out
}

func hex(rgb ...uint8) string {
	const digits = "0123456789abcdef"
	s := []byte{'#'}
	for _, v := range rgb {
		s = append(s, digits[v>>4], digits[v&15])
	}
	return string(s)
}
