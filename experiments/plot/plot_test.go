package plot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"

	"ephemera/env/envtest"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
	"pgregory.net/rapid"
)

// picture draws the figure.
func picture(t *testing.T, f Figure, theme Theme) image.Image {
	t.Helper()
	b, err := f.PNG(theme)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// count returns how many pixels of a figure have that colour.
func count(t *testing.T, f Figure, theme Theme, c color.RGBA) int {
	t.Helper()
	img := picture(t, f, theme)
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

func TestKinds(t *testing.T) {
	envtest.Alone(t)
	x, y := Values{1, 2, 3, 4}, Values{2, 4, math.NaN(), 1}
	for _, kind := range []Kind{Line, Steps, Points, Across, Marks} {
		f := Figure{Title: "t", X: Axis{Label: "epoch"}, Series: []Series{
			{Name: "a", Kind: kind, X: x, Y: y, Lo: Values{1, 3, 1, 0}, Hi: Values{3, 5, 3, 2}},
			{Name: "hidden", Kind: kind, Style: 1, X: x, Y: y, Hidden: true},
			{Name: "plain", Kind: kind, Style: Plain, X: x, Y: Values{5, 5, 5, 5}},
		}}
		if a, p, hidden := count(t, f, Light, colours[0]), count(t, f, Light, grey), count(t, f, Light, colours[1]); a < 60 || p < 60 || hidden > 0 {
			t.Errorf("kind %q: %d and %d pixels of two series, %d of one that is hidden", kind, a, p, hidden)
		}
		svg, err := f.SVG(Light)
		if err != nil || !strings.Contains(string(svg), ">epoch<") || strings.Contains(string(svg), ">hidden<") {
			t.Errorf("kind %q: SVG %v", kind, err)
		}
		if again, _ := f.SVG(Light); !bytes.Equal(svg, again) {
			t.Errorf("kind %q: drawn twice, two files", kind)
		}
	}
}

func TestNothing(t *testing.T) {
	for _, f := range []Figure{
		{},
		{Series: []Series{{X: Values{1, 2}, Y: Values{math.NaN(), math.Inf(1)}}}},
		{Y: Axis{Log: true}, Series: []Series{{X: Values{1, 2}, Y: Values{0, -1}}}},
		{Series: []Series{{X: Values{1, 2}}}},
		{Tiles: &Tiles{X: []string{"1"}, Y: []string{"1"}, Values: [][]float64{{math.NaN()}}}},
	} {
		if err := f.Fit(); err == nil {
			t.Errorf("nothing to draw and no error: %+v", f)
		}
	}
	f := Figure{Y: Axis{Log: true}, Series: []Series{{Name: "a", X: Values{1}, Y: Values{0}}, {Name: "b", X: Values{1}, Y: Values{2}}}}
	if err := f.Fit(); err != nil || len(f.Series) != 1 || f.Series[0].Name != "b" {
		t.Errorf("%v; %+v, of which the first has no point that the axes show", err, f.Series)
	}
}

// The background covers all of the figure, its margins too, and what is black
// on paper is light in the dark.
func TestThemes(t *testing.T) {
	f := Figure{Title: "t", Series: []Series{{Name: "a", Style: 6, X: Values{1, 2, 3}, Y: Values{3, 2, 4}}}}
	for _, theme := range []Theme{Light, Dark} {
		img := picture(t, f, theme)
		r := img.Bounds()
		for _, at := range []image.Point{r.Min, {r.Max.X - 1, r.Max.Y - 1}, {r.Min.X, r.Max.Y - 1}, {r.Max.X - 1, r.Min.Y}} {
			if c := color.RGBAModel.Convert(img.At(at.X, at.Y)); c != theme.Back {
				t.Errorf("at %v: %v, want the background %v", at, c, theme.Back)
			}
		}
		if svg, err := f.SVG(theme); err != nil || !strings.Contains(string(svg), `<path d="M0,0L`) || !strings.Contains(string(svg), strings.ToUpper(hex(theme.Back))) {
			t.Errorf("SVG without %v under all of it: %v", theme.Back, err)
		}
		if n := count(t, f, theme, theme.Text); n < 300 {
			t.Errorf("%d pixels of line and text in %v", n, theme.Text)
		}
	}
}

// Ticks lie in their range, are few, and no two read the same: not for a narrow
// range far from 0 either.
func TestTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := math.Pow(10, rapid.Float64Range(-8, 12).Draw(t, "size"))
		lo := size * rapid.Float64Range(-3, 3).Draw(t, "lo")
		hi := lo + size*math.Pow(10, rapid.Float64Range(-6, 1).Draw(t, "width"))
		log := rapid.Bool().Draw(t, "log") && lo > 0
		seen := map[string]bool{}
		n := 0
		a := Axis{Lo: lo, Hi: hi, Log: log}
		a.fit(nothing, 0)
		for _, tick := range a.Ticks {
			if tick.At < lo-1e-6*(hi-lo) || tick.At > hi+1e-6*(hi-lo) {
				t.Fatalf("%v lies outside of %v to %v", tick.At, lo, hi)
			}
			if tick.Text == "" {
				continue
			}
			if n++; seen[tick.Text] {
				t.Fatalf("%q stands twice on %v to %v", tick.Text, lo, hi)
			}
			seen[tick.Text] = true
			var v float64
			if _, err := fmt.Sscan(tick.Text, &v); err != nil || math.Abs(v-tick.At) > 1e-6*(hi-lo) {
				t.Fatalf("%q stands at %v on %v to %v", tick.Text, tick.At, lo, hi)
			}
		}
		if n < 2 || n > 11 {
			t.Fatalf("%d ticks on %v to %v, log %v", n, lo, hi, log)
		}
	})
}

// The data fill the range, and early values do not crush late ones.
func TestRange(t *testing.T) {
	f := Figure{X: Axis{Log: true}, From: 10, Series: []Series{{X: Values{1, 10, 100, 1000}, Y: Values{-500, .9, .98, 1}}}}
	if err := f.Fit(); err != nil {
		t.Fatal(err)
	}
	if f.X.Lo != 10 || f.Y.Lo < .97 || f.Y.Hi > 1.01 {
		t.Errorf("x from %v, y from %v to %v", f.X.Lo, f.Y.Lo, f.Y.Hi)
	}
	f = Figure{Series: []Series{{X: Values{-5, -4, 1}, Y: Values{0, 100, 1}}}}
	if err := f.Fit(); err != nil || f.X.Lo != -5 || f.Y.Hi < 100 || f.Y.Lo > 0 {
		t.Errorf("x from %v, y from %v to %v, %v", f.X.Lo, f.Y.Lo, f.Y.Hi, err)
	}
	f = Figure{Series: []Series{{X: Values{0, 1}, Y: Values{100, 101}}, {X: Values{0, 1}, Y: Values{-750, 0}, Hidden: true}}}
	if err := f.Fit(); err != nil {
		t.Fatal(err)
	}
	if f.Y.Lo < 99.9 || f.Y.Hi > 101.1 {
		t.Errorf("y from %v to %v, with one series from 100 to 101 and one hidden", f.Y.Lo, f.Y.Hi)
	}
}

// A page has what the files have: names, order, style, range and ticks.
func TestJSON(t *testing.T) {
	f := Figure{X: Axis{Label: "epoch"}, Series: []Series{{Name: "b", Style: 3, X: Values{0, 1}, Y: Values{math.NaN(), 2}}, {Name: "a", X: Values{0, 1}, Y: Values{1, 3}}}}
	if err := f.Fit(); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		X, Y   Axis
		Series []struct {
			Name  string
			Style int
			Y     []*float64
		}
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.X.Label != "epoch" || got.X.Hi != f.X.Hi || len(got.Y.Ticks) < 3 || got.Y.Ticks[1] != f.Y.Ticks[1] ||
		got.Series[0].Name != "b" || got.Series[0].Style != 3 || got.Series[0].Y[0] != nil || *got.Series[0].Y[1] != 2 {
		t.Errorf("%s", b)
	}
	looks := Looks(20)
	for i, l := range looks {
		for j, other := range looks[:i] {
			if l.Colour == other.Colour && (fmt.Sprint(l.Dash) == fmt.Sprint(other.Dash) || fmt.Sprint(l.Shape) == fmt.Sprint(other.Shape) && i < 20) {
				t.Errorf("styles %d and %d look the same", i, j)
			}
		}
	}
}

func TestTiles(t *testing.T) {
	f := Figure{Tiles: &Tiles{X: []string{"1", "2", "3"}, Y: []string{"u", "v"}, Values: [][]float64{{0, 5, 10}, {10, math.NaN(), 0}}}}
	low, mid, high := count(t, f, Light, shade(0, 0, 10)), count(t, f, Light, shade(5, 0, 10)), count(t, f, Light, shade(10, 0, 10))
	// Two tiles are the lowest, two the highest, one lies between.
	if mid < 1000 || low < 3*mid/2 || high < 3*mid/2 {
		t.Errorf("%d, %d and %d pixels of low, middle and high", low, mid, high)
	}
}

// What has one colour differs by its dashes or its shape.
func TestSameColour(t *testing.T) {
	envtest.Alone(t)
	for _, kind := range []Kind{Line, Points} {
		seen := map[string]int{}
		for i := 0; i < 6*len(colours); i += len(colours) {
			f := Figure{Series: []Series{{Style: i, Kind: kind, X: Values{1, 2, 3, 4}, Y: Values{2, 4, 3, 1}}}}
			if n := count(t, f, Light, colours[0]); n < 100 {
				t.Errorf("%q, number %d: %d pixels of the first colour", kind, i, n)
			}
			svg, err := f.SVG(Light)
			if err != nil {
				t.Fatal(err)
			}
			if j, ok := seen[string(svg)]; ok {
				t.Errorf("%q: numbers %d and %d look the same", kind, j, i)
			}
			seen[string(svg)] = i
		}
	}
}

// Shades become lighter with the value.
func TestShade(t *testing.T) {
	last := -1.0
	for v := 0.0; v <= 10; v++ {
		c := shade(v, 0, 10)
		light := 0.299*float64(c.R) + 0.587*float64(c.G) + 0.114*float64(c.B)
		if light <= last {
			t.Errorf("shade of %v has lightness %v after %v", v, light, last)
		}
		last = light
	}
	if shade(-5, 0, 10) != shade(0, 0, 10) || shade(3, 2, 2).A != 255 {
		t.Error("values outside of the range")
	}
}

// The legend stands within the canvas and beside the data, and leaves them room.
func TestLegend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Figure{Title: "t", X: Axis{Label: "x"}, Y: Axis{Label: "y"}}
		for k := range rapid.IntRange(1, 40).Draw(t, "series") {
			f.Series = append(f.Series, Series{Name: rapid.StringMatching(`[a-z/]{1,30}`).Draw(t, "name"), Style: k, X: Values{1, 2}, Y: Values{1, 2}})
		}
		if err := f.Fit(); err != nil {
			t.Fatal(err)
		}
		d := newDrawing(&f, Light)
		to, legend := d.places(draw.New(vgsvg.New(d.width, d.height)))
		size := d.legend.Rectangle(legend).Size()
		if legend.Max.Y-size.Y < 0 || legend.Min.X+size.X > d.width {
			t.Fatalf("legend of %v at %v of %v × %v", size, legend.Rectangle, d.width, d.height)
		}
		data := d.plot.DataCanvas(to)
		if data.Size().X < 4*vg.Inch || data.Size().Y < 3*vg.Inch || data.Max.X >= legend.Min.X && data.Min.Y <= legend.Max.Y {
			t.Fatalf("data at %v, legend at %v", data.Rectangle, legend.Rectangle)
		}
	})
}
