package plot

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// polygon is a filled glyph. Its corners are in units of the radius.
type polygon [][2]float64

// DrawGlyph implements draw.GlyphDrawer.
func (g polygon) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	var p vg.Path
	for i, v := range g {
		corner := vg.Point{X: at.X + vg.Length(v[0])*sty.Radius, Y: at.Y + vg.Length(v[1])*sty.Radius}
		if i == 0 {
			p.Move(corner)
		} else {
			p.Line(corner)
		}
	}
	p.Close()
	c.Fill(p)
}

// glyphs are about equally heavy, and differ without colour.
var glyphs = []draw.GlyphDrawer{
	draw.CircleGlyph{},
	polygon{{-.9, -.9}, {.9, -.9}, {.9, .9}, {-.9, .9}}, // square
	polygon{{0, 1.3}, {-1.15, -.8}, {1.15, -.8}},        // triangle
	polygon{{0, 1.4}, {-1.1, 0}, {0, -1.4}, {1.1, 0}},   // diamond
	plus,
	polygon{{0, -1.3}, {-1.15, .8}, {1.15, .8}},         // triangle on its tip
	polygon{{-1.2, -1}, {1.2, 1}, {1.2, -1}, {-1.2, 1}}, // bow tie
	plus.turned(),
}

var plus = polygon{
	{-.4, 1.3}, {-.4, .4}, {-1.3, .4}, {-1.3, -.4}, {-.4, -.4}, {-.4, -1.3},
	{.4, -1.3}, {.4, -.4}, {1.3, -.4}, {1.3, .4}, {.4, .4}, {.4, 1.3},
}

// turned returns the polygon turned by an eighth of a circle.
func (g polygon) turned() polygon {
	var out polygon
	for _, v := range g {
		out = append(out, [2]float64{(v[0] - v[1]) * math.Sqrt2 / 2, (v[0] + v[1]) * math.Sqrt2 / 2})
	}
	return out
}

// shape returns the glyph of group i. Groups that share a colour get different
// ones.
func shape(i int) draw.GlyphDrawer { return glyphs[(i+i/len(colours))%len(glyphs)] }
