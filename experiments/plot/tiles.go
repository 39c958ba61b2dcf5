package plot

import (
	"encoding/json"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/palette/moreland"
)

// Tiles are values over two settings.
type Tiles struct {
	X, Y   []string
	Values [][]float64 // [y][x]; NaN where there is none
	Of     [][]string  // what the value is of
}

// NewTiles returns tiles without values.
func NewTiles(x, y []string) *Tiles {
	t := &Tiles{X: x, Y: y}
	for range y {
		t.Values = append(t.Values, slices.Repeat([]float64{math.NaN()}, len(x)))
		t.Of = append(t.Of, make([]string, len(x)))
	}
	return t
}

// Len returns how many values there are.
func (t *Tiles) Len() (n int) {
	for _, row := range t.Values {
		for _, v := range row {
			if finite(v) {
				n++
			}
		}
	}
	return n
}

// tile is a value as it looks.
type tile struct {
	Text string `json:"text"`
	Back string `json:"back,omitempty"` // #rrggbb; empty where there is no value
	Dark bool   `json:"dark,omitempty"` // so that text on it is white
}

// MarshalJSON implements json.Marshaler.
func (t *Tiles) MarshalJSON() ([]byte, error) {
	lo, hi := t.span()
	tiles := make([][]tile, len(t.Values))
	for y, row := range t.Values {
		for _, v := range row {
			one := tile{Text: "–"}
			if finite(v) {
				c := shade(v, lo, hi)
				one = tile{tileText(v), hex(c), dark(c)}
			}
			tiles[y] = append(tiles[y], one)
		}
	}
	return json.Marshal(map[string]any{"x": t.X, "y": t.Y, "of": t.Of, "tiles": tiles})
}

// span returns the least and the greatest value.
func (t *Tiles) span() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, row := range t.Values {
		for _, v := range row {
			if finite(v) {
				lo, hi = math.Min(lo, v), math.Max(hi, v)
			}
		}
	}
	return lo, hi
}

func tileText(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// shade returns the colour of a value between lo and hi. Lightness grows evenly
// with the value, so that tiles can be read in grey as well.
func shade(v, lo, hi float64) color.RGBA {
	shades := moreland.ExtendedKindlmann()
	if lo == hi {
		v, lo, hi = .5, 0, 1
	}
	shades.SetMin(lo)
	shades.SetMax(hi)
	c, err := shades.At(v)
	if err != nil {
		panic("plot: " + err.Error()) // v is between lo and hi
	}
	return color.RGBAModel.Convert(c).(color.RGBA)
}

// dark reports whether text on the colour should be white.
func dark(c color.RGBA) bool { return color.GrayModel.Convert(c).(color.Gray).Y < 140 }

func hex(c color.RGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }
