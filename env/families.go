package env

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/env/stream"
)

// Every parameter of a family has a stream of its own, so that a larger
// instance of the same seed begins with the sources of a smaller one.
const (
	drawInterest uint64 = iota
	drawRate
	drawDecay
	drawCost
	drawWindow
)

// Lognormal returns n random sources without windows whose crawls cost 1:
//
//	interest ξ̄ = e^Z, rate λ = 50 e^Z′   with Z, Z′ standard normal
//	decay    c uniform on [.05, 1.05]
//
// Most of the interest comes from a handful of sources, and the content of
// each lasts between an epoch and a score of them. It panics unless n ≥ 1.
func Lognormal(n int, budget float64, seed uint64) Instance {
	return family("lognormal", n, budget, seed, lognormal)
}

func lognormal(draw drawer) Source {
	return NewSource("",
		distuv.LogNormal{Mu: math.Log(50), Sigma: 1, Src: draw(drawRate)}.Rand(),
		distuv.Uniform{Min: 0.05, Max: 1.05, Src: draw(drawDecay)}.Rand(),
		distuv.LogNormal{Mu: 0, Sigma: 1, Src: draw(drawInterest)}.Rand())
}

// Wide returns n random sources without windows whose crawls cost 1, with
// parameters that spread over orders of magnitude:
//
//	rate     λ Pareto, P(λ > r) = r^−1.3 for r ≥ 1: the mean is 4.3, the variance infinite
//	decay    log c uniform on [log .01, log 3]
//	interest ξ̄ gamma with shape 2 and scale ½: the mean is 1, the variance ½
//
// It panics unless n ≥ 1.
func Wide(n int, budget float64, seed uint64) Instance {
	return family("wide", n, budget, seed, func(draw drawer) Source {
		return NewSource("",
			distuv.Pareto{Xm: 1, Alpha: 1.3, Src: draw(drawRate)}.Rand(),
			math.Exp(distuv.Uniform{Min: math.Log(0.01), Max: math.Log(3), Src: draw(drawDecay)}.Rand()),
			distuv.Gamma{Alpha: 2, Beta: 2, Src: draw(drawInterest)}.Rand())
	})
}

// Mixed returns the sources of [Lognormal] under the same seed with
//
//	cost   C uniform on [.5, 3]
//	window M uniform on [2, 50], a real number of epochs
//
// It panics unless n ≥ 1.
func Mixed(n int, budget float64, seed uint64) Instance {
	return family("mixed", n, budget, seed, func(draw drawer) Source {
		s := lognormal(draw)
		s.Cost = distuv.Uniform{Min: 0.5, Max: 3, Src: draw(drawCost)}.Rand()
		s.Window = distuv.Uniform{Min: 2, Max: 50, Src: draw(drawWindow)}.Rand()
		return s
	})
}

// drawer returns the stream of one parameter.
type drawer func(parameter uint64) *stream.Rand

func family(name string, n int, budget float64, seed uint64, source func(drawer) Source) Instance {
	if n < 1 {
		panic(fmt.Sprintf("env: %s instance of %d sources; allowed is 1 or more", name, n))
	}
	streams := [drawWindow + 1]*stream.Rand{}
	for p := range streams {
		streams[p] = stream.New(seed, stream.Family, uint64(p))
	}
	draw := func(p uint64) *stream.Rand { return streams[p] }
	in := Instance{ID: fmt.Sprintf("%s/%d/%d", name, n, seed), Sources: make([]Source, n), Budget: budget}
	for i := range in.Sources {
		in.Sources[i] = source(draw)
		in.Sources[i].Name = strconv.Itoa(i + 1)
	}
	return in
}

// families are the random instances that Named knows.
var families = map[string]func(n int, budget float64, seed uint64) Instance{
	"lognormal": Lognormal,
	"wide":      Wide,
	"mixed":     Mixed,
}

// maxNamed bounds the number of sources that a name may ask for.
const maxNamed = 10_000_000

const namedAllowed = "allowed are paper, lognormal:N[:SEED], wide:N[:SEED], mixed:N[:SEED] and the path of a .toml file"

// Named returns the instance of that name:
//
//	paper               Table I
//	lognormal:N[:SEED]  Lognormal of N sources; the seed is 1 if it is left out
//	wide:N[:SEED]       Wide
//	mixed:N[:SEED]      Mixed
//	FILE.toml           an instance file, see Load
//
// An instance's ID, such as lognormal/50/7, is understood as well. Budget 0
// stands for the instance's own budget: that of the file, and 1 for the
// others. The instance is valid; the error says what is allowed.
func Named(name string, budget float64) (Instance, error) {
	var in Instance
	kind, rest, parts := strings.Cut(name, ":")
	if !parts {
		kind, rest, parts = strings.Cut(name, "/")
	}
	build := families[kind]
	switch {
	case name == "paper":
		in = Paper(1)
	case strings.HasSuffix(name, ".toml"):
		var err error
		if in, err = Load(name); err != nil {
			return Instance{}, err
		}
	case build != nil && parts:
		count, tail, seeded := strings.Cut(strings.ReplaceAll(rest, "/", ":"), ":")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > maxNamed {
			return Instance{}, fmt.Errorf("instance %q: number of sources is %q; allowed are 1 to %d; %s", name, count, maxNamed, namedAllowed)
		}
		seed := uint64(1)
		if seeded {
			if seed, err = strconv.ParseUint(tail, 10, 64); err != nil {
				return Instance{}, fmt.Errorf("instance %q: seed is %q; allowed is a whole number, 0 or more; %s", name, tail, namedAllowed)
			}
		}
		in = build(n, 1, seed)
		if budget == 0 {
			in.Budget = math.Max(1, cheapest(in)) // a crawl may cost more than 1
		}
	default:
		return Instance{}, fmt.Errorf("unknown instance %q; %s", name, namedAllowed)
	}
	if budget != 0 {
		in.Budget = budget
	}
	return in, in.Validate()
}

// cheapest returns the least cost of a crawl.
func cheapest(in Instance) float64 {
	least := math.Inf(1)
	for _, s := range in.Sources {
		least = math.Min(least, s.Cost)
	}
	return least
}
