// Package plot holds figures as data, and draws them. A page draws a [Figure]
// from its JSON, [Figure.SVG] draws the same fields by gonum/plot. Equal figures
// give equal bytes.
package plot

import (
	"encoding/json"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// Figure is a figure as data.
type Figure struct {
	Name   string   `json:"name"` // of its file, without what that ends in
	Title  string   `json:"title"`
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"`
	Series []Series `json:"series"`
}

// New returns a figure without series; x and y label its axes, with the unit.
func New(name, title, x, y string) Figure {
	return Figure{Name: name, Title: title, X: Axis{Label: x}, Y: Axis{Label: y}}
}

// Of returns the series of that name. If there is none, it appends one in the
// next style.
func (f *Figure) Of(name string) *Series {
	k := slices.IndexFunc(f.Series, func(s Series) bool { return s.Name == name })
	if k < 0 {
		k = len(f.Series)
		f.Series = append(f.Series, Series{Name: name, Style: k})
	}
	return &f.Series[k]
}

// Axis is one axis of a figure.
type Axis struct {
	Label string   `json:"label"` // with the unit
	Log   bool     `json:"log,omitempty"`
	Names []string `json:"names,omitempty"` // stand at 0, 1, 2, … in place of numbers
	// The axis runs from Lo to Hi if these differ, else over all data.
	Lo float64 `json:"lo,omitempty"`
	Hi float64 `json:"hi,omitempty"`
}

// Plain is the style of what data are compared with: grey and dashed.
const Plain = -1

// Points is the kind of a series that is drawn as points with bars, which lie along the
// x axis if the y axis has names. Others are lines with a band.
const Points = "points"

// Series is what one entry of the legend stands for. Bands and bars reach from Lo to Hi.
type Series struct {
	Name string `json:"name"` // "" for no entry
	Kind string `json:"kind,omitempty"`
	// Style is the number of a colour with its dashes and shape. What has one
	// name has one style in all figures of a page.
	Style int    `json:"style"`
	X     Values `json:"x"`
	Y     Values `json:"y"` // a gap where not finite
	Lo    Values `json:"lo,omitempty"`
	Hi    Values `json:"hi,omitempty"`

	Grey bool `json:"-"` // it is grey in files, as what breaks the budget, and keeps its style on pages
}

// colour returns the colour of a series in files.
func (s *Series) colour() color.RGBA {
	if s.Grey {
		return grey
	}
	return colourOf(s.Style)
}

// Guide returns a straight line to compare data with.
func Guide(name string, x1, y1, x2, y2 float64) Series {
	return Series{Name: name, Style: Plain, X: Values{x1, x2}, Y: Values{y1, y2}}
}

// Add appends a point.
func (s *Series) Add(x, y float64) { s.X, s.Y = append(s.X, x), append(s.Y, y) }

// AddWithin appends a point with its interval, in a series whose points all have
// one; NaN where there is none.
func (s *Series) AddWithin(x, y, lo, hi float64) {
	s.Add(x, y)
	s.Lo, s.Hi = append(s.Lo, lo), append(s.Hi, hi)
}

// Values are numbers of which some may be missing.
type Values []float64

// MarshalJSON implements json.Marshaler: null where a number is not finite,
// and no more digits than tell lines apart.
func (v Values) MarshalJSON() ([]byte, error) {
	all := make([]json.RawMessage, len(v)) // nil is null
	for i, x := range v {
		if finite(x) {
			all[i] = strconv.AppendFloat(nil, x, 'g', 8, 64)
		}
	}
	return json.Marshal(all)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (a *Axis) shows(v float64) bool { return finite(v) && (!a.Log || v > 0) }

// stretch is what a series has between two gaps: points that the axes can show,
// and the ends of their intervals, which are the points where there are none.
type stretch struct{ at, lo, hi plotter.XYs }

// stretches splits a series at its gaps.
func (f *Figure) stretches(s *Series) (all []stretch) {
	shows := func(p plotter.XY) bool { return f.X.shows(p.X) && f.Y.shows(p.Y) }
	gap := true
	for k := range min(len(s.X), len(s.Y)) {
		at := plotter.XY{X: s.X[k], Y: s.Y[k]}
		if !shows(at) {
			gap = true
			continue
		}
		lo, hi := at, at
		if k < min(len(s.Lo), len(s.Hi)) {
			if f.Y.Names != nil {
				lo.X, hi.X = s.Lo[k], s.Hi[k]
			} else {
				lo.Y, hi.Y = s.Lo[k], s.Hi[k]
			}
		}
		if !shows(lo) || !shows(hi) {
			lo, hi = at, at
		}
		if gap {
			all, gap = append(all, stretch{}), false
		}
		r := &all[len(all)-1]
		r.at, r.lo, r.hi = append(r.at, at), append(r.lo, lo), append(r.hi, hi)
	}
	return all
}

// Prune leaves out series that have nothing to draw. It returns an error if
// nothing is left.
func (f *Figure) Prune() error {
	f.Series = slices.DeleteFunc(slices.Clone(f.Series), func(s Series) bool { return len(f.stretches(&s)) == 0 })
	if len(f.Series) == 0 {
		return fmt.Errorf("plot: %q has nothing to draw", f.Title)
	}
	return nil
}

// What a figure stands on, and what it stands on at night.
var (
	back = color.RGBA{255, 255, 255, 255}
	ink  = color.RGBA{27, 27, 31, 255}
	grid = color.RGBA{227, 228, 233, 255}
	grey = color.RGBA{128, 128, 128, 255}

	letter = color.RGBA{28, 28, 32, 255} // of text, and of nothing else

	inkBand = color.RGBA{26, 26, 30, 255} // ink as vgsvg writes it where it is not opaque

	nightBack = color.RGBA{13, 17, 23, 255}
	nightInk  = color.RGBA{230, 237, 243, 255}
	nightGrid = color.RGBA{44, 48, 56, 255}
)

// colours are those of Okabe and Ito, which most colour-blind readers can tell
// apart, with ink for black.
var colours = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
	{230, 159, 0, 255}, {86, 180, 233, 255}, ink, {148, 103, 40, 255},
}

// dashes tell lines of one colour apart.
var dashes = [][]float64{nil, {6, 3}, {2, 3}, {12, 5}, {10, 3, 2, 3}}

// shapes tell points of one colour apart in files; on a page all are circles.
var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{},
}

// Look is how the series of one style look; pages and files have it from here.
type Look struct {
	Colour string    `json:"colour"` // empty for that of text
	Dash   []float64 `json:"dash"`
}

// Looks returns how styles 0 to n−1 look, and then [Plain], so that a negative style
// counts from the end.
func Looks(n int) []Look {
	var looks []Look
	for i := range n {
		looks = append(looks, lookOf(i))
	}
	return append(looks, lookOf(Plain))
}

func lookOf(style int) Look {
	if style == Plain {
		return Look{Colour: hex(grey), Dash: []float64{5, 4}}
	}
	l := Look{Dash: dashes[style/len(colours)%len(dashes)]}
	if c := colourOf(style); c != ink {
		l.Colour = hex(c)
	}
	return l
}

func colourOf(style int) color.RGBA {
	if style < 0 {
		return grey
	}
	return colours[style%len(colours)]
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }
