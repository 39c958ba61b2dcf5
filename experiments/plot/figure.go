// Package plot holds figures as data, and draws them. A page draws a [Figure]
// from its JSON, [Figure.SVG] and [Figure.PNG] from the same fields: colours,
// labels, order, ranges and ticks are settled once, by [Figure.Fit]. It is the
// one package that knows gonum/plot. Equal figures give equal bytes.
package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/plotter"
)

// Figure is a figure as data.
type Figure struct {
	Name   string   `json:"name"` // of its files; "" for a figure that only a page has
	Title  string   `json:"title"`
	X      Axis     `json:"x"`
	Y      Axis     `json:"y"`
	Series []Series `json:"series,omitempty"`
	Tiles  *Tiles   `json:"tiles,omitempty"` // in place of series
	// From, if not 0, is where the x axis begins and, at five times that, the
	// values that fill the y axis, if those before would crush them.
	From float64 `json:"-"`
}

// New begins a figure; x and y are what its axes show, with the unit.
func New(name, title, x, y string) Figure {
	return Figure{Name: name, Title: title, X: Axis{Label: x}, Y: Axis{Label: y}}
}

// Of returns the series of that name. The first time it begins it, in the next
// style.
func (f *Figure) Of(name string) *Series {
	for i := range f.Series {
		if f.Series[i].Name == name {
			return &f.Series[i]
		}
	}
	f.Series = append(f.Series, Series{Name: name, Style: len(f.Series)})
	return &f.Series[len(f.Series)-1]
}

// Axis is one axis of a figure.
type Axis struct {
	Label string `json:"label"` // with the unit
	Log   bool   `json:"log,omitempty"`
	// Lo, Hi and Ticks are what Fit finds, unless they are given.
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
	Ticks []Tick  `json:"ticks"`
}

// Tick is a mark of an axis. One without text is a smaller one.
type Tick struct {
	At   float64 `json:"at"`
	Text string  `json:"text"`
}

// Names returns the ticks of an axis of names, which stand at 0, 1, 2, …; of
// many it names every few.
func Names(names []string) []Tick {
	every := (len(names) + 23) / 24
	var t []Tick
	for i, n := range names {
		if i%every == 0 {
			t = append(t, Tick{float64(i), n})
		}
	}
	return t
}

// Kind says how a series is drawn.
type Kind string

// The kinds.
const (
	Line   Kind = ""       // through its points, with a band from Lo to Hi
	Steps  Kind = "steps"  // as Line, each value up to the next point
	Points Kind = "points" // with bars from Lo to Hi
	Across Kind = "across" // as Points, Lo and Hi along the x axis
	Marks  Kind = "marks"  // an upright stroke at each point
)

// Styles of what data are compared with: grey and dashed, and dotted.
const (
	Plain  = -1
	Dotted = -2
)

// Series is what one entry of the legend stands for.
type Series struct {
	Name string `json:"name"` // "" for no entry
	Kind Kind   `json:"kind,omitempty"`
	// Style is the number of a colour with its dashes and shape. What has one
	// name has one style in all figures of a page.
	Style  int    `json:"style"`
	X      Values `json:"x"`
	Y      Values `json:"y"` // a gap where not finite
	Lo     Values `json:"lo,omitempty"`
	Hi     Values `json:"hi,omitempty"`
	Hidden bool   `json:"hidden,omitempty"` // until the reader of a page asks for it
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
	b := []byte{'['}
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		if finite(x) {
			b = strconv.AppendFloat(b, x, 'g', 8, 64)
		} else {
			b = append(b, "null"...)
		}
	}
	return append(b, ']'), nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (a *Axis) shows(v float64) bool { return finite(v) && (!a.Log || v > 0) }

// run is what a series has between two gaps: points that the axes can show, and
// the ends of their intervals, which are the points where there are none.
type run struct{ at, lo, hi plotter.XYs }

func (f *Figure) runs(s *Series) (all []run) {
	shows := func(p plotter.XY) bool { return f.X.shows(p.X) && f.Y.shows(p.Y) }
	gap := true
	for k := range min(len(s.X), len(s.Y)) {
		at := plotter.XY{X: s.X[k], Y: s.Y[k]}
		if !shows(at) {
			gap = true
			continue
		}
		lo, hi := at, at
		switch {
		case k >= min(len(s.Lo), len(s.Hi)):
		case s.Kind == Across:
			lo.X, hi.X = s.Lo[k], s.Hi[k]
		default:
			lo.Y, hi.Y = s.Lo[k], s.Hi[k]
		}
		if !shows(lo) || !shows(hi) {
			lo, hi = at, at
		}
		if gap {
			all, gap = append(all, run{}), false
		}
		r := &all[len(all)-1]
		r.at, r.lo, r.hi = append(r.at, at), append(r.lo, lo), append(r.hi, hi)
	}
	return all
}

// Fit settles the ranges and ticks that are not given, and leaves out series
// that have nothing to draw. It changes nothing the second time. It returns an
// error if there is nothing to draw at all.
func (f *Figure) Fit() error {
	f.Series = slices.DeleteFunc(slices.Clone(f.Series), func(s Series) bool { return len(f.runs(&s)) == 0 })
	if t := f.Tiles; t != nil && t.fit() {
		f.X.Ticks, f.Y.Ticks = Names(t.X), Names(t.Y)
		f.X.Lo, f.X.Hi, f.Y.Lo, f.Y.Hi = -.5, float64(len(t.X))-.5, -.5, float64(len(t.Y))-.5
		return nil
	}
	if len(f.Series) == 0 {
		return fmt.Errorf("plot: %q has nothing to draw", f.Title)
	}
	// Hidden ones count only where all are.
	every := !slices.ContainsFunc(f.Series, func(s Series) bool { return !s.Hidden })
	x, y, late := nothing, nothing, nothing
	room := 0.
	for _, s := range f.Series {
		if s.Hidden && !every {
			continue
		}
		if s.Kind != Line && s.Kind != Steps {
			room = .04
		}
		for _, r := range f.runs(&s) {
			for _, p := range slices.Concat(r.at, r.lo, r.hi) {
				x.see(p.X)
				y.see(p.Y)
				if p.X >= 5*f.From {
					late.see(p.Y)
				}
			}
		}
	}
	if f.From > 0 && late.hi > late.lo && y.hi-y.lo > 2*(late.hi-late.lo) {
		x.lo, y = math.Max(x.lo, f.From), late
	}
	f.X.fit(x, room)
	f.Y.fit(y, .04)
	return nil
}

// span is a range of values.
type span struct{ lo, hi float64 }

var nothing = span{math.Inf(1), math.Inf(-1)}

func (s *span) see(v float64) { s.lo, s.hi = math.Min(s.lo, v), math.Max(s.hi, v) }

// fit takes the range of the data, with some room at its ends, and its ticks.
func (a *Axis) fit(s span, room float64) {
	if a.Lo == 0 && a.Hi == 0 {
		pad := room * (s.hi - s.lo)
		same := s.hi-s.lo <= 1e-9*math.Abs(s.hi) // but for rounding
		switch {
		case same && a.Log:
			a.Lo, a.Hi = s.lo/2, 2*s.lo
		case same && s.lo == 0:
			a.Lo, a.Hi = -.5, .5
		case same:
			pad = math.Abs(s.lo) / 20
			a.Lo, a.Hi = s.lo-pad, s.hi+pad
		case a.Log:
			wider := math.Pow(s.hi/s.lo, room)
			a.Lo, a.Hi = s.lo/wider, s.hi*wider
		case s.lo >= 0 && s.lo < .25*s.hi:
			a.Lo, a.Hi = 0, s.hi+pad // 0 is near, and says how much there is
		default:
			a.Lo, a.Hi = s.lo-pad, s.hi+pad
		}
	}
	if a.Ticks == nil && a.Log {
		a.Ticks = decades(a.Lo, a.Hi)
	}
	if a.Ticks == nil {
		a.Ticks = ticks(a.Lo, a.Hi)
	}
}

// ticks returns about six marks at round numbers, of which no two read the
// same.
func ticks(lo, hi float64) (t []Tick) {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/5)))
	for _, k := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if (hi-lo)/step <= 7 {
			break
		}
		step *= k
	}
	for k := math.Ceil(lo/step - 1e-9); k*step <= hi+1e-9*step && len(t) < 20; k++ {
		t = append(t, Tick{k * step, number(k*step, step, math.Max(math.Abs(lo), math.Abs(hi)))})
	}
	return t
}

// number writes a multiple of step with the digits that step needs; most is the
// greatest size on the axis.
func number(v, step, most float64) string {
	if v == 0 {
		return "0"
	}
	unit := math.Floor(math.Log10(step) + 1e-9)
	if most >= 1e6 || most < 1e-3 {
		digits := max(0, int(math.Floor(math.Log10(math.Abs(v))+1e-9)-unit))
		return short(strconv.FormatFloat(v, 'e', digits, 64))
	}
	return strconv.FormatFloat(v, 'f', max(0, int(-unit)), 64)
}

// short takes what says nothing out of an exponent: 1e+05 is 1e5.
var short = strings.NewReplacer("e+0", "e", "e-0", "e-", "e+", "e").Replace

// decades returns the marks of a logarithmic axis: powers of ten, of a few also
// two and five times them, of many every few; nil if there are not two.
func decades(lo, hi float64) []Tick {
	width := math.Log10(hi / lo)
	every := 1 + int(width/8)
	var t []Tick
	named := 0
	for e := int(math.Floor(math.Log10(lo))); e <= int(math.Ceil(math.Log10(hi))); e++ {
		for k := 1; k < 10; k++ {
			v := float64(k) * math.Pow(10, float64(e))
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			text := ""
			if k == 1 && e%every == 0 || width < 2.5 && (k == 2 || k == 5) {
				text = short(strconv.FormatFloat(v, 'e', 0, 64))
				if v >= .00099 && v < 99999 {
					text = strconv.FormatFloat(v, 'f', max(0, -e), 64)
				}
				named++
			}
			t = append(t, Tick{v, text})
		}
	}
	if named < 2 {
		return nil
	}
	return t
}
