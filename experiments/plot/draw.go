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
	for i := range n {
		looks = append(looks, lookOf(i))
	}
	return append(looks, lookOf(Dotted), lookOf(Plain))
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
	b, err := f.on(t, func(width, height vg.Length) vg.CanvasWriterTo { return vgsvg.New(width, height) })
	// Arial and Helvetica are as wide as Liberation Sans, which few readers have.
	return bytes.ReplaceAll(b, []byte("font-family:Liberation Sans"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif")), err
}

// PNG returns the figure as PNG at 144 dots per inch.
func (f Figure) PNG(t Theme) ([]byte, error) {
	return f.on(t, func(width, height vg.Length) vg.CanvasWriterTo {
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144), vgimg.UseBackgroundColor(t.Back))}
	})
}

// on returns the bytes of a canvas with the figure on it.
func (f Figure) on(t Theme, canvas func(width, height vg.Length) vg.CanvasWriterTo) ([]byte, error) {
	if err := f.Fit(); err != nil {
		return nil, err
	}
	d := newDrawing(&f, t)
	c := canvas(d.width, d.height)
	all := draw.New(c)
	all.SetColor(t.Back)
	all.Fill(all.Rectangle.Path())
	to, legend := d.places(all)
	d.plot.Draw(to)
	if d.entries > 0 {
		d.legend.Draw(legend)
	}
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
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

// newDrawing puts a figure that is fitted together.
func newDrawing(f *Figure, t Theme) *drawing {
	p := plot.New()
	d := &drawing{Figure: f, theme: t, plot: p, legend: plot.NewLegend(), width: 6.4 * vg.Inch, height: 4.2 * vg.Inch}
	p.BackgroundColor = t.Back
	p.Title.Text, p.Title.Padding = f.Title, vg.Points(6)
	sans(&p.Title.TextStyle, 12, t.Text)
	sans(&d.legend.TextStyle, 10, t.Text)
	d.legend.Left, d.legend.Top, d.legend.Padding = true, true, vg.Points(2)
	if f.Tiles != nil {
		d.tiles()
	} else {
		d.series()
	}
	// What is added changes the ranges.
	f.X.settle(&p.X, t)
	f.Y.settle(&p.Y, t)
	return d
}

// series adds the series that are not hidden, and makes room for the legend.
func (d *drawing) series() {
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = d.theme.Grid, d.theme.Grid
	d.plot.Add(grid)
	for _, s := range d.Series {
		if s.Hidden {
			continue
		}
		sign := d.add(&s)
		if s.Name != "" {
			d.legend.Add(s.Name, sign)
			d.entries++
		}
	}
	named := d.Y.Lo < 0 && len(d.Y.Ticks) > 0 && d.Y.Ticks[0].At == 0 // names in place of numbers
	if n := len(d.Y.Ticks); named && n > 16 {
		d.height += vg.Length(n-16) * vg.Points(9)
	}
	switch size := d.legend.Rectangle(draw.Canvas{}).Size(); {
	case d.entries == 0:
	case d.entries <= mostBelow:
		d.below = size.Y + vg.Points(8)
		d.width = max(d.width, size.X+vg.Inch)
		d.height += d.below
	default:
		d.aside = size.X + vg.Points(12)
		d.width += d.aside
		d.height = max(d.height, size.Y+vg.Inch)
	}
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

// settle makes an axis of a plot look as this one.
func (a *Axis) settle(to *plot.Axis, t Theme) {
	var ticks plot.ConstantTicks
	for _, m := range a.Ticks {
		ticks = append(ticks, plot.Tick{Value: a.place(m.At), Label: m.Text})
	}
	to.Min, to.Max, to.Tick.Marker = a.place(a.Lo), a.place(a.Hi), ticks
	to.Label.Text, to.Padding = a.Label, 0
	to.Color, to.Tick.Color = t.Text, t.Text
	sans(&to.Label.TextStyle, 11, t.Text)
	sans(&to.Tick.Label, 10, t.Text)
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
	for _, r := range d.runs(s) {
		for _, at := range []plotter.XYs{r.at, r.lo, r.hi} {
			for k := range at {
				at[k] = plotter.XY{X: d.X.place(at[k].X), Y: d.Y.place(at[k].Y)}
			}
		}
		switch s.Kind {
		case Points, Across:
			for k := range r.at {
				segment(r.lo[k], r.hi[k])
			}
			points.XYs = append(points.XYs, r.at...)
			sign = &points
		case Marks:
			bar.Width = vg.Points(2)
			for _, at := range r.at {
				segment(plotter.XY{X: at.X, Y: at.Y - .36}, plotter.XY{X: at.X, Y: at.Y + .36})
			}
			sign = &bar
		default:
			if len(s.Lo) > 0 {
				slices.Reverse(r.hi)
				d.plot.Add(&plotter.Polygon{XYs: []plotter.XYs{append(r.lo, r.hi...)}, Color: color.NRGBA{colour.R, colour.G, colour.B, d.theme.Wash}})
			}
			if len(r.at) == 1 {
				points.XYs = append(points.XYs, r.at...)
			}
			l := line
			l.XYs = r.at
			d.plot.Add(&l)
		}
	}
	d.plot.Add(&points)
	return sign
}

// mostTexts is how many tiles have room for their values.
const mostTexts = 150

// tiles adds the tiles of a figure to its plot.
func (d *drawing) tiles() {
	var texts plotter.Labels
	size := math.Min(9, 60/float64(len(d.Tiles.X))+4)
	for y, row := range d.Tiles.Tiles {
		for x, tile := range row {
			if tile.Back == "" {
				continue
			}
			at := plotter.XY{X: float64(x), Y: float64(y)}
			corners := plotter.XYs{{X: at.X - .5, Y: at.Y - .5}, {X: at.X + .5, Y: at.Y - .5}, {X: at.X + .5, Y: at.Y + .5}, {X: at.X - .5, Y: at.Y + .5}}
			d.plot.Add(&plotter.Polygon{XYs: []plotter.XYs{corners}, Color: tile.colour, LineStyle: draw.LineStyle{Color: tile.colour, Width: vg.Points(.3)}})
			style := text.Style{Font: plotter.DefaultFont, XAlign: draw.XCenter, YAlign: draw.YCenter, Handler: plot.DefaultTextHandler}
			sans(&style, size, color.Black)
			if tile.Dark {
				style.Color = color.White
			}
			texts.XYs, texts.Labels, texts.TextStyle = append(texts.XYs, at), append(texts.Labels, tile.Text), append(texts.TextStyle, style)
		}
	}
	if len(d.Tiles.X)*len(d.Tiles.Y) <= mostTexts {
		d.plot.Add(&texts)
	}
}
