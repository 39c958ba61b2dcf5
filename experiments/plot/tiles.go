package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
)

// Tiles are values over two settings.
type Tiles struct {
	X      []string    `json:"x"`
	Y      []string    `json:"y"`
	Values [][]float64 `json:"-"`     // [y][x]; NaN where there is none
	Of     [][]string  `json:"of"`    // what the value is of
	Tiles  [][]Tile    `json:"tiles"` // what Fit makes of the values
}

// Tile is a value as it looks.
type Tile struct {
	Text   string `json:"text"`
	Back   string `json:"back,omitempty"` // #rrggbb; empty where there is no value
	Dark   bool   `json:"dark,omitempty"` // so that text on it is white
	colour color.RGBA
}

// fit makes tiles of the values; it reports whether there are any.
func (t *Tiles) fit() bool {
	s := nothing
	for _, v := range slices.Concat(t.Values...) {
		if finite(v) {
			s.see(v)
		}
	}
	t.Tiles = make([][]Tile, len(t.Values))
	for y, row := range t.Values {
		for _, v := range row {
			tile := Tile{Text: "–"}
			if finite(v) {
				c := shade(v, s.lo, s.hi)
				tile = Tile{strconv.FormatFloat(v, 'g', 4, 64), hex(c), dark(c), c}
			}
			t.Tiles[y] = append(t.Tiles[y], tile)
		}
	}
	return s != nothing
}

// shades run from dark to light with even steps in lightness, so that they can
// be read in grey as well.
var shades = []color.RGBA{{53, 23, 89, 255}, {58, 82, 139, 255}, {32, 144, 140, 255}, {94, 201, 97, 255}, {253, 231, 37, 255}}

// shade returns the colour of a value between lo and hi.
func shade(v, lo, hi float64) color.RGBA {
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

// dark reports whether text on the colour should be white.
func dark(c color.RGBA) bool {
	return 0.299*float64(c.R)+0.587*float64(c.G)+0.114*float64(c.B) < 140
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
