package plot

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"pgregory.net/rapid"
)

func TestKinds(t *testing.T) {
	x, y := Values{1, 2, 3, 4}, Values{2, 4, math.NaN(), 1}
	for _, kind := range []string{"", Points} {
		f := Figure{Title: "t", X: Axis{Label: "epoch"}, Series: []Series{
			{Name: "a", Kind: kind, X: x, Y: y, Lo: Values{1, 3, 1, 0}, Hi: Values{3, 5, 3, 2}},
			{Name: "plain", Kind: kind, Style: Plain, X: x, Y: Values{5, 5, 5, 5}},
		}}
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		// At the name, a piece and a thin line to it, then a line and, behind the gap, a point with
		// its bar; or one in the legend, and three points with bars. A band has a colour of its own.
		if n := strings.Count(string(svg), hex(colours[0])); n != map[string]int{"": 5, Points: 7}[kind] {
			t.Errorf("kind %q: %d parts in the colour of a", kind, n)
		}
		if strings.Count(string(svg), hex(grey)) < 2 || !strings.Contains(string(svg), `aria-label="epoch"`) {
			t.Errorf("kind %q: %s", kind, svg)
		}
		if again, _ := f.SVG(); !bytes.Equal(svg, again) {
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
	} {
		if err := f.Prune(); err == nil {
			t.Errorf("nothing to draw and no error: %+v", f)
		}
	}
	f := Figure{Y: Axis{Log: true}, Series: []Series{
		{Name: "a", X: Values{1}, Y: Values{0}},
		{Name: "b", X: Values{1}, Y: Values{2}},
	}}
	if err := f.Prune(); err != nil || len(f.Series) != 1 || f.Series[0].Name != "b" {
		t.Errorf("%v; %+v, of which the first has no point that the axes show", err, f.Series)
	}
}

// Every colour of background, text and grid has one for the night.
func TestNight(t *testing.T) {
	f := Figure{Title: "t", Series: []Series{{
		Name: "a", Style: 6,
		X: Values{1, 2, 3}, Y: Values{3, 2, 4}, Lo: Values{2, 1, 3}, Hi: Values{4, 3, 5},
	}}}
	svg, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	style, drawing, _ := strings.Cut(string(svg), "</style>")
	rules := regexp.MustCompile(`\[style\*="([^"]*)"\] \{ .*: (#.*) !important \}`)
	for _, rule := range rules.FindAllStringSubmatch(style, -1) {
		if !strings.Contains(drawing, rule[1]) || strings.Contains(rule[1], rule[2]) {
			t.Errorf("the rule %q changes nothing", rule[0])
		}
	}
	colours := regexp.MustCompile(`(fill|stroke):#\w+`).FindAllString(drawing, -1)
	for _, c := range colours {
		if !strings.Contains(style, c) {
			t.Errorf("%s stays in the dark", c)
		}
	}
	if len(colours) < 20 {
		t.Errorf("%d colours in the drawing", len(colours))
	}
}

// An axis runs over all data, or from Lo to Hi; that of names over all names. All of its
// labels are round, and there are some.
func TestRange(t *testing.T) {
	for _, c := range []struct {
		what string
		y    Axis
		want string
	}{
		{"all data", Axis{}, "1.0 1.5 2.0 2.5 3.0"},
		{"names", Axis{Names: []string{"a", "b", "c", "none"}}, "a b c none"},
		{"a share", Axis{Lo: .23, Hi: 1.27}, "0.4 0.6 0.8 1.0 1.2"},
		{"a share near 1", Axis{Lo: .9953, Hi: 1.0001}, "0.996 0.997 0.998 0.999 1.000"},
		{"below 0", Axis{Lo: -3, Hi: 2}, "-3 -2 -1 0 1 2"},
		{"thousands", Axis{Lo: 900, Hi: 5_100}, "1000 2000 3000 4000 5000"},
		{"ten thousands", Axis{Lo: 9_000, Hi: 65_000}, "10000 20000 30000 40000 50000 60000"},
		{"many", Axis{Lo: 0, Hi: 5e7}, "0 1e+07 2e+07 3e+07 4e+07 5e+07"},
		{"little", Axis{Lo: 0, Hi: 5e-9}, "0 1e-09 2e-09 3e-09 4e-09 5e-09"},
		{"little between", Axis{Lo: .99999805, Hi: .9999984}, "0.9999981 0.9999982 0.9999983 0.9999984"},
		{"many, close together", Axis{Lo: 2e7, Hi: 2e7 + 20}, "20000000 20000005 20000010 20000015 20000020"},
		{"logarithms of few", Axis{Log: true, Lo: 8.1, Hi: 25}, "10 15 20 25"},
		{"logarithms over a power of ten", Axis{Log: true, Lo: 4.9, Hi: 210}, "5 10 20 50 100 200"},
		{"logarithms", Axis{Log: true, Lo: .01, Hi: 100}, "0.01 0.1 1 10 100"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := Figure{Y: c.y, Series: []Series{{X: Values{1, 2}, Y: Values{1, 3}}}}
			d, err := f.lay()
			if err != nil {
				t.Fatal(err)
			}
			var labels []string
			for _, tick := range d.plot.Y.Tick.Marker.Ticks(d.plot.Y.Min, d.plot.Y.Max) {
				if tick.Label != "" && tick.Value >= d.plot.Y.Min && tick.Value <= d.plot.Y.Max {
					labels = append(labels, tick.Label)
				}
			}
			if got := strings.Join(labels, " "); got != c.want {
				t.Errorf("labels %s; want %s", got, c.want)
			}
		})
	}
}

// Values that only rounding tells apart are drawn as one value is.
func TestRounding(t *testing.T) {
	for _, v := range []float64{1e-300, 1, -260.1, 1e17, 1e300} {
		for _, log := range []bool{false, true} {
			f := Figure{Y: Axis{Log: log && v > 0}}
			f.Of("a").Add(1, v)
			f.Of("a").Add(2, math.Nextafter(v, math.Inf(1)))
			d, err := f.lay()
			if err != nil {
				t.Fatal(err)
			}
			y := d.plot.Y
			at := f.Y.place(v)
			if ticks := y.Tick.Marker.Ticks(y.Min, y.Max); len(ticks) < 2 || !(y.Min < at && at < y.Max) {
				t.Errorf("%v, logarithmic %v: %d ticks from %v to %v", v, f.Y.Log, len(ticks), y.Min, y.Max)
			}
		}
	}
}

// Names may hold anything; a file is XML all the same, and says them in one line each.
func TestOddNames(t *testing.T) {
	const odd, want = "a\x01\n<b>\u202e", `a\x01\n<b>\u202e`
	for _, f := range []Figure{
		{
			Title: odd, X: Axis{Label: odd}, Y: Axis{Label: odd},
			Series: []Series{{Name: odd, X: Values{1, 2}, Y: Values{1, 2}}},
		},
		{Y: Axis{Names: []string{odd}}, Series: []Series{{Kind: Points, X: Values{1}, Y: Values{0}}}},
	} {
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		said := map[string]bool{}
		for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
			token, err := d.Token()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if e, ok := token.(xml.StartElement); ok {
				for _, a := range e.Attr {
					said[a.Value] = said[a.Value] || a.Name.Local == "aria-label"
				}
			}
		}
		if !said[want] || f.Series[0].Name == want {
			t.Errorf("the file says %v; want %q, and the figure as it was", slices.Collect(maps.Keys(said)), want)
		}
	}
}

// A page has what the files have: names, order, style and range.
func TestJSON(t *testing.T) {
	f := Figure{X: Axis{Label: "epoch", Hi: 2}, Series: []Series{
		{Name: "b", Style: 3, X: Values{0, 1}, Y: Values{math.NaN(), 2}},
		{Name: "a", X: Values{0, 1}, Y: Values{1, 3}},
	}}
	b, err := json.Marshal(f)
	want := `{"name":"","title":"","x":{"label":"epoch","hi":2},"y":{"label":""},"series":[` +
		`{"name":"b","style":3,"x":[0,1],"y":[null,2]},` +
		`{"name":"a","style":0,"x":[0,1],"y":[1,3]}]}`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
	distinct := len(colours) * len(dashes)
	looks := Looks(distinct)[:distinct]
	for i, l := range looks {
		for j, other := range looks[:i] {
			if l.Colour == other.Colour && fmt.Sprint(l.Dash) == fmt.Sprint(other.Dash) {
				t.Errorf("styles %d and %d look the same", i, j)
			}
		}
	}
}

// The legend stands next to the data, and the canvas has room for it.
func TestLegend(t *testing.T) {
	text := regexp.MustCompile(`<path d="([^"]*)" style="fill:#1C1C20" aria-label="([a-z/]+)" />`)
	size := regexp.MustCompile(`viewBox="0 0 ([\d.]+) ([\d.]+)"`)
	at := regexp.MustCompile(`(-?[\d.e-]+),(-?[\d.e-]+)`)
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	rapid.Check(t, func(t *rapid.T) {
		f := Figure{Title: "T", X: Axis{Label: "X"}, Y: Axis{Label: "Y"}}
		n := rapid.IntRange(1, 40).Draw(t, "series")
		for k := range n {
			name := rapid.StringMatching(`[a-z/]{1,30}`).Draw(t, "name")
			f.Series = append(f.Series, Series{Name: name, Style: k, X: Values{1, 2}, Y: Values{1, 2}})
		}
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		canvas := size.FindStringSubmatch(string(svg))
		entries := text.FindAllStringSubmatch(string(svg), -1)
		if len(entries) != n {
			t.Fatalf("%d entries for %d series", len(entries), n)
		}
		for _, e := range entries {
			for _, p := range at.FindAllStringSubmatch(e[1], -1) {
				x, y := number(p[1]), number(p[2])
				if x < float64(leftWidth) || x > number(canvas[1]) || y < 0 || y > number(canvas[2]) {
					t.Fatalf("%q reaches %v, %v of %v", e[2], x, y, canvas[0])
				}
			}
		}
	})
}

// Names along an axis have room next to the data, however long they are, and take none from it.
func TestLongNames(t *testing.T) {
	for _, n := range []int{1, 20, 80, 200} {
		f := Figure{
			X:      Axis{Label: "X", Lo: 0, Hi: 1},
			Y:      Axis{Names: []string{"a", strings.Repeat("n", n)}},
			Series: []Series{{Kind: Points, X: Values{.2, .8}, Y: Values{0, 1}}},
		}
		d, err := f.lay()
		if err != nil {
			t.Fatal(err)
		}
		data := d.plot.DataCanvas(draw.New(vgimg.New(d.left, d.height)))
		name := d.plot.Y.Tick.Label.Width(f.Y.Names[1])
		if left, wide := data.Min.X-name, data.Max.X-data.Min.X; left < 0 || wide < 2.5*vg.Inch {
			t.Errorf("a name of %d letters begins %v from the frame, next to %v of data", n, left, wide)
		}
	}
}
