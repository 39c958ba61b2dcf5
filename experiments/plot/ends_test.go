package plot

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

// Names stand where curves end, in their order, apart and within the frame, and no other such
// places are closer.
func TestSpread(t *testing.T) {
	for _, tt := range []struct {
		name         string
		wanted, want []vg.Length
	}{
		{"apart", []vg.Length{10, 40, 90}, []vg.Length{10, 40, 90}},
		{"two at one place", []vg.Length{50, 50}, []vg.Length{45, 55}},
		{"three at the top", []vg.Length{99, 100, 100}, []vg.Length{80, 90, 100}},
		{"one pushes another", []vg.Length{0, 1, 12}, []vg.Length{0, 10, 20}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := spread(tt.wanted, 10, 0, 100); !slices.Equal(got, tt.want) {
				t.Errorf("%v are put at %v; want %v", tt.wanted, got, tt.want)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		wanted := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 300), func(v int) vg.Length {
			return vg.Length(v)
		}), 1, mostCurves).Draw(t, "wanted")
		slices.Sort(wanted)
		off := func(places []vg.Length) (sum float64) {
			for k, v := range places {
				sum += math.Pow(float64(v-wanted[k]), 2)
			}
			return sum
		}
		allowed := func(places []vg.Length) bool {
			for k, v := range places {
				if v < -1e-9 || v > 300+1e-9 || k > 0 && v-places[k-1] < 13-1e-9 {
					return false
				}
			}
			return true
		}
		got := spread(wanted, 13, 0, 300)
		if !allowed(got) {
			t.Fatalf("%v are put at %v", wanted, got)
		}
		for k := range got {
			for _, step := range []vg.Length{-1, 1} {
				other := slices.Clone(got)
				other[k] += step
				if allowed(other) && off(other) < off(got)-1e-6 {
					t.Fatalf("%v are put at %v; %v are closer", wanted, got, other)
				}
			}
		}
	})
}

// Few curves have their names at their ends, in the order of the ends; many, and points, a
// legend.
func TestNamesOfCurves(t *testing.T) {
	high := Series{Name: "high", Style: 0, X: Values{1, 2}, Y: Values{1, 3}}
	low := Series{Name: "low", Style: 1, Grey: true, X: Values{1, 2}, Y: Values{4, 2}}
	few := Figure{Series: []Series{high, low}}
	if !few.fewCurves() {
		t.Error("two curves have a legend")
	}
	points := Figure{Series: []Series{high, {Name: "points", Kind: Points, X: Values{1}, Y: Values{1}}}}
	many := Figure{}
	for k := range mostCurves + 1 {
		many.Of(string(rune('a'+k))).Add(1, 1)
	}
	if points.fewCurves() || many.fewCurves() {
		t.Error("points, or many curves, have no legend")
	}
	svg, err := few.SVG()
	if err != nil {
		t.Fatal(err)
	}
	text := string(svg)
	if a, b := strings.Index(text, `aria-label="low"`), strings.Index(text, `aria-label="high"`); a < 0 || b < a {
		t.Errorf("low is named at %d, high at %d; want the lower end first", a, b)
	}
	if strings.Contains(text, hex(colours[1])) || !strings.Contains(text, hex(grey)) {
		t.Error("what breaks the budget is not grey")
	}
}

// From a curve that ends before the others dots lead to its name, and from the others none.
func TestShortCurveHasDots(t *testing.T) {
	long := Series{Name: "long", X: Values{1, 3}, Y: Values{1, 3}}
	for _, tt := range []struct {
		end  float64
		dots int
	}{{3, 0}, {2, 1}} {
		other := Series{Name: "other", X: Values{1, tt.end}, Y: Values{2, 1}}
		svg, err := (&Figure{Series: []Series{long, other}}).SVG()
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(svg), "stroke-dasharray"); n != tt.dots {
			t.Errorf("of a curve that ends at %v there are %d dotted lines, want %d", tt.end, n, tt.dots)
		}
	}
}

// In front of its name stands a piece of a curve, as wide and with the same dashes.
func TestPieceOfCurve(t *testing.T) {
	dashed := Series{Name: "dashed", Style: len(colours) + 1, X: Values{1, 2}, Y: Values{1, 1}}
	solid := Series{Name: "solid", Style: 2, X: Values{1, 2}, Y: Values{1, 1}}
	svg, err := (&Figure{Series: []Series{dashed, solid}}).SVG()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Series{dashed, solid} {
		lines := regexp.MustCompile(`style="[^"]*stroke:`+hex(s.colour())+`[^"]*"`).FindAllString(string(svg), -1)
		if len(lines) != 3 || lines[0] != lines[2] || lines[0] == lines[1] {
			t.Errorf("%s: %q; want the curve, a thin line and a piece like the curve", s.Name, lines)
		}
	}
}
