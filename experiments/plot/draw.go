package plot

import (
	"bytes"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
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

// Look is how the series of one style look; a page has it from here.
type Look struct {
	Colour string    `json:"colour"` // empty for that of text
	Dash   []float64 `json:"dash"`
}

// Looks returns how styles 0 to n−1 look, and then [Dotted] and [Plain], so
// that a negative style counts from the end.
func Looks(n int) []Look {
	var styles []Look
	for i := range n {
		l := Look{Dash: pattern(i)}
		if c := colours[i%len(colours)]; c.A > 0 {
			l.Colour = hex(c)
		}
		styles = append(styles, l)
	}
	return append(styles, Look{hex(grey), pattern(Dotted)}, Look{hex(grey), pattern(Plain)})
}

func pattern(style int) []float64 {
	switch {
	case style == Dotted:
		return []float64{1.5, 3}
	case style < 0:
		return []float64{5, 4}
	}
	return dashes[style/len(colours)%len(dashes)]
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

func dash(style int) []vg.Length {
	var out []vg.Length
	for _, v := range pattern(style) {
		out = append(out, vg.Length(v)*.7)
	}
	return out
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

// drawing is a figure on its way to a file.
type drawing struct {
	*Figure
	theme         Theme
	plot          *plot.Plot
	series        []*drawn
	legend        plot.Legend
	entries       int
	width, height vg.Length
}

func newDrawing(f Figure, t Theme) (*drawing, error) {
	if err := f.Fit(); err != nil {
		return nil, err
	}
	p := plot.New()
	d := &drawing{Figure: &f, theme: t, plot: p, legend: plot.NewLegend(), width: 7 * vg.Inch, height: 4.4 * vg.Inch}
	p.BackgroundColor = t.Back
	p.Title.Text, p.Title.Padding = f.Title, vg.Points(6)
	p.X.Label.Text, p.Y.Label.Text = f.X.Label, f.Y.Label
	for a, of := range map[*plot.Axis]Axis{&p.X: f.X, &p.Y: f.Y} {
		a.Min, a.Max, a.Tick.Marker = of.place(of.Lo), of.place(of.Hi), ticker{of}
		sans(&a.Label.TextStyle.Font, 11)
		sans(&a.Tick.Label.Font, 10)
		a.Color, a.Label.TextStyle.Color, a.Tick.Color, a.Tick.Label.Color = t.Text, t.Text, t.Text, t.Text
		a.Padding = 0
	}
	sans(&p.Title.TextStyle.Font, 12)
	p.Title.TextStyle.Color = t.Text
	sans(&d.legend.TextStyle.Font, 10)
	d.legend.TextStyle.Color = t.Text
	d.legend.Left, d.legend.Top, d.legend.Padding = true, true, vg.Points(2)
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
		x := &drawn{f: d.Figure, s: s, theme: t}
		p.Add(x)
		d.series = append(d.series, x)
		if s.Name != "" {
			d.legend.Add(s.Name, x)
			d.entries++
		}
	}
	if n := len(d.Y.Ticks); d.named(d.Y) && n > 16 {
		d.height += vg.Length(n-16) * vg.Points(9)
	}
	// A large legend takes nothing from the plot.
	size := d.legend.Rectangle(draw.Canvas{}).Size()
	d.width += max(0, size.X-2*vg.Inch)
	d.height = max(d.height, size.Y+vg.Inch)
	return d, nil
}

// named reports whether an axis has names in place of numbers.
func (d *drawing) named(a Axis) bool { return len(a.Ticks) > 0 && a.Ticks[0].At == 0 && a.Lo < 0 }

// sans sets a font without serifs.
func sans(f *font.Font, size float64) {
	f.Variant, f.Size = "Sans", vg.Points(size)
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
	to, place := d.places(c)
	d.plot.Draw(to)
	if d.entries > 0 {
		d.legend.Draw(draw.Canvas{Canvas: c.Canvas, Rectangle: place})
	}
}

// places returns where the plot goes and where the legend, which covers
// nothing: into a corner of the plot, or beside it.
func (d *drawing) places(c draw.Canvas) (to draw.Canvas, legend vg.Rectangle) {
	// On the right there is room for half of the last tick's label.
	to = draw.Crop(c, vg.Points(6), -vg.Points(20), vg.Points(6), -vg.Points(6))
	if d.entries == 0 {
		return to, legend
	}
	size := d.legend.Rectangle(to).Size()
	size.X += vg.Points(4)
	if legend, ok := d.corner(d.plot.DataCanvas(to), size); ok {
		return to, legend
	}
	to = draw.Crop(to, 0, -(size.X + vg.Points(8)), 0, 0)
	in := d.plot.DataCanvas(to)
	at := vg.Point{X: in.Max.X + vg.Points(10), Y: max(0, in.Max.Y-size.Y)}
	return to, vg.Rectangle{Min: at, Max: at.Add(size)}
}

// most is how many entries a legend in the plot has.
const most = 8

// corner returns a place for the legend in which no series has a point.
func (d *drawing) corner(in draw.Canvas, size vg.Point) (vg.Rectangle, bool) {
	gap := vg.Points(8)
	if d.entries > most || size.X > in.Size().X/2 {
		return vg.Rectangle{}, false
	}
	for _, top := range []bool{true, false} {
		for _, left := range []bool{false, true} {
			at := vg.Point{X: in.Max.X - size.X - gap, Y: in.Min.Y + gap}
			if left {
				at.X = in.Min.X + gap
			}
			if top {
				at.Y = in.Max.Y - size.Y - gap
			}
			r := vg.Rectangle{Min: at, Max: at.Add(size)}
			free := true
			for _, s := range d.series {
				free = free && !s.touches(in, d.plot, r)
			}
			if free {
				return r, true
			}
		}
	}
	return vg.Rectangle{}, false
}

// drawn draws one series.
type drawn struct {
	f     *Figure
	s     *Series
	theme Theme
}

// parts returns the points of the series on a canvas, a part between gaps each,
// with the ends of their intervals.
func (d *drawn) parts(c *draw.Canvas, p *plot.Plot) (parts [][]vg.Point, lo, hi [][]vg.Point) {
	toX, toY := p.Transforms(c)
	trX := func(x float64) vg.Length { return toX(d.f.X.place(x)) }
	trY := func(y float64) vg.Length { return toY(d.f.Y.place(y)) }
	gap := true
	for k := range d.s.X {
		x, y, ok := d.f.at(d.s, k)
		if !ok {
			gap = true
			continue
		}
		if gap {
			parts, lo, hi = append(parts, nil), append(lo, nil), append(hi, nil)
			gap = false
		}
		n := len(parts) - 1
		at := vg.Point{X: trX(x), Y: trY(y)}
		parts[n] = append(parts[n], at)
		from, to := at, at
		if k < len(d.s.Lo) && k < len(d.s.Hi) {
			if l, h := d.s.Lo[k], d.s.Hi[k]; d.s.Kind == Across && d.f.X.shows(l) && d.f.X.shows(h) {
				from.X, to.X = trX(l), trX(h)
			} else if d.s.Kind != Across && d.f.Y.shows(l) && d.f.Y.shows(h) {
				from.Y, to.Y = trY(l), trY(h)
			}
		}
		lo[n], hi[n] = append(lo[n], from), append(hi[n], to)
	}
	if d.s.Kind == Steps {
		for n := range parts {
			parts[n], lo[n], hi[n] = steps(parts[n]), steps(lo[n]), steps(hi[n])
		}
	}
	return parts, lo, hi
}

// steps keeps each value up to the next point.
func steps(p []vg.Point) []vg.Point {
	var out []vg.Point
	for i, at := range p {
		if i > 0 {
			out = append(out, vg.Point{X: at.X, Y: p[i-1].Y})
		}
		out = append(out, at)
	}
	return out
}

// Plot implements plot.Plotter.
func (d *drawn) Plot(c draw.Canvas, p *plot.Plot) {
	colour := d.theme.colour(d.s.Style)
	style := d.line()
	parts, lo, hi := d.parts(&c, p)
	for n, part := range parts {
		switch d.s.Kind {
		case Points, Across:
			bar := draw.LineStyle{Color: colour, Width: vg.Points(1.2)}
			for k := range part {
				if lo[n][k] != hi[n][k] {
					c.StrokeLines(bar, c.ClipLinesXY([]vg.Point{lo[n][k], hi[n][k]})...)
				}
				if c.Contains(part[k]) {
					c.DrawGlyph(d.glyph(), part[k])
				}
			}
		case Marks:
			half := .36 * c.Size().Y / vg.Length(d.f.Y.Hi-d.f.Y.Lo)
			bar := draw.LineStyle{Color: colour, Width: vg.Points(2)}
			for _, at := range part {
				c.StrokeLine2(bar, at.X, at.Y-half, at.X, at.Y+half)
			}
		default:
			ring := append([]vg.Point{}, lo[n]...)
			for k := len(hi[n]) - 1; k >= 0; k-- {
				ring = append(ring, hi[n][k])
			}
			if len(d.s.Lo) > 0 && len(ring) > 3 {
				c.FillPolygon(color.NRGBA{colour.R, colour.G, colour.B, d.theme.Wash}, c.ClipPolygonXY(ring))
			}
			if len(part) == 1 && c.Contains(part[0]) {
				c.DrawGlyph(d.glyph(), part[0])
			}
			c.StrokeLines(style, c.ClipLinesXY(part)...)
		}
	}
}

func (d *drawn) line() draw.LineStyle {
	return draw.LineStyle{Color: d.theme.colour(d.s.Style), Width: vg.Points(1.4), Dashes: dash(d.s.Style)}
}

func (d *drawn) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: d.theme.colour(d.s.Style), Radius: vg.Points(3), Shape: shape(max(0, d.s.Style))}
}

// Thumbnail implements plot.Thumbnailer.
func (d *drawn) Thumbnail(c *draw.Canvas) {
	switch mid := c.Center(); d.s.Kind {
	case Points, Across:
		c.DrawGlyph(d.glyph(), mid)
	case Marks:
		c.StrokeLine2(draw.LineStyle{Color: d.theme.colour(d.s.Style), Width: vg.Points(2)}, mid.X, c.Min.Y, mid.X, c.Max.Y)
	default:
		c.StrokeLine2(d.line(), c.Min.X, mid.Y, c.Max.X, mid.Y)
	}
}

// touches reports whether the series, or its band, has a point in r.
func (d *drawn) touches(c draw.Canvas, p *plot.Plot, r vg.Rectangle) bool {
	margin := vg.Points(3)
	r.Min, r.Max = r.Min.Sub(vg.Point{X: margin, Y: margin}), r.Max.Add(vg.Point{X: margin, Y: margin})
	parts, lo, hi := d.parts(&c, p)
	for n := range parts {
		for k := range parts[n] {
			if k > 0 && d.s.Kind != Points && d.s.Kind != Across && d.s.Kind != Marks {
				// Between two points, the band with it.
				for f := vg.Length(0); f <= 1; f += 1. / 32 {
					mix := func(a, b vg.Point) vg.Point { return a.Add(b.Sub(a).Scale(f)) }
					if crosses(r, mix(lo[n][k-1], lo[n][k]), mix(hi[n][k-1], hi[n][k])) || crosses(r, mix(parts[n][k-1], parts[n][k]), mix(parts[n][k-1], parts[n][k])) {
						return true
					}
				}
			}
			if crosses(r, lo[n][k], hi[n][k]) || crosses(r, parts[n][k], parts[n][k]) {
				return true
			}
		}
	}
	return false
}

// crosses reports whether the upright or level line from a to b meets r.
func crosses(r vg.Rectangle, a, b vg.Point) bool {
	between := func(lo, hi, a, b vg.Length) bool { return min(a, b) <= hi && max(a, b) >= lo }
	return between(r.Min.X, r.Max.X, a.X, b.X) && between(r.Min.Y, r.Max.Y, a.Y, b.Y)
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
		sans(&s.Font, math.Min(9, 60/float64(len(t.X))+4))
		s.Color = color.Black
		if white[i] {
			s.Color = color.White
		}
	}
	d.plot.Add(labels)
	return nil
}
