package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"ephemera/experiments/files"
)

// night makes an SVG file dark where its reader prefers that.
var night = fmt.Appendf(nil, `<style>
@media (prefers-color-scheme: dark) {
[style*="fill:%s"] { fill: %s !important }
[style*="fill:%s"], [style*="fill:%s"] { fill: %s !important }
[style*="stroke:%s"] { stroke: %s !important }
[style*="stroke:%s"] { stroke: %s !important }
}
</style>
`, hex(back), hex(nightBack), hex(ink), hex(inkBand), hex(nightInk), hex(ink), hex(nightInk), hex(grid), hex(nightGrid))

// SVG returns the figure as SVG, for light and dark backgrounds, with the legend
// beside it, where it covers nothing.
func (f Figure) SVG() ([]byte, error) {
	if err := f.Prune(); err != nil {
		return nil, err
	}
	p := plot.New()
	p.BackgroundColor = back
	p.Title.Text, p.Title.Padding = f.Title, vg.Points(6)
	sans(&p.Title.TextStyle, 12)
	sans(&p.Legend.TextStyle, 10)
	p.Legend.Left, p.Legend.Top, p.Legend.Padding = true, true, vg.Points(2)
	legend := p.Legend // gonum would draw its own over the data
	f.X.style(&p.X)
	f.Y.style(&p.Y)
	g := plotter.NewGrid()
	g.Vertical = draw.LineStyle{Color: grid, Width: vg.Points(.6)}
	g.Horizontal = g.Vertical
	p.Add(g)
	for _, s := range f.Series {
		f.addBands(p, &s) // which lie below all lines
	}
	for _, s := range f.Series {
		if sign := f.add(p, &s); s.Name != "" {
			legend.Add(s.Name, sign)
		}
	}
	f.X.limit(&p.X)
	f.Y.limit(&p.Y)

	size := legend.Rectangle(draw.Canvas{}).Size()
	width, height := 6.4*vg.Inch, 4.2*vg.Inch+vg.Length(max(0, len(f.Y.Names)-16))*vg.Points(9)
	if size.Y > 0 {
		width += size.X + vg.Points(12)
		height = max(height, size.Y+vg.Inch)
	}
	c := &canvas{Canvas: vgsvg.New(width, height)}
	all := draw.New(c)
	all.SetColor(back)
	all.Fill(all.Rectangle.Path())
	left, right := all, all
	left.Max.X = 6.4 * vg.Inch
	left = draw.Crop(left, vg.Points(6), -vg.Points(14), vg.Points(6), -vg.Points(6))
	p.Draw(left)
	right.Min.X, right.Max.Y = left.Max.X+vg.Points(6), p.DataCanvas(left).Max.Y
	legend.Draw(right)
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
	header := []byte("<g transform")
	svg := bytes.Replace(b.Bytes(), header, slices.Concat(night, header), 1)
	for _, w := range c.widths { // in the order of the texts
		svg = bytes.Replace(svg, []byte("<text x"), fmt.Appendf(nil, `<text textLength="%.2f" lengthAdjust="spacingAndGlyphs" x`, w.Points()), 1)
	}
	// Arial and Helvetica are as wide as Liberation Sans, which few readers have.
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif")), err
}

// canvas notes how wide each text was measured. Readers draw it in that width, whatever
// their font, so that it stands where there is room for it.
type canvas struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString implements vg.Canvas.
func (c *canvas) FillString(face font.Face, at vg.Point, text string) {
	c.Canvas.FillString(face, at, text)
	c.widths = append(c.widths, face.Width(text))
}

// Put writes the figure into a directory, as SVG under its name.
func (f Figure) Put(dir string) error {
	svg, err := f.SVG()
	if err != nil {
		return err
	}
	return files.Put(filepath.Join(dir, f.Name+".svg"), svg)
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
		to.Tick.Marker = plot.TickerFunc(func(lo, hi float64) []plot.Tick {
			ticks := plot.LogTicks{Prec: -1}.Ticks(math.Pow(10, lo), math.Pow(10, hi))
			for i := range ticks {
				ticks[i].Value = math.Log10(ticks[i].Value)
			}
			return ticks
		})
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
	colour := colourOf(s.Style)
	for _, r := range f.placed(s) {
		if len(r.at) > 1 {
			slices.Reverse(r.hi)
			band := append(r.lo, r.hi...)
			p.Add(&plotter.Polygon{XYs: []plotter.XYs{band}, Color: color.NRGBA{colour.R, colour.G, colour.B, 50}})
		}
	}
}

// add draws a series but for its bands, and returns what stands for it in the legend.
func (f *Figure) add(p *plot.Plot, s *Series) (sign plot.Thumbnailer) {
	colour := colourOf(s.Style)
	line := plotter.Line{LineStyle: draw.LineStyle{Color: colour, Width: vg.Points(1.4)}}
	for _, v := range lookOf(s.Style).Dash {
		line.Dashes = append(line.Dashes, vg.Length(.7*v))
	}
	shape := shapes[max(0, s.Style/len(colours))%len(shapes)]
	points := plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: colour, Radius: vg.Points(3), Shape: shape}}
	for _, r := range f.placed(s) {
		if s.Kind == Points || len(r.at) == 1 {
			for k := range r.at {
				p.Add(&plotter.Line{XYs: plotter.XYs{r.lo[k], r.hi[k]}, LineStyle: draw.LineStyle{Color: colour, Width: vg.Points(1.2)}})
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
