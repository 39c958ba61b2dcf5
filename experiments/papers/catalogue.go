package papers

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"ephemera/baselines/index"
	"ephemera/env"
)

// share is the unit of what is printed in per cent.
const share = "share"

//go:embed figures.toml
var published string

// table is what figures.toml holds.
type table struct {
	Sought   []string
	Readings map[string]string
	Figure   []struct {
		ID, Document, Place, Quantity, Unit, Printed string

		Accepted   []float64
		Readings   []string
		Open, Note string
	}
}

// newFigure is a figure of which a row is known. A number that is printed has to
// be met to within its rounding if the row does not say what is accepted.
func newFigure(row Row, open, note string) *figure {
	f := &figure{Row: row, open: open, note: note}
	v, err := strconv.ParseFloat(row.Printed, 64)
	if f.number = err == nil; f.number && row.Accepted == [2]float64{} {
		f.Accepted = [2]float64{v - half(row.Printed), v + half(row.Printed)}
	}
	return f
}

// under returns the readings of a policy under laws.
func under(policy string, laws ...law) (all []reading) {
	for _, l := range laws {
		all = append(all, reading{key: l.key + "/" + policy, text: l.text})
	}
	return all
}

// whittle returns the readings of the index policy under laws. excluded may say
// why one may not stand for the figure.
func whittle(laws []law, excluded func(l law, p policy) string) (all []reading) {
	for _, p := range indices {
		for _, l := range laws {
			all = append(all, reading{l.key + "/" + p.key, p.text + ", " + l.text, excluded(l, p)})
		}
	}
	return all
}

// lists returns the lists of readings that figures name. poisson is the figure
// of the index policy with Poisson arrivals.
func lists(s samples, poisson *figure) map[string][]reading {
	// The program that gave 253.1 gave 283.8, 285 and 283 as well.
	same := func(l law, p policy) string {
		if poisson.assess(reading{}, s[l.poisson+"/"+p.key], nil).P >= accepted {
			return ""
		}
		return untied
	}
	all := map[string][]reading{
		"whittle":             whittle(laws, same),
		"whittle constant":    whittle(constantLaws, func(law, policy) string { return "" }),
		"whittle exponential": whittle(exponentialLaws, same),
	}
	for _, policy := range []string{"greedy", "round-robin"} {
		all[policy] = under(policy, laws...)
		all[policy+" constant"] = under(policy, constantLaws...)
		all[policy+" exponential"] = under(policy, exponentialLaws...)
	}
	add := func(list string, r reading) { all[list] = append(all[list], r) }
	for _, p := range indices {
		add("source 1", reading{key: "constant/" + p.key + "/source-1", text: p.text + ", Poisson arrivals"})
	}
	for _, c := range controls {
		add("relaxed", reading{"relaxed/" + c.key, c.text, c.excluded})
		add("relaxed over", reading{"relaxed/" + c.key + "/over", c.text, c.excluded})
	}
	for _, x := range learners {
		add("allerton", reading{key: "allerton/" + x.key, text: x.text})
		add("allerton crawls", reading{key: "allerton/" + x.key + "/crawls", text: x.text})
	}
	return all
}

// catalogue returns all published figures. What one figure says of another is
// taken from the samples.
func catalogue(s samples) []*figure {
	var t table
	if err := toml.NewDecoder(strings.NewReader(published)).DisallowUnknownFields().Decode(&t); err != nil {
		panic("papers: " + err.Error())
	}
	// For M = 1 Whittle earns the bound in the long run.
	bound, _ := index.Bound(env.Paper(1))
	measured := strings.NewReplacer("{bound}", number(bound), "{theorem}", number(s.mean("constant/theorem")), "{greedy}", number(s.mean("constant/greedy")))
	var all []*figure
	for _, x := range t.Figure {
		row := Row{ID: x.ID, Document: x.Document, Place: x.Place, Quantity: x.Quantity, Unit: x.Unit, Printed: x.Printed}
		copy(row.Accepted[:], x.Accepted)
		if x.ID == "allerton/between" {
			row.Accepted = [2]float64{s.mean("mean-1/only-2"), s.mean("mean-1/only-1")}
		}
		all = append(all, newFigure(row, x.Open, measured.Replace(x.Note)))
	}
	named := lists(s, all[slices.IndexFunc(all, func(f *figure) bool { return f.ID == "tcns/poisson-whittle" })])
	for i, x := range t.Figure {
		for _, name := range x.Readings {
			if list, ok := named[name]; ok {
				all[i].readings = append(all[i].readings, list...)
				continue
			}
			r := reading{key: name, text: t.Readings[name]}
			if slices.Contains(t.Sought, name) {
				r.excluded = sought
			}
			all[i].readings = append(all[i].readings, r)
		}
	}
	return all
}
