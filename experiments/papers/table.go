package papers

import (
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

//go:embed figures.toml
var published string

// table is what figures.toml holds, which explains the keys.
type table struct {
	Law     []law
	Reading []reading
	Figure  []*figure
}

// law is a reading of how content arrives.
type law struct{ Key, Plain, Text string }

// reading is one way to measure a figure.
type reading struct {
	Key, Group string
	Text       string `json:"-"` // not part of what is measured
	Sought     bool

	Policy   string
	Level    env.Level
	Settings map[string]any
	Index    string
	Always   int

	Epochs  int
	Budget  float64
	Ages    []int
	Empty   bool
	Measure string // reward, crawls or over of the run; crawls, period or gaps of a source
	Source  int

	plays   string // key of the reading that plays the same
	law     string // under which it is played; empty for the mean dynamics
	plain   string // key of the same under the plain law
	outside string // why it may not stand for the figure; empty if it may
}

// figure is a figure that a document prints.
type figure struct {
	Row
	Readings   []string
	Laws       []string
	Budget     float64
	Measure    string
	Source     int
	Between    []string
	Tied       string
	Open, Note string

	numeric  bool // and not words
	readings []reading
}

// readFigures reads the table, and lists the readings of every figure.
func readFigures() []*figure {
	var t table
	if err := toml.NewDecoder(strings.NewReader(published)).DisallowUnknownFields().Decode(&t); err != nil {
		panic("papers: " + err.Error())
	}
	for _, f := range t.Figure {
		f.round()
		for _, name := range f.Readings {
			for _, r := range t.Reading {
				if r.Key == name || r.Group == name {
					f.readings = append(f.readings, f.under(r, t.Law)...)
				}
			}
		}
	}
	return t.Figure
}

// round settles what is accepted of a number: half a unit of its last digit.
func (f *figure) round() {
	v, err := strconv.ParseFloat(f.Printed, 64)
	if f.numeric = err == nil; f.numeric && f.Accepted == [2]float64{} {
		_, frac, _ := strings.Cut(f.Printed, ".")
		half := 0.5 * math.Pow10(-len(frac)) * (1 + 1e-9)
		f.Accepted = [2]float64{v - half, v + half}
	}
}

// under returns a reading as the figure measures it: under each of its laws, or,
// if the reading is of the mean dynamics, as it is.
func (f *figure) under(r reading, laws []law) (all []reading) {
	if f.Budget != 0 {
		r.Budget = f.Budget
	}
	if r.Sought {
		r.outside = sought
	}
	if f.Source > 0 {
		r.Key += fmt.Sprintf("/source-%d", f.Source)
	}
	r.plays = r.Key
	if f.Measure != "" {
		r.Measure, r.Source = f.Measure, f.Source
		if f.Source == 0 {
			r.Key += "/" + f.Measure
		}
	}
	if len(f.Laws) == 0 || r.Epochs > 0 {
		return []reading{r}
	}
	for _, l := range laws {
		if slices.Contains(f.Laws, l.Key) {
			x := r
			x.law, x.plays, x.Key, x.plain = l.Key, l.Key+"/"+r.plays, l.Key+"/"+r.Key, l.Plain+"/"+r.Key
			if x.Text = l.Text; r.Text != "" {
				x.Text = r.Text + ", " + l.Text
			}
			all = append(all, x)
		}
	}
	return all
}

// inBraces is what a note says of what was measured.
var inBraces = regexp.MustCompile(`{[^}]*}`)

// fillIn fills in what figures say of what was measured.
func fillIn(figures []*figure, s samples) {
	for _, f := range figures {
		f.Note = inBraces.ReplaceAllStringFunc(f.Note, func(key string) string {
			if key == "{bound}" { // which Whittle earns in the long run for M = 1
				bound, _ := index.Bound(env.Paper(1))
				return result.Figure(bound)
			}
			return result.Figure(stats.Mean(s[strings.Trim(key, "{}")]))
		})
		for k, key := range f.Between {
			f.Accepted[k] = stats.Mean(s[key])
		}
		if f.Tied == "" {
			continue
		}
		to := figures[slices.IndexFunc(figures, func(g *figure) bool { return g.ID == f.Tied })]
		for k := range f.readings {
			if r := &f.readings[k]; r.plain != "" && to.assess(reading{}, s[r.plain]).P < accepted {
				r.outside = untied
			}
		}
	}
}
