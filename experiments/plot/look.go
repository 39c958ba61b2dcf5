package plot

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot/vg/draw"
)

// What a figure stands on, and what it stands on at night.
var (
	back = color.RGBA{255, 255, 255, 255}
	ink  = color.RGBA{27, 27, 31, 255}
	grid = color.RGBA{227, 228, 233, 255}
	grey = color.RGBA{128, 128, 128, 255}

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
var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}}

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
