package plot

import (
	"bytes"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Theme is what a figure stands on. The background covers all of the figure.
type Theme struct {
	Back, Text, Grid color.RGBA
	Wash             uint8 // opacity of bands
}

// Themes for paper and for screens in dark mode.
var (
	Light = Theme{color.RGBA{255, 255, 255, 255}, color.RGBA{27, 27, 31, 255}, color.RGBA{227, 228, 233, 255}, 44}
	Dark  = Theme{color.RGBA{13, 17, 23, 255}, color.RGBA{230, 237, 243, 255}, color.RGBA{44, 48, 56, 255}, 70}
)

// Colours are those of Okabe and Ito, which most colour-blind readers can tell
// apart. The colour of text takes the place of black.
var colours = []color.RGBA{
	{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255},
	{230, 159, 0, 255}, {86, 180, 233, 255}, {}, {148, 103, 40, 255},
}

// dashes tell lines of one colour apart. The first colours are drawn solid; the
// patterns are short enough to be seen in the legend.
var dashes = [][]float64{nil, {6, 3}, {2, 3}, {12, 5}, {10, 3, 2, 3}, {6, 3, 2, 3, 2, 3}}

var grey = color.RGBA{128, 128, 128, 255}

// Look is how the series of one style look; pages and files have it from here.
type Look struct {
	Colour string       `json:"colour"` // empty for that of text
	Dash   []float64    `json:"dash"`
	Shape  [][2]float64 `json:"shape"` // corners of its points, in radii; none for a circle
}

// Looks returns how styles 0 to n−1 look, and then [Dotted] and [Plain], so
// that a negative style counts from the end.
func Looks(n int) []Look {
	var looks []Look
	for i := range n + 2 {
		if i >= n {
			i -= n + 2
		}
		looks = append(looks, lookOf(i))
	}
	return looks
}

func lookOf(style int) Look {
	switch style {
	case Dotted:
		return Look{Colour: hex(grey), Dash: []float64{1.5, 3}}
	case Plain:
		return Look{Colour: hex(grey), Dash: []float64{5, 4}}
	}
	l := Look{Dash: dashes[style/len(colours)%len(dashes)], Shape: shapes[(style+style/len(colours))%len(shapes)]}
	if c := colours[style%len(colours)]; c.A > 0 {
		l.Colour = hex(c)
	}
	return l
}

// shapes are about equally heavy, and differ without colour: circle, square,
// triangle, diamond, plus, triangle on its tip, bow tie, cross.
var shapes = [][][2]float64{
	nil,
	{{-.9, -.9}, {.9, -.9}, {.9, .9}, {-.9, .9}},
	{{0, 1.3}, {-1.15, -.8}, {1.15, -.8}},
	{{0, 1.4}, {-1.1, 0}, {0, -1.4}, {1.1, 0}},
	{{-.4, 1.3}, {-.4, .4}, {-1.3, .4}, {-1.3, -.4}, {-.4, -.4}, {-.4, -1.3}, {.4, -1.3}, {.4, -.4}, {1.3, -.4}, {1.3, .4}, {.4, .4}, {.4, 1.3}},
	{{0, -1.3}, {-1.15, .8}, {1.15, .8}},
	{{-1.2, -1}, {1.2, 1}, {1.2, -1}, {-1.2, 1}},
	{{-1.2, .64}, {-.57, 0}, {-1.2, -.64}, {-.64, -1.2}, {0, -.57}, {.64, -1.2}, {1.2, -.64}, {.57, 0}, {1.2, .64}, {.64, 1.2}, {0, .57}, {-.64, 1.2}},
}

// polygon is a filled glyph.
type polygon [][2]float64

// DrawGlyph implements draw.GlyphDrawer.
func (g polygon) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	var p vg.Path
	for i, v := range g {
		corner := at.Add(vg.Point{X: vg.Length(v[0]), Y: vg.Length(v[1])}.Scale(sty.Radius))
		if i == 0 {
			p.Move(corner)
		} else {
			p.Line(corner)
		}
	}
	p.Close()
	c.Fill(p)
}

func (t Theme) colour(style int) color.RGBA {
	if style < 0 {
		return grey
	}
	if c := colours[style%len(colours)]; c.A > 0 {
		return c
	}
	return t.Text
}

// SVG returns the figure as SVG.
func (f Figure) SVG(t Theme) ([]byte, error) {
	d, err := newDrawing(f, t)
	if err != nil {
		return nil, err
	}
	c := vgsvg.New(d.width, d.height)
	d.draw(draw.New(c))
	var b bytes.Buffer
	_, err = c.WriteTo(&b)
	// Arial and Helvetica are as wide as Liberation Sans, which few readers have.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif")), err
}

// PNG returns the figure as PNG at 144 dots per inch.
func (f Figure) PNG(t Theme) ([]byte, error) {
	d, err := newDrawing(f, t)
	if err != nil {
		return nil, err
	}
	c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(d.width, d.height), vgimg.UseDPI(144), vgimg.UseBackgroundColor(t.Back))}
	d.draw(draw.New(c))
	var b bytes.Buffer
	_, err = c.WriteTo(&b)
	return b.Bytes(), err
}

// mostBelow is how many entries a legend below the plot has.
const mostBelow = 3

// drawing is a figure on its way to a file. The legend stands below the plot, or
// beside it, where it covers nothing.
type drawing struct {
	*Figure
	theme         Theme
	plot          *plot.Plot
	legend        plot.Legend
	entries       int       // of the legend
	below, aside  vg.Length // what it takes
	width, height vg.Length
}

func newDrawing(f Figure, t Theme) (*drawing, error) {
	if err := f.Fit(); err != nil {
		return nil, err
	}
	p := plot.New()
	d := &drawing{Figure: &f, theme: t, plot: p, legend: plot.NewLegend(), width: 6.4 * vg.Inch, height: 4.2 * vg.Inch}
	p.BackgroundColor = t.Back
	p.Title.Text, p.Title.Padding = f.Title, vg.Points(6)
	p.X.Label.Text, p.Y.Label.Text = f.X.Label, f.Y.Label
	for a, of := range map[*plot.Axis]Axis{&p.X: f.X, &p.Y: f.Y} {
		a.Tick.Marker = ticker{of}
		sans(&a.Label.TextStyle, 11, t.Text)
		sans(&a.Tick.Label, 10, t.Text)
		a.Color, a.Tick.Color, a.Padding = t.Text, t.Text, 0
	}
	sans(&p.Title.TextStyle, 12, t.Text)
	sans(&d.legend.TextStyle, 10, t.Text)
	d.legend.Left, d.legend.Top, d.legend.Padding = true, true, vg.Points(2)
	defer func() { // what is added changes the ranges
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = f.X.place(f.X.Lo), f.X.place(f.X.Hi), f.Y.place(f.Y.Lo), f.Y.place(f.Y.Hi)
	}()
	if f.Tiles != nil {
		return d, d.tiles()
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = t.Grid, t.Grid
	p.Add(grid)
	for i := range f.Series {
		s := &f.Series[i]
		if s.Hidden {
			continue
		}
		sign := d.add(s)
		if s.Name != "" {
			d.legend.Add(s.Name, sign)
			d.entries++
		}
	}
	if n := len(f.Y.Ticks); f.Y.named() && n > 16 {
		d.height += vg.Length(n-16) * vg.Points(9)
	}
	if d.entries == 0 {
		return d, nil
	}
	switch size := d.legend.Rectangle(draw.Canvas{}).Size(); {
	case d.entries <= mostBelow:
		d.below = size.Y + vg.Points(8)
		d.width = max(d.width, size.X+vg.Inch)
		d.height += d.below
	default:
		d.aside = size.X + vg.Points(12)
		d.width += d.aside
		d.height = max(d.height, size.Y+vg.Inch)
	}
	return d, nil
}

// sans sets a font without serifs.
func sans(s *text.Style, size float64, c color.Color) {
	s.Font.Variant, s.Font.Size, s.Color = "Sans", vg.Points(size), c
}

// place is where a value stands on an axis that knows no logarithms: gonum's
// own scale puts the label of such an axis out of place.
func (a *Axis) place(v float64) float64 {
	if a.Log {
		return math.Log10(v)
	}
	return v
}

type ticker struct{ of Axis }

// Ticks implements plot.Ticker.
func (t ticker) Ticks(_, _ float64) []plot.Tick {
	out := make([]plot.Tick, len(t.of.Ticks))
	for i, m := range t.of.Ticks {
		out[i] = plot.Tick{Value: t.of.place(m.At), Label: m.Text}
	}
	return out
}

// draw fills the canvas.
func (d *drawing) draw(c draw.Canvas) {
	c.SetColor(d.theme.Back)
	c.Fill(c.Rectangle.Path())
	to, legend := d.places(c)
	d.plot.Draw(to)
	if d.entries > 0 {
		d.legend.Draw(legend)
	}
}

// places returns where the plot goes and where the legend.
func (d *drawing) places(c draw.Canvas) (to, legend draw.Canvas) {
	// On the right there is room for half of the last tick's label.
	to = draw.Crop(c, vg.Points(6), -vg.Points(20)-d.aside, vg.Points(6)+d.below, -vg.Points(6))
	in := d.plot.DataCanvas(to)
	legend = c
	if d.aside > 0 {
		legend.Min.X, legend.Max.Y = in.Max.X+vg.Points(12), in.Max.Y
	} else {
		legend.Min.X, legend.Max.Y = in.Min.X, d.below
	}
	return to, legend
}

// add draws a series, and returns what stands for it in the legend.
func (d *drawing) add(s *Series) (sign plot.Thumbnailer) {
	colour, look := d.theme.colour(s.Style), lookOf(s.Style)
	line := plotter.Line{LineStyle: draw.LineStyle{Color: colour, Width: vg.Points(1.4)}}
	for _, v := range look.Dash {
		line.Dashes = append(line.Dashes, vg.Length(.7*v))
	}
	if s.Kind == Steps {
		line.StepStyle = plotter.PostStep
	}
	bar := plotter.Line{LineStyle: draw.LineStyle{Color: colour, Width: vg.Points(1.2)}}
	points := plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: colour, Radius: vg.Points(3), Shape: polygon(look.Shape)}}
	if look.Shape == nil {
		points.Shape = draw.CircleGlyph{}
	}
	segment := func(from, to plotter.XY) {
		if from != to {
			l := bar
			l.XYs = plotter.XYs{from, to}
			d.plot.Add(&l)
		}
	}
	sign = &line
	for _, p := range d.parts(s) {
		switch s.Kind {
		case Points, Across:
			for k := range p.at {
				segment(p.lo[k], p.hi[k])
			}
			points.XYs = append(points.XYs, p.at...)
			sign = &points
		case Marks:
			bar.Width = vg.Points(2)
			for _, at := range p.at {
				segment(plotter.XY{X: at.X, Y: at.Y - .36}, plotter.XY{X: at.X, Y: at.Y + .36})
			}
			sign = &bar
		default:
			if len(s.Lo) > 0 {
				slices.Reverse(p.hi)
				d.plot.Add(&plotter.Polygon{XYs: []plotter.XYs{append(p.lo, p.hi...)}, Color: color.NRGBA{colour.R, colour.G, colour.B, d.theme.Wash}})
			}
			if len(p.at) == 1 {
				points.XYs = append(points.XYs, p.at...)
			}
			l := line
			l.XYs = p.at
			d.plot.Add(&l)
		}
	}
	d.plot.Add(&points)
	return sign
}

// part is what a series has between two gaps, as it stands on the axes: its
// points, and the ends of their intervals.
type part struct{ at, lo, hi plotter.XYs }

func (d *drawing) parts(s *Series) []part {
	var parts []part
	place := func(p plotter.XY) plotter.XY { return plotter.XY{X: d.X.place(p.X), Y: d.Y.place(p.Y)} }
	gap := true
	for k := range s.X {
		at, lo, hi, ok := d.at(s, k)
		if !ok {
			gap = true
			continue
		}
		if gap {
			parts, gap = append(parts, part{}), false
		}
		p := &parts[len(parts)-1]
		p.at, p.lo, p.hi = append(p.at, place(at)), append(p.lo, place(lo)), append(p.hi, place(hi))
	}
	return parts
}

// tiles adds the tiles of a figure to its plot.
func (d *drawing) tiles() error {
	t := d.Figure.Tiles
	lo, hi := t.span()
	var at plotter.XYLabels
	var white []bool
	for y, row := range t.Values {
		for x, v := range row {
			if !finite(v) {
				continue
			}
			c := shade(v, lo, hi)
			fx, fy := float64(x), float64(y)
			tile, err := plotter.NewPolygon(plotter.XYs{{X: fx - .5, Y: fy - .5}, {X: fx + .5, Y: fy - .5}, {X: fx + .5, Y: fy + .5}, {X: fx - .5, Y: fy + .5}})
			if err != nil {
				return err
			}
			tile.Color = c
			tile.LineStyle.Color, tile.LineStyle.Width = c, vg.Points(.3)
			d.plot.Add(tile)
			at.XYs, at.Labels = append(at.XYs, plotter.XY{X: fx, Y: fy}), append(at.Labels, t.Tiles[y][x].Text)
			white = append(white, dark(c))
		}
	}
	if len(t.X)*len(t.Y) > 150 {
		return nil
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		s := &labels.TextStyle[i]
		s.XAlign, s.YAlign = draw.XCenter, draw.YCenter
		sans(s, math.Min(9, 60/float64(len(t.X))+4), color.Black)
		if white[i] {
			s.Color = color.White
		}
	}
	d.plot.Add(labels)
	return nil
}
