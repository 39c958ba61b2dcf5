package plot

import (
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// end is the last point of a curve, as it stands on the axes, next to which its name stands.
type end struct {
	name string
	at   plotter.XY
	line draw.LineStyle
}

// mostCurves is how many curves have their names at their ends. More have a legend.
const mostCurves = 6

// fewCurves reports whether all series with names are curves, and few.
func (f *Figure) fewCurves() bool {
	n := 0
	for _, s := range f.Series {
		if s.Name != "" && s.Kind == Points {
			return false
		}
		if s.Name != "" {
			n++
		}
	}
	return f.Y.Names == nil && n <= mostCurves
}

func (f *Figure) endOf(s *Series) end {
	all := f.placed(s)
	last := all[len(all)-1].at
	return end{s.Name, last[len(last)-1], s.line()}
}

const (
	beforeName = 4.  // from the part with the data to a name, points
	sample     = 10. // of a curve in front of its name, points
	lineGap    = 13. // between the middles of two names, points
)

// nameEnds writes the names of curves to the right of the data, as high as the curves end,
// or as close to that as they have room. In front of each is a piece of its curve, to which a thin
// line leads from the end: the colours of thin lines alone are hard to tell apart. From a curve that
// ends before the others it is dotted up to the edge of the data.
func (d *drawing) nameEnds(data, all draw.Canvas) {
	if len(d.ends) == 0 {
		return
	}
	x, y := d.plot.Transforms(&data)
	within := func(v vg.Length) vg.Length { return min(max(v, data.Min.Y), data.Max.Y) }
	slices.SortStableFunc(d.ends, func(a, b end) int { return int(math.Copysign(1, float64(y(a.at.Y)-y(b.at.Y)))) })
	var ends []vg.Length
	for _, e := range d.ends {
		ends = append(ends, within(y(e.at.Y)))
	}
	style := d.plot.Legend.TextStyle
	style.YAlign = text.YCenter
	for k, at := range spread(ends, lineGap, data.Min.Y+lineGap/2, data.Max.Y-lineGap/2) {
		e := d.ends[k]
		thin := draw.LineStyle{Color: e.line.Color, Width: vg.Points(.5)}
		edge, piece := vg.Point{X: data.Max.X, Y: ends[k]}, vg.Point{X: d.left - sample, Y: at}
		all.StrokeLines(thin, []vg.Point{edge, piece})
		all.StrokeLine2(e.line, piece.X, at, d.left, at)
		if last := x(e.at.X); last < edge.X { // among the data dots are not taken for a curve
			thin.Dashes = []vg.Length{vg.Points(1), vg.Points(3)}
			all.StrokeLines(thin, []vg.Point{{X: last, Y: ends[k]}, edge})
		}
		middle := at + style.Font.Size/6 // of small letters, in which most names are
		all.FillText(style, vg.Point{X: d.left + beforeName, Y: middle}, e.name)
	}
}

// spread returns places from lo to hi, each that far from the next at least, which are as
// close to those that are wanted, in their order, as least squares have it: places less their
// least distances from the first do not fall, and neighbours that would are put at their mean.
func spread(wanted []vg.Length, apart, lo, hi vg.Length) []vg.Length {
	type block struct {
		sum vg.Length
		n   int
	}
	var blocks []block
	for k, v := range wanted {
		blocks = append(blocks, block{v - vg.Length(k)*apart, 1})
		for n := len(blocks); n > 1; n = len(blocks) {
			a, b := blocks[n-2], blocks[n-1]
			if a.sum/vg.Length(a.n) <= b.sum/vg.Length(b.n) {
				break
			}
			blocks = append(blocks[:n-2], block{a.sum + b.sum, a.n + b.n})
		}
	}
	room := hi - lo - vg.Length(len(wanted)-1)*apart // of the first
	var places []vg.Length
	for _, b := range blocks {
		for range b.n {
			first := min(max(b.sum/vg.Length(b.n), lo), lo+max(0, room))
			places = append(places, first+vg.Length(len(places))*apart)
		}
	}
	return places
}
