package env

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

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
	drawLaw
	drawBatch
	drawWindowed
	drawShuffle
	drawDrift
	drawRecall
	drawNoise
	drawHost
	drawFails
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
		math.Exp(rand.New(draw(drawRate)).NormFloat64()+math.Log(50)),
		uniform(draw(drawDecay), 0.05, 1.05),
		math.Exp(rand.New(draw(drawInterest)).NormFloat64()))
}

func uniform(r rand.Source, low, high float64) float64 {
	return rand.New(r).Float64()*(high-low) + low
}

// gamma draws from the gamma distribution with shape k ≥ 1 and scale 1
// (Marsaglia and Tsang, ACM TOMS 26, 2000).
func gamma(src rand.Source, k float64) float64 {
	r := rand.New(src)
	d := k - 1./3
	c := 1 / (3 * math.Sqrt(d))
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		if math.Log(r.Float64()) < x*x/2+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
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
			math.Exp(rand.New(draw(drawRate)).ExpFloat64()/1.3),
			math.Exp(uniform(draw(drawDecay), math.Log(0.01), math.Log(3))),
			gamma(draw(drawInterest), 2)/2)
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
		s.Cost = uniform(draw(drawCost), 0.5, 3)
		s.Window = uniform(draw(drawWindow), 2, 50)
		return s
	})
}

// Quiet returns the sources of [Lognormal] under the same seed with the rate
//
//	rate λ = .1 e^Z′
//
// so that half of them publish less than one item in ten epochs, as feeds and blogs
// do by the hour. It panics unless n ≥ 1.
func Quiet(n int, budget float64, seed uint64) Instance {
	return family("quiet", n, budget, seed, func(draw drawer) Source {
		s := lognormal(draw)
		s.Rate *= .1 / 50
		return s
	})
}

// Drift returns the sources of [Lognormal] under the same seed, in a world that
// changes: at each of the epochs 1000, 2000, …, 9000 every source has one chance
// in ten to draw its rate, decay and interest anew from the same distributions.
// It panics unless n ≥ 1.
func Drift(n int, budget float64, seed uint64) Instance {
	in := Lognormal(n, budget, seed)
	in.ID = fmt.Sprintf("drift/%d/%d", n, seed)
	for at := 1000; at < 10_000; at += 1000 {
		c := Change{At: at}
		for i := range in.Sources {
			r := stream.New(seed, stream.Family, drawDrift, uint64(at), uint64(i))
			if r.Float64() < 0.1 {
				s := lognormal(func(uint64) *stream.Rand { return r })
				s.Name = in.Sources[i].Name
				c.Sources = append(c.Sources, s)
			}
		}
		if len(c.Sources) > 0 {
			in.Changes = append(in.Changes, c)
		}
	}
	return in
}

// Hosts returns the sources of [Lognormal] under the same seed at ⌈n/5⌉ hosts, of which an
// epoch has room for one crawl each:
//
//	host  number ⌈n/5⌉ V², rounded down, V uniform on [0, 1]: the first has most sources
//	fails the chance that a crawl of a host fails, uniform on [0, .95]
//
// It panics unless n ≥ 1.
func Hosts(n int, budget float64, seed uint64) Instance {
	hosts := (n + 4) / 5
	in := family("hosts", n, budget, seed, func(draw drawer) Source {
		s := lognormal(draw)
		v := rand.New(draw(drawHost)).Float64()
		host := int(float64(hosts) * v * v)
		s.Host = strconv.Itoa(host + 1)
		s.Fails = uniform(stream.New(seed, stream.Family, drawFails, uint64(host)), 0, maxFails)
		return s
	})
	in.PerHost = 1
	return in
}

// medianChange is after how many epochs a page changes, in the median.
const medianChange = 20

// pages returns n random pages whose crawls cost 1, for world pages:
//
//	change      Δ = e^Z/20, once in 20 epochs in the median
//	importance  μ = e^Z′   with Z, Z′ standard normal and the correlation ρ
//
// where ρ is 0, and in the family pages-correlated .8: what is important changes often. The
// pages of pages-pinged are those of pages, and send pings:
//
//	recall  r uniform on [.3, .9]
//	false   f = Δ·V, V uniform on [.1, 1]
func pages(name string, rho float64, pinged bool) func(n int, budget float64, seed uint64) Instance {
	return func(n int, budget float64, seed uint64) Instance {
		in := family(name, n, budget, seed, func(draw drawer) Source {
			z, other := rand.New(draw(drawDecay)).NormFloat64(), rand.New(draw(drawInterest)).NormFloat64()
			s := NewPage("", math.Exp(z)/medianChange, math.Exp(rho*z+math.Sqrt(1-rho*rho)*other))
			if pinged {
				s.Recall = uniform(draw(drawRecall), .3, .9)
				s.False = s.Decay * uniform(draw(drawNoise), .1, 1)
			}
			return s
		})
		return in.Pages()
	}
}

// drawer returns the stream of one parameter.
type drawer func(parameter uint64) *stream.Rand

func drawers(seed uint64) drawer {
	streams := [drawFails + 1]*stream.Rand{}
	for p := range streams {
		streams[p] = stream.New(seed, stream.Family, uint64(p))
	}
	return func(p uint64) *stream.Rand { return streams[p] }
}

func family(name string, n int, budget float64, seed uint64, source func(drawer) Source) Instance {
	if n < 1 {
		panic(fmt.Sprintf("env: %s instance of %d sources; allowed is 1 or more", name, n))
	}
	draw := drawers(seed)
	in := Instance{ID: fmt.Sprintf("%s/%d/%d", name, n, seed), Sources: make([]Source, n), Budget: budget}
	for i := range in.Sources {
		in.Sources[i] = source(draw)
		in.Sources[i].Name = strconv.Itoa(i + 1)
	}
	return in
}

// variants are what WithLaw makes of a source: one for each law, and mixes of them.
var variants = func() map[string]func(s *Source, draw drawer) {
	all := map[string]func(s *Source, draw drawer){
		"window":  func(s *Source, _ drawer) { s.Window = 2 / s.Decay },
		"batches": func(s *Source, _ drawer) { s.Batch = 20 },
		"mixture": func(s *Source, draw drawer) {
			s.setLaw([]Law{LawExponential, LawPower, LawHump}[draw(drawLaw).Intn(3)])
			s.Batch = []int{1, 20}[draw(drawBatch).Intn(2)]
			if draw(drawWindowed).Intn(2) == 1 {
				s.Window = 2 / s.Decay
			}
		},
	}
	for _, law := range Laws() {
		all[string(law)] = func(s *Source, _ drawer) { s.setLaw(law) }
	}
	return all
}()

// setLaw gives a source another law, without what only the law before could have.
func (s *Source) setLaw(law Law) {
	if law != s.law().name {
		s.Shape, s.Recall, s.False = 0, 0, 0
	}
	if s.Law = law; s.Unbounded() {
		s.Window = math.Inf(1)
	}
}

// CheckLaw reports a law that [Instance.WithLaw] does not know.
func CheckLaw(law string) error {
	if variants[law] == nil {
		return fmt.Errorf("law is %q; allowed are %s", law, LawsAllowed("and"))
	}
	return nil
}

// WithLaw returns the instance with another law of interest for all sources:
//
//	one of [Laws]              that law, in its usual shape if the source has another law;
//	                           without a window where items cost ever more
//	window                     items are dropped at age 2/c
//	batches                    items arrive in batches of 20
//	mixture                    one of the three laws, and each with a chance of one
//	                           half batches of 20 and a window of 2/c; drawn from
//	                           the seed for each source
//
// The objective freshness goes with the law of pages. The ID is that of the instance and the
// law. It panics if the law is unknown.
func (in Instance) WithLaw(law string, seed uint64) Instance {
	variant := variants[law]
	if variant == nil {
		panic(fmt.Sprintf("env: unknown law %q", law))
	}
	draw := drawers(seed)
	in.ID += "/" + law
	changed := func(sources []Source) []Source {
		sources = slices.Clone(sources)
		for i := range sources {
			variant(&sources[i], draw)
		}
		return sources
	}
	in.Sources, in.Changes = changed(in.Sources), slices.Clone(in.Changes)
	for k := range in.Changes {
		in.Changes[k].Sources = changed(in.Changes[k].Sources)
	}
	if slices.ContainsFunc(in.Sources, func(s Source) bool { return s.Law != in.Objective.Law }) {
		in.Objective = Objective{} // the aim is that of pages
	}
	return in
}

// families are the random instances that Named knows.
var families = map[string]func(n int, budget float64, seed uint64) Instance{
	"lognormal": Lognormal,
	"wide":      Wide,
	"mixed":     Mixed,
	"quiet":     Quiet,
	"drift":     Drift,
	"hosts":     Hosts,

	"pages":            pages("pages", 0, false),
	"pages-correlated": pages("pages-correlated", .8, false),
	"pages-pinged":     pages("pages-pinged", 0, true),
}

// RegisterFamily adds a family of random instances of one's own to what Named
// knows. Equal numbers, budgets and seeds give equal instances. It panics if there is
// one of that name, and is called before anything is run.
func RegisterFamily(name string, build func(n int, budget float64, seed uint64) Instance) {
	if families[name] != nil {
		panic(fmt.Sprintf("env: family %q is there already", name))
	}
	families[name] = build
}

// Families returns the names of the families of random instances, sorted.
func Families() []string { return slices.Sorted(maps.Keys(families)) }

// maxNamed bounds the number of sources that a name may ask for.
const maxNamed = 10_000_000

func namedAllowed() string {
	return fmt.Sprintf("allowed are paper, FAMILY:N[:SEED] with the families %s, "+
		"either with :LAW at its end, and the path of a .toml file",
		strings.Join(Families(), ", "))
}

// Named returns the instance of that name:
//
//	paper             Table I
//	FAMILY:N[:SEED]   lognormal, wide, mixed, quiet, drift or hosts of N sources, see [Lognormal],
//	                  [Wide], [Mixed], [Quiet], [Drift] and [Hosts]; the seed is 1 if it is left out
//	NAME:LAW          one of these with another law of interest, see
//	                  [Instance.WithLaw]
//	FILE.toml         an instance file, see [Load]
//
// An instance's ID, such as lognormal/50/7, is understood as well. Budget 0
// stands for the instance's own budget: that of the file, and for the others 1, or what
// a crawl may cost at least and all together at most. The instance is valid; the error says what is allowed.
func Named(name string, budget float64) (Instance, error) {
	in, err := named(name)
	if err != nil {
		return Instance{}, err
	}
	if budget != 0 {
		in.Budget = budget
	}
	return in, in.Validate()
}

// FileOf returns the path of the instance file that a name of [Named] names, with a law or
// without; "" where it names none.
func FileOf(name string) string {
	base, _ := cutLaw(name)
	if strings.HasSuffix(base, ".toml") {
		return base
	}
	return ""
}

// cutLaw cuts the law off a name.
func cutLaw(name string) (base, law string) {
	if at := strings.LastIndexAny(name, ":/"); at > 0 && variants[name[at+1:]] != nil {
		return name[:at], name[at+1:]
	}
	return name, ""
}

func named(name string) (Instance, error) {
	base, law := cutLaw(name)
	parts := strings.Split(strings.ReplaceAll(base, "/", ":"), ":")
	in, seed := Paper(1), uint64(1)
	if file := FileOf(name); file != "" {
		var err error
		if in, err = Load(file); err != nil {
			return Instance{}, err
		}
	} else if build := families[parts[0]]; build != nil && (len(parts) == 2 || len(parts) == 3) {
		n, err := strconv.Atoi(parts[1])
		if err != nil || n < 1 || n > maxNamed {
			return Instance{}, fmt.Errorf("instance %q: number of sources is %q; allowed are 1 to %d; %s",
				name, parts[1], maxNamed, namedAllowed())
		}
		if len(parts) == 3 {
			if seed, err = strconv.ParseUint(parts[2], 10, 64); err != nil {
				return Instance{}, fmt.Errorf(
					"instance %q: %q is neither a seed, a whole number of 0 or more, nor a law; allowed laws are %s",
					name, parts[2], LawsAllowed("and"))
			}
		}
		in = build(n, 1, seed)
		in.Budget = math.Min(math.Max(1, in.Cheapest()), in.TotalCost()) // all crawls may cost more than 1, or less
	} else if len(parts) > 1 || parts[0] != "paper" {
		return Instance{}, fmt.Errorf("unknown instance %q; %s; allowed laws are %s",
			name, namedAllowed(), LawsAllowed("and"))
	}
	if law != "" {
		in = in.WithLaw(law, seed)
	}
	return in, nil
}
