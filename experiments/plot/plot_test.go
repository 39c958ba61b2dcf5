package plot

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"
)

// count returns how many pixels of a picture have that colour.
func count(t *testing.T, p *Picture, c color.RGBA) int {
	t.Helper()
	b, err := p.PNG()
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	r := img.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if color.RGBAModel.Convert(img.At(x, y)) == c {
				n++
			}
		}
	}
	return n
}

func TestLines(t *testing.T) {
	x := []float64{1, 10, 100, 1000}
	p, err := Lines(Axes{Title: "t", X: "epoch", Y: "y", LogX: true}, []Line{
		{Name: "a", X: x, Y: []float64{1, 2, 3, 4}, Lo: []float64{0, 1, 2, 3}, Hi: []float64{2, 3, 4, 5}},
		{Name: "b", X: x, Y: []float64{4, math.NaN(), 2, 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if n := count(t, p, Colours[i]); n < 200 {
			t.Errorf("line %d has %d pixels", i, n)
		}
	}
	svg, err := p.SVG()
	if err != nil || !strings.Contains(string(svg), ">epoch<") {
		t.Errorf("SVG: %v", err)
	}
	if again, _ := p.SVG(); !bytes.Equal(svg, again) {
		t.Error("drawn twice, two files")
	}
	if _, err := Lines(Axes{Title: "empty"}, []Line{{X: x, Y: []float64{math.NaN(), math.Inf(1), math.NaN(), math.NaN()}}}); err == nil {
		t.Error("nothing to draw and no error")
	}
}

func TestHeat(t *testing.T) {
	g := Grid{XNames: []string{"1", "2", "3"}, YNames: []string{"u", "v"}, Values: [][]float64{{0, 5, 10}, {10, math.NaN(), 0}}}
	p, err := Heat(Axes{}, g)
	if err != nil {
		t.Fatal(err)
	}
	low, mid, high := count(t, p, Shade(0, 0, 10)), count(t, p, Shade(5, 0, 10)), count(t, p, Shade(10, 0, 10))
	// Two tiles are the lowest, two the highest, one lies between.
	if mid < 1000 || low < 3*mid/2 || high < 3*mid/2 {
		t.Errorf("%d, %d and %d pixels of low, middle and high", low, mid, high)
	}
	if _, err := Heat(Axes{}, Grid{XNames: []string{"1"}, YNames: []string{"1"}, Values: [][]float64{{math.NaN()}}}); err == nil {
		t.Error("nothing to draw and no error")
	}
}

func TestScatter(t *testing.T) {
	p, err := Scatter(Axes{}, []Line{{Name: "a", X: []float64{1, 2, 3}, Y: []float64{1, 3, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, p, Colours[0]); n < 100 {
		t.Errorf("%d pixels of points", n)
	}
	if _, err := Scatter(Axes{}, nil); err == nil {
		t.Error("nothing to draw and no error")
	}
}

// What has one colour differs by its dashes or its shape.
func TestSameColour(t *testing.T) {
	x, y := []float64{1, 2, 3, 4}, []float64{2, 4, 3, 1}
	pictures := map[string]func(Axes, []Line) (*Picture, error){"lines": Lines, "points": Scatter}
	for name, f := range pictures {
		seen := map[string]int{}
		for i := 0; i < 6*len(Colours); i += len(Colours) {
			list := make([]Line, i+1)
			list[i] = Line{X: x, Y: y}
			p, err := f(Axes{}, list)
			if err != nil {
				t.Fatal(err)
			}
			if n := count(t, p, Colours[0]); n < 100 {
				t.Errorf("%s, number %d: %d pixels of the first colour", name, i, n)
			}
			svg, err := p.SVG()
			if err != nil {
				t.Fatal(err)
			}
			if j, ok := seen[string(svg)]; ok {
				t.Errorf("%s: numbers %d and %d look the same", name, j, i)
			}
			seen[string(svg)] = i
		}
	}
}

// Shades become lighter with the value.
func TestShade(t *testing.T) {
	last := -1.0
	for v := 0.0; v <= 10; v++ {
		c := Shade(v, 0, 10)
		light := 0.299*float64(c.R) + 0.587*float64(c.G) + 0.114*float64(c.B)
		if light <= last {
			t.Errorf("shade of %v has lightness %v after %v", v, light, last)
		}
		last = light
	}
	if Shade(-5, 0, 10) != Shade(0, 0, 10) || Shade(3, 2, 2).A != 255 {
		t.Error("values outside of the range")
	}
}

// A legend of many entries stands beside the plot, so that it covers no line.
func TestManyEntries(t *testing.T) {
	draw := func(n int) *image.RGBA {
		lines := make([]Line, n)
		for i := range lines {
			lines[i] = Line{Name: fmt.Sprintf("line %d", i), X: []float64{0, 1}, Y: []float64{float64(n), float64(n - i)}}
		}
		p, err := Lines(Axes{Title: "t"}, lines)
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.PNG()
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		out := image.NewRGBA(img.Bounds())
		for y := range img.Bounds().Dy() {
			for x := range img.Bounds().Dx() {
				out.Set(x, y, img.At(x, y))
			}
		}
		return out
	}
	// The first line runs along the top of the plot; beside it the legend
	// shows its colour once more, behind a gap.
	img := draw(mostInside + 2)
	if few := draw(mostInside); few.Bounds().Dx() >= img.Bounds().Dx() {
		t.Errorf("%d entries on %d pixels, %d on %d", mostInside, few.Bounds().Dx(), mostInside+2, img.Bounds().Dx())
	}
	last, widest := -1, 0
	for x := range img.Bounds().Dx() {
		for y := range img.Bounds().Dy() {
			if img.RGBAAt(x, y) == Colours[0] {
				if last >= 0 {
					widest = max(widest, x-last)
				}
				last = x
				break
			}
		}
	}
	if widest < 60 {
		t.Errorf("the widest gap in the first line's colour is %d pixels; want the names of the legend between", widest)
	}
}
