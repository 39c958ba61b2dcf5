// Package plot draws the figures of reports as SVG and PNG. It is the one
// package that knows gonum/plot. Equal data give equal bytes.
package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours are those of Okabe and Ito, which most colour-blind readers can tell
// apart; lines beyond them repeat the colours with dashes, points with other
// shapes.
var Colours = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
	{230, 159, 0, 255}, {86, 180, 233, 255}, {0, 0, 0, 255}, {148, 103, 40, 255},
}

// dashes tell lines of one colour apart. The first colours are drawn solid; the
// patterns are short enough to be seen in the legend.
var dashes = [][]vg.Length{nil, {4, 2}, {1.5, 2}, {9, 4}, {7, 2, 1.5, 2}, {4, 2, 1.5, 2, 1.5, 2}}

// Line is a curve with a band.
type Line struct {
	Name   string
	X, Y   []float64
	Lo, Hi []float64 // the band; nil or NaN for none
}

// Axes name what is drawn.
type Axes struct {
	Title, X, Y string
	LogX        bool
	// Room begins the y axis of lines at 0 and leaves room above them for the
	// legend.
	Room bool
}

// Picture is a figure that can be written in either format.
type Picture struct {
	plot          *plot.Plot
	legend        plot.Legend
	entries       int // of the legend
	width, height vg.Length
}

// mostInside is how many entries a legend has that stands in the plot; a longer
// one stands beside it.
const mostInside = 6

func (p *Picture) entry(name string, thumbs ...plot.Thumbnailer) {
	p.legend.Add(name, thumbs...)
	p.entries++
}

func newPicture(a Axes) *Picture {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = a.Title, a.X, a.Y
	p.Title.Padding = vg.Points(6)
	p.BackgroundColor = color.White
	if a.LogX {
		p.X.Scale = plot.LogScale{}
		p.X.Tick.Marker = plot.LogTicks{Prec: -1}
	}
	pic := &Picture{plot: p, legend: plot.NewLegend(), width: 7 * vg.Inch, height: 4.4 * vg.Inch}
	pic.legend.Top, pic.legend.Padding = true, vg.Points(2)
	return pic
}

func points(x, y []float64, logX bool) []plotter.XYs {
	// A gap in the data is a gap in the line.
	var parts []plotter.XYs
	var run plotter.XYs
	for i := range x {
		if !finite(x[i]) || !finite(y[i]) || logX && x[i] <= 0 {
			if len(run) > 0 {
				parts = append(parts, run)
			}
			run = nil
			continue
		}
		run = append(run, plotter.XY{X: x[i], Y: y[i]})
	}
	if len(run) > 0 {
		parts = append(parts, run)
	}
	return parts
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Lines draws curves with their bands.
func Lines(a Axes, lines []Line) (*Picture, error) {
	pic := newPicture(a)
	drawn := false
	for i, l := range lines {
		c := Colours[i%len(Colours)]
		if err := band(pic.plot, l, c, a.LogX); err != nil {
			return nil, err
		}
		for k, part := range points(l.X, l.Y, a.LogX) {
			line, err := plotter.NewLine(part)
			if err != nil {
				return nil, err
			}
			line.Color, line.Width = c, vg.Points(1.4)
			line.Dashes = dashes[i/len(Colours)%len(dashes)]
			pic.plot.Add(line)
			drawn = true
			if k == 0 && l.Name != "" {
				pic.entry(l.Name, line)
			}
		}
	}
	if !drawn {
		return nil, fmt.Errorf("plot: %q has no point to draw", a.Title)
	}
	// The legend stands on the right, where curves are high or low, away from
	// them.
	pic.legend.Top = a.Room || endLow(lines, pic.plot.Y.Min, pic.plot.Y.Max)
	if a.Room {
		y := &pic.plot.Y
		y.Min = math.Min(0, y.Min)
		if pic.entries <= mostInside {
			y.Max += 0.28 * (y.Max - y.Min)
		}
	}
	return pic, nil
}

// endLow reports whether the last third of the points of all lines lies, on
// average, in the lower half of the range.
func endLow(lines []Line, lo, hi float64) bool {
	var sum float64
	var n int
	for _, l := range lines {
		for _, y := range l.Y[2*len(l.Y)/3:] {
			if !math.IsNaN(y) {
				sum += y
				n++
			}
		}
	}
	return sum <= float64(n)*(lo+hi)/2
}

func band(p *plot.Plot, l Line, c color.RGBA, logX bool) error {
	if l.Lo == nil {
		return nil
	}
	lo, hi := points(l.X, l.Lo, logX), points(l.X, l.Hi, logX)
	if len(lo) != 1 || len(hi) != 1 || len(lo[0]) != len(hi[0]) || len(lo[0]) < 2 {
		return nil
	}
	ring := append(plotter.XYs{}, lo[0]...)
	for i := len(hi[0]) - 1; i >= 0; i-- {
		ring = append(ring, hi[0][i])
	}
	poly, err := plotter.NewPolygon(ring)
	if err != nil {
		return err
	}
	poly.Color = color.NRGBA{c.R, c.G, c.B, 44}
	poly.LineStyle.Width = 0
	p.Add(poly)
	return nil
}

// Scatter draws learned quantities over exact ones, with the line on which
// both agree.
func Scatter(a Axes, groups []Line) (*Picture, error) {
	pic := newPicture(a)
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, g := range groups {
		for k, part := range points(g.X, g.Y, a.LogX) {
			s, err := plotter.NewScatter(part)
			if err != nil {
				return nil, err
			}
			s.GlyphStyle = draw.GlyphStyle{Color: Colours[i%len(Colours)], Radius: vg.Points(2.5), Shape: shape(i)}
			pic.plot.Add(s)
			if k == 0 && g.Name != "" {
				pic.entry(g.Name, s)
			}
			for _, p := range part {
				lo, hi = math.Min(lo, math.Min(p.X, p.Y)), math.Max(hi, math.Max(p.X, p.Y))
			}
		}
	}
	if !(lo < hi) {
		return nil, fmt.Errorf("plot: %q has no two points to draw", a.Title)
	}
	same, err := plotter.NewLine(plotter.XYs{{X: lo, Y: lo}, {X: hi, Y: hi}})
	if err != nil {
		return nil, err
	}
	same.Color, same.Dashes = color.Gray{128}, []vg.Length{vg.Points(3), vg.Points(3)}
	pic.plot.Add(same)
	pic.legend.Left = true
	return pic, nil
}

// Grid is a table of values over two settings.
type Grid struct {
	XNames, YNames []string
	Values         [][]float64 // [y][x]; NaN where there is no cell
}

// Heat draws a grid: lighter is higher.
func Heat(a Axes, g Grid) (*Picture, error) {
	pic := newPicture(a)
	lo, hi := g.Range()
	if math.IsInf(lo, 0) {
		return nil, fmt.Errorf("plot: %q has no value to draw", a.Title)
	}
	for y, row := range g.Values {
		for x, v := range row {
			if !finite(v) {
				continue
			}
			c := Shade(v, lo, hi)
			fx, fy := float64(x), float64(y)
			tile, err := plotter.NewPolygon(plotter.XYs{{X: fx - .5, Y: fy - .5}, {X: fx + .5, Y: fy - .5}, {X: fx + .5, Y: fy + .5}, {X: fx - .5, Y: fy + .5}})
			if err != nil {
				return nil, err
			}
			tile.Color = c
			tile.LineStyle.Color, tile.LineStyle.Width = c, vg.Points(.3)
			pic.plot.Add(tile)
		}
	}
	if len(g.XNames)*len(g.YNames) <= 150 {
		var at plotter.XYLabels
		var dark []bool
		for y, row := range g.Values {
			for x, v := range row {
				if finite(v) {
					at.XYs = append(at.XYs, plotter.XY{X: float64(x), Y: float64(y)})
					at.Labels = append(at.Labels, fmt.Sprintf("%.4g", v))
					dark = append(dark, Dark(Shade(v, lo, hi)))
				}
			}
		}
		labels, err := plotter.NewLabels(at)
		if err != nil {
			return nil, err
		}
		for i := range labels.TextStyle {
			labels.TextStyle[i].XAlign, labels.TextStyle[i].YAlign = draw.XCenter, draw.YCenter
			labels.TextStyle[i].Font.Size = vg.Points(8)
			if dark[i] {
				labels.TextStyle[i].Color = color.White
			}
		}
		pic.plot.Add(labels)
	}
	pic.plot.X.Tick.Marker, pic.plot.Y.Tick.Marker = names(g.XNames), names(g.YNames)
	pic.plot.X.Min, pic.plot.X.Max = -.5, float64(len(g.XNames))-.5
	pic.plot.Y.Min, pic.plot.Y.Max = -.5, float64(len(g.YNames))-.5
	return pic, nil
}

// Range returns the least and the greatest value of the grid.
func (g Grid) Range() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, row := range g.Values {
		for _, v := range row {
			if finite(v) {
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
		}
	}
	return lo, hi
}

// names puts a label on each row or column, on every few of many.
type names []string

// Ticks implements plot.Ticker.
func (n names) Ticks(_, _ float64) []plot.Tick {
	every := (len(n) + 15) / 16
	var t []plot.Tick
	for i, name := range n {
		if i%every == 0 {
			t = append(t, plot.Tick{Value: float64(i), Label: name})
		}
	}
	return t
}

// shades run from dark to light with even steps in lightness, so that they can
// be read in grey as well.
var shades = []color.RGBA{{53, 23, 89, 255}, {58, 82, 139, 255}, {32, 144, 140, 255}, {94, 201, 97, 255}, {253, 231, 37, 255}}

// Shade returns the colour of a value between lo and hi.
func Shade(v, lo, hi float64) color.RGBA {
	t := 0.5
	if hi > lo {
		t = math.Max(0, math.Min(1, (v-lo)/(hi-lo)))
	}
	p := t * float64(len(shades)-1)
	i := min(int(p), len(shades)-2)
	f := p - float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + f*(float64(b)-float64(a)))) }
	a, b := shades[i], shades[i+1]
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// Dark reports whether text on the colour should be white.
func Dark(c color.RGBA) bool {
	return 0.299*float64(c.R)+0.587*float64(c.G)+0.114*float64(c.B) < 140
}

// draw leaves room on the right for half of the last tick's label.
func (p *Picture) draw(c vg.CanvasSizer) {
	to := draw.Crop(draw.New(c), vg.Points(2), -vg.Points(18), vg.Points(2), -vg.Points(4))
	if p.entries <= mostInside {
		p.plot.Legend = p.legend
	} else {
		beside := p.legend
		beside.Top, beside.Left, beside.YOffs = true, false, -vg.Points(20) // below the title
		beside.Draw(to)
		r := beside.Rectangle(to)
		to = draw.Crop(to, 0, -(r.Size().X + vg.Points(12)), 0, 0)
	}
	p.plot.Draw(to)
}

// size returns the extent of the picture: the plot keeps about its width where
// the legend stands beside it.
func (p *Picture) size() (width, height vg.Length) {
	width = p.width
	if p.entries > mostInside {
		width += 1.8 * vg.Inch
	}
	return width, p.height
}

// SVG returns the picture as SVG.
func (p *Picture) SVG() ([]byte, error) {
	c := vgsvg.New(p.size())
	p.draw(c)
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
	return b.Bytes(), err
}

// PNG returns the picture as PNG at 144 dots per inch.
func (p *Picture) PNG() ([]byte, error) {
	c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(p.size()), vgimg.UseDPI(144))}
	p.draw(c)
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
	return b.Bytes(), err
}
