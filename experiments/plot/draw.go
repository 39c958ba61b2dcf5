package plot

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"math"
	"path/filepath"
	"regexp"
	"slices"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"ephemera/internal/files"
	"ephemera/internal/plain"
)

// night makes an SVG file dark where its reader prefers that.
var night = fmt.Appendf(nil, `<style>
@media (prefers-color-scheme: dark) {
[style*="fill:%s"] { fill: %s !important }
[style*="fill:%s"], [style*="fill:%s"], [style*="fill:%s"] { fill: %s !important }
[style*="stroke:%s"] { stroke: %s !important }
[style*="stroke:%s"] { stroke: %s !important }
}
</style>
`, hex(back), hex(nightBack), hex(ink), hex(inkBand), hex(letter), hex(nightInk), hex(ink), hex(nightInk),
	hex(grid), hex(nightGrid))

// SVG returns the figure as SVG, for light and dark backgrounds. Text is drawn as paths,
// one a string with what it says, so that it is as wide as it was measured.
func (f Figure) SVG() ([]byte, error) {
	d, err := f.lay()
	if err != nil {
		return nil, err
	}
	c := vgsvg.New(d.width, d.height)
	text := &outlines{Canvas: c}
	d.draw(text)
	var b bytes.Buffer
	_, err = c.WriteTo(&b)
	header := []byte("<g transform")
	svg := bytes.Replace(b.Bytes(), header, slices.Concat(night, header), 1)
	parts := bytes.Split(svg, fmt.Appendf(nil, `style="fill:%s" />`, hex(letter)))
	b.Reset()
	for k, said := range text.drawn {
		fmt.Fprintf(&b, `%sstyle="fill:%s" aria-label="%s" />`, parts[k], hex(letter), html.EscapeString(said))
	}
	b.Write(parts[len(text.drawn)])
	return b.Bytes(), err
}

// PNG returns the figure as PNG, two pixels a point.
func (f Figure) PNG() ([]byte, error) {
	return f.with(func(d *drawing) vg.CanvasWriterTo {
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(d.width, d.height), vgimg.UseDPI(2*72))}
	})
}

// PDF returns the figure as PDF, without the time at which it was drawn.
func (f Figure) PDF() ([]byte, error) {
	b, err := f.with(func(d *drawing) vg.CanvasWriterTo { return vgpdf.New(d.width, d.height) })
	return drawn.ReplaceAll(b, []byte("(D:20000101000000")), err
}

var drawn = regexp.MustCompile(`\(D:\d{14}`)

func (f Figure) with(open func(*drawing) vg.CanvasWriterTo) ([]byte, error) {
	d, err := f.lay()
	if err != nil {
		return nil, err
	}
	c := open(d)
	d.draw(&outlines{Canvas: c})
	var b bytes.Buffer
	_, err = c.WriteTo(&b)
	return b.Bytes(), err
}

// Figures are narrow, so that their text is large enough to read where they are shrunk to the
// width of a phone, or of one of a page's two columns.
const (
	leftWidth    = 4.2 * vg.Inch // of the part without the legend
	pointsWidth  = 3.2 * vg.Inch // of that part without the names along its axis, which come to it
	curvesHeight = 3.2 * vg.Inch
)

// drawing is a figure that knows how wide and high it is. Names of series stand next to the
// data, where they cover nothing: at the ends of curves, or in a legend.
type drawing struct {
	plot                *plot.Plot
	ends                []end
	legend              plot.Legend
	width, height, left vg.Length // left is how wide the part without the legend is
}

func (f Figure) lay() (*drawing, error) {
	if err := f.Prune(); err != nil {
		return nil, err
	}
	f.speakPlainly()
	p := plot.New()
	p.BackgroundColor = back
	p.Title.Text, p.Title.Padding = f.Title, vg.Points(6)
	sans(&p.Title.TextStyle, 12)
	sans(&p.Legend.TextStyle, 10)
	p.Legend.Left, p.Legend.Top, p.Legend.Padding = true, true, vg.Points(2)
	d := &drawing{plot: p, legend: p.Legend} // gonum would draw its own over the data
	f.X.style(&p.X)
	f.Y.style(&p.Y)
	g := plotter.NewGrid()
	g.Vertical = draw.LineStyle{Color: grid, Width: vg.Points(.6)}
	g.Horizontal = g.Vertical
	p.Add(g)
	for _, s := range f.Series {
		f.addBands(p, &s) // which lie below all lines
	}
	named := f.fewCurves()
	for _, s := range f.Series {
		sign := f.add(p, &s)
		switch {
		case s.Name == "":
		case named:
			d.ends = append(d.ends, f.endOf(&s))
		default:
			d.legend.Add(s.Name, sign)
		}
	}
	f.X.limit(&p.X)
	f.Y.limit(&p.Y)
	f.X.widen(&p.X)
	f.Y.widen(&p.Y)
	if f.Y.Names != nil && f.X.Lo == f.X.Hi { // no point on the frame
		room := .04 * (p.X.Max - p.X.Min)
		p.X.Min, p.X.Max = p.X.Min-room, p.X.Max+room
	}

	d.left, d.height = max(leftWidth, p.Title.TextStyle.Width(f.Title)+vg.Points(24)), curvesHeight
	if n := len(f.Y.Names); n > 0 {
		for _, name := range f.Y.Names { // long names take no room from the data
			d.left = max(d.left, pointsWidth+p.Y.Tick.Label.Width(name))
		}
		d.height = vg.Inch + vg.Length(min(n, 16))*vg.Points(15) + vg.Length(max(0, n-16))*vg.Points(9)
	}
	d.width = d.left
	for _, e := range d.ends {
		d.width = max(d.width, d.left+beforeName+p.Legend.TextStyle.Width(e.name)+vg.Points(6))
	}
	if size := d.legend.Rectangle(draw.Canvas{}).Size(); size.Y > 0 {
		d.width += size.X + vg.Points(18)
		d.height = max(d.height, size.Y+vg.Inch)
	}
	return d, nil
}

// speakPlainly writes out what does not print in the texts of a pruned figure: names of sources may
// hold what no SVG may.
func (f *Figure) speakPlainly() {
	f.Title, f.X.Label, f.Y.Label = plain.Text(f.Title), plain.Text(f.X.Label), plain.Text(f.Y.Label)
	f.Y.Names = slices.Clone(f.Y.Names)
	for k := range f.Y.Names {
		f.Y.Names[k] = plain.Text(f.Y.Names[k])
	}
	for k := range f.Series {
		f.Series[k].Name = plain.Text(f.Series[k].Name)
	}
}

func (d *drawing) draw(c vg.Canvas) {
	all := draw.NewCanvas(c, d.width, d.height)
	all.SetColor(back)
	all.Fill(all.Rectangle.Path())
	left, right := all, all
	left.Max.X = d.left
	left = draw.Crop(left, vg.Points(6), -vg.Points(14), vg.Points(6), -vg.Points(6))
	d.plot.Draw(left)
	d.nameEnds(d.plot.DataCanvas(left), all)
	right.Min.X, right.Max.Y = left.Max.X+vg.Points(6), d.plot.DataCanvas(left).Max.Y
	d.legend.Draw(right)
}

// outlines is a canvas on which text is drawn as the outlines of its glyphs.
type outlines struct {
	vg.Canvas
	drawn []string
}

// FillString implements vg.Canvas.
func (c *outlines) FillString(face font.Face, at vg.Point, text string) {
	var buf sfnt.Buffer
	em := fixed.Int26_6(face.Face.UnitsPerEm())
	ppem := em << 6
	point := func(p fixed.Point26_6) vg.Point { // y grows downwards in a glyph
		scale := face.Font.Size / vg.Length(em<<6)
		return vg.Point{X: at.X + scale*vg.Length(p.X), Y: at.Y - scale*vg.Length(p.Y)}
	}
	var path vg.Path
	for _, r := range text {
		k, err := face.Face.GlyphIndex(&buf, r)
		if err != nil {
			panic("plot: " + err.Error())
		}
		segments, err := face.Face.LoadGlyph(&buf, k, ppem, nil)
		if err != nil {
			panic("plot: " + err.Error())
		}
		for j, s := range segments {
			switch s.Op {
			case sfnt.SegmentOpMoveTo:
				if j > 0 {
					path.Close()
				}
				path.Move(point(s.Args[0]))
			case sfnt.SegmentOpLineTo:
				path.Line(point(s.Args[0]))
			case sfnt.SegmentOpQuadTo:
				path.QuadTo(point(s.Args[0]), point(s.Args[1]))
			case sfnt.SegmentOpCubeTo:
				path.CubeTo(point(s.Args[0]), point(s.Args[1]), point(s.Args[2]))
			}
		}
		if len(segments) > 0 {
			path.Close()
		}
		at.X += face.Width(string(r))
	}
	if len(path) > 0 {
		c.Push()
		c.SetColor(letter)
		c.Fill(path)
		c.Pop()
		c.drawn = append(c.drawn, text)
	}
}

// Put writes the figure into a directory, as SVG, PNG and PDF under its name.
func (f Figure) Put(dir string) error {
	for _, as := range []struct {
		ending string
		draw   func(Figure) ([]byte, error)
	}{{".svg", Figure.SVG}, {".png", Figure.PNG}, {".pdf", Figure.PDF}} {
		b, err := as.draw(f)
		if err == nil {
			err = files.Put(filepath.Join(dir, f.Name+as.ending), b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sans sets a font without serifs.
func sans(s *text.Style, size float64) {
	s.Font.Variant, s.Font.Size, s.Color = "Sans", vg.Points(size), ink
}

// place is where a value stands on an axis. gonum draws the logarithms: with
// its own logarithmic scale it puts the label of the axis out of place.
func (a *Axis) place(v float64) float64 {
	if a.Log {
		return math.Log10(v)
	}
	return v
}

// style makes an axis of a plot look as this one.
func (a *Axis) style(to *plot.Axis) {
	to.Label.Text, to.Color, to.Tick.Color = a.Label, ink, ink
	sans(&to.Label.TextStyle, 11)
	sans(&to.Tick.Label, 10)
	switch {
	case a.Names != nil:
		var ticks plot.ConstantTicks
		for i := 0; i < len(a.Names); i += 1 + len(a.Names)/70 { // of many every few
			ticks = append(ticks, plot.Tick{Value: float64(i), Label: a.Names[i]})
		}
		to.Tick.Marker, to.Tick.Length = ticks, 0
	case a.Log:
		to.Tick.Marker = plot.TickerFunc(logTicks)
	default:
		to.Tick.Marker = plot.TickerFunc(evenTicks)
	}
}

// limit sets the range of an axis that does not run over all data.
func (a *Axis) limit(to *plot.Axis) {
	switch {
	case a.Names != nil:
		to.Min, to.Max = -.6, float64(len(a.Names))-.4
	case a.Lo != a.Hi:
		to.Min, to.Max = a.place(a.Lo), a.place(a.Hi)
	}
}

// Apart reports whether two values differ by more than rounding: by one of the eight digits that
// pages have.
func Apart(lo, hi float64) bool { return hi-lo > 1e-8*max(math.Abs(lo), math.Abs(hi)) }

// widen gives an axis room on both sides of values that are all the same: no ticks lie between
// numbers that only rounding tells apart.
func (a *Axis) widen(to *plot.Axis) {
	lo, hi := to.Min, to.Max
	if a.Log {
		lo, hi = 1, 1+hi-lo
	}
	if !Apart(lo, hi) {
		room := max(1, 1e-3*math.Abs(to.Min))
		to.Min, to.Max = to.Min-room, to.Max+room
	}
}

// placed returns the stretches of a series as they stand on the axes.
func (f *Figure) placed(s *Series) []stretch {
	all := f.stretches(s)
	for _, r := range all {
		for _, at := range []plotter.XYs{r.at, r.lo, r.hi} {
			for k := range at {
				at[k] = plotter.XY{X: f.X.place(at[k].X), Y: f.Y.place(at[k].Y)}
			}
		}
	}
	return all
}

// addBands draws the intervals of a line.
func (f *Figure) addBands(p *plot.Plot, s *Series) {
	if s.Kind == Points || len(s.Lo) == 0 {
		return
	}
	colour := s.colour()
	for _, r := range f.placed(s) {
		if len(r.at) > 1 {
			slices.Reverse(r.hi)
			band := append(r.lo, r.hi...)
			p.Add(&plotter.Polygon{XYs: []plotter.XYs{band}, Color: color.NRGBA{colour.R, colour.G, colour.B, 50}})
		}
	}
}

// line is how a series is drawn that is a curve.
func (s *Series) line() draw.LineStyle {
	style := draw.LineStyle{Color: s.colour(), Width: vg.Points(1.4)}
	for _, v := range lookOf(s.Style).Dash {
		style.Dashes = append(style.Dashes, vg.Length(.7*v))
	}
	return style
}

// add draws a series but for its bands, and returns what stands for it in the legend.
func (f *Figure) add(p *plot.Plot, s *Series) (sign plot.Thumbnailer) {
	colour := s.colour()
	line := plotter.Line{LineStyle: s.line()}
	shape := shapes[max(0, s.Style/len(colours))%len(shapes)]
	points := plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: colour, Radius: vg.Points(3), Shape: shape}}
	for _, r := range f.placed(s) {
		if s.Kind == Points || len(r.at) == 1 {
			for k := range r.at {
				style := draw.LineStyle{Color: colour, Width: vg.Points(1.2)}
				p.Add(&plotter.Line{XYs: plotter.XYs{r.lo[k], r.hi[k]}, LineStyle: style})
			}
			points.XYs = append(points.XYs, r.at...)
			continue
		}
		l := line
		l.XYs = r.at
		p.Add(&l)
	}
	p.Add(&points)
	if s.Kind == Points {
		return &points
	}
	return &line
}
