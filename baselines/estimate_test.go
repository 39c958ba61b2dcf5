package baselines

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/stream"
)

// drawCrawl draws what a crawl of the source finds at an age: Poisson items
// with marks of mean 1 times the interest.
func drawCrawl(r *stream.Rand, i int, s env.Source, age int, mark func(*stream.Rand) float64) env.Crawled {
	c := env.Crawled{Source: i, Age: age}
	for a := r.ExpFloat64() / s.Rate; a < float64(age); a += r.ExpFloat64() / s.Rate {
		it := env.Item{Age: a, Interest: s.Interest * mark(r) * math.Exp(-s.Decay*a)}
		c.Items = append(c.Items, it)
		c.Interest += it.Interest
	}
	slices.Reverse(c.Items)
	return c
}

var markLaws = map[string]func(*stream.Rand) float64{
	"constant":    func(*stream.Rand) float64 { return 1 },
	"exponential": func(r *stream.Rand) float64 { return r.ExpFloat64() },
	"lognormal":   func(r *stream.Rand) float64 { return math.Exp(r.NormFloat64() - .5) },
}

func TestEstimatesConverge(t *testing.T) {
	src := []env.Source{
		env.NewSource("often", 20, .7, 1),
		env.NewSource("slow", 5, .05, 3),
		env.NewSource("rare", .5, .3, 10),
		env.NewSource("fast", 8, 2, .1),
	}
	for name, mark := range markLaws {
		for _, given := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " given=", given), func(t *testing.T) {
				r := stream.New(3, stream.Test)
				var s EstimatorSettings
				if given {
					for _, x := range src {
						s.Decay = append(s.Decay, x.Decay)
					}
				}
				e := NewEstimator(len(src), s)
				var worst [2]float64 // after few and many crawls
				for n := 1; n <= 3000; n++ {
					for i, x := range src {
						e.Add(drawCrawl(r, i, x, 1+r.Intn(8), mark))
					}
					e.Fit()
					for k, at := range []int{30, 3000} {
						if n != at {
							continue
						}
						for i, x := range src {
							b, _ := e.Inflow(i)
							worst[k] = max(worst[k], math.Abs(e.Decay(i)/x.Decay-1), math.Abs(b/(x.Rate*x.Interest)-1))
							if s := e.Source(i); math.Abs(s.Rate*s.Interest-b) > 1e-9*b {
								t.Errorf("%s: rate × interest is %v, want the inflow, %v", x.Name, s.Rate*s.Interest, b)
							}
						}
					}
				}
				if worst[1] > .05 || worst[1] >= worst[0] {
					t.Errorf("decay or inflow is off by %.3f after 30 crawls of each source, by %.3f after 3000; want less than .05, and less than before", worst[0], worst[1])
				}
				for i, x := range src {
					if got := e.Source(i).Rate; math.Abs(got/x.Rate-1) > .05 {
						t.Errorf("%s: rate is %v, want %v", x.Name, got, x.Rate)
					}
				}
			})
		}
	}
}

// The errors that are reported are those that are made.
func TestEstimateErrorsAreHonest(t *testing.T) {
	for name, mark := range markLaws {
		if name == "constant" {
			continue // the decay is exact after a few items
		}
		r := stream.New(5, stream.Test)
		var zc, zb, n float64
		for range 60 {
			var src []env.Source
			for range 20 {
				src = append(src, env.NewSource("", 3*math.Exp(.5*r.NormFloat64()), .3*math.Exp(.4*r.NormFloat64()), 1))
			}
			e := NewEstimator(len(src), EstimatorSettings{})
			for range 15 {
				for i, x := range src {
					e.Add(drawCrawl(r, i, x, 1+r.Intn(6), mark))
				}
			}
			for range 50 {
				e.Fit()
			}
			for i, x := range src {
				b, se := e.Inflow(i)
				zb += math.Pow((b-x.Rate*x.Interest)/se, 2)
				zc += math.Pow(math.Log(e.Decay(i)/x.Decay)/e.DecayError(i), 2)
				n++
			}
		}
		for what, z := range map[string]float64{"ln decay": math.Sqrt(zc / n), "inflow": math.Sqrt(zb / n)} {
			if z < .75 || z > 1.35 {
				t.Errorf("%s marks: errors of the %s are %.2f of the standard error; want about 1", name, what, z)
			}
		}
	}
}

// Sources with few crawls lean on the others, as far as these are alike.
func TestEstimatesShrink(t *testing.T) {
	r := stream.New(9, stream.Test)
	like := func(spread float64) (error1, error2 float64) {
		for range 40 {
			e := NewEstimator(40, EstimatorSettings{})
			truth := make([]float64, 40)
			for i := range truth {
				c := .3 * math.Exp(spread*r.NormFloat64())
				truth[i] = c
				e.Add(drawCrawl(r, i, env.NewSource("", 3, c, 1), 4, markLaws["exponential"]))
			}
			for range 200 {
				e.Fit()
			}
			for i, c := range truth {
				alone := .01 // what the source's own regression says, kept positive
				if s := &e.src[i]; s.aa > 0 {
					alone = math.Max(alone, -s.al/s.aa)
				}
				error1 += math.Pow(math.Log(e.Decay(i)/c), 2)
				error2 += math.Pow(math.Log(alone/c), 2)
			}
		}
		return math.Sqrt(error1 / 1600), math.Sqrt(error2 / 1600)
	}
	if with, alone := like(0); with > .3 || with > alone/4 {
		t.Errorf("sources alike: error of ln c is %.3f with the others, %.3f without; want a quarter at most, and below .3", with, alone)
	}
	if with, alone := like(.8); with > alone || with > .85 {
		t.Errorf("sources that differ: error of ln c is %.3f with the others, %.3f without; want less, and hardly more than the .8 by which they differ", with, alone)
	}
}

func TestEstimatesFromHarvestsAlone(t *testing.T) {
	// The mean dynamics, without noise. Sources that are much alike are drawn
	// together a little.
	rapid.Check(t, func(t *rapid.T) {
		src := make([]env.Source, rapid.IntRange(1, 4).Draw(t, "sources"))
		e := NewEstimator(len(src), EstimatorSettings{})
		for i := range src {
			c := math.Exp(rapid.Float64Range(-4, .5).Draw(t, "ln c"))
			src[i] = env.NewSource("", 1, c, math.Exp(rapid.Float64Range(-5, 8).Draw(t, "ln B")))
		}
		for n := range 400 {
			for i, s := range src {
				age := 1 + n*7%11
				e.Add(env.Crawled{Source: i, Age: age, Interest: s.MeanState(age)})
			}
			e.Fit()
		}
		for i, s := range src {
			b, _ := e.Inflow(i)
			if math.Abs(e.Decay(i)/s.Decay-1) > .08 || math.Abs(b/s.Interest-1) > .08 {
				t.Errorf("decay %v and inflow %v, want %v and %v", e.Decay(i), b, s.Decay, s.Interest)
			}
		}
	})
}

func TestEstimatorForgets(t *testing.T) {
	r := stream.New(2, stream.Test)
	old, now := env.NewSource("", 10, .7, 1), env.NewSource("", 10, .2, 4)
	for _, memory := range []float64{0, 100} {
		e := NewEstimator(1, EstimatorSettings{Memory: memory})
		for n := range 1000 {
			s := old
			if n >= 500 {
				s = now
			}
			e.Add(drawCrawl(r, 0, s, 2, markLaws["exponential"]))
			e.Fit()
		}
		b, _ := e.Inflow(0)
		follows := math.Abs(b/40-1) < .2 && math.Abs(e.Decay(0)/.2-1) < .2
		if follows != (memory > 0) {
			t.Errorf("memory %v: decay %.3f and inflow %.2f, 500 crawls after they went from .7 and 10 to .2 and 40", memory, e.Decay(0), b)
		}
	}
	e := NewEstimator(1, EstimatorSettings{Memory: 50})
	for range 5000 {
		e.Add(drawCrawl(r, 0, old, 2, markLaws["constant"]))
	}
	if got, want := e.Crawls(0), 1/(1-math.Exp(-2./50)); math.Abs(got-want) > 1e-6 {
		t.Errorf("crawls that count are %v, want Σ e^(−2k/50) = %v", got, want)
	}
}

// Ages at which nothing of an item is left, and crawls that find nothing, leave
// the estimates finite.
func TestEstimatorExtremes(t *testing.T) {
	for _, given := range [][]float64{nil, {.175}} {
		e := NewEstimator(3, EstimatorSettings{Decay: given})
		r := stream.New(1, stream.Test)
		for n := range 50 {
			e.Add(drawCrawl(r, 0, env.NewSource("", .01, .175, 100), 20000, markLaws["lognormal"]))
			e.Add(env.Crawled{Source: 1, Age: 1 + n})
			e.Fit()
			for i := range 3 {
				b, se := e.Inflow(i)
				if c := e.Decay(i); !(b >= 0) || !(se >= 0) || !(c > 0) || math.IsInf(b+se+c, 0) {
					t.Fatalf("decay given %v, crawl %d, source %d: decay %v, inflow %v ± %v", given, n, i, c, b, se)
				}
			}
		}
	}
	mustPanic(t, func() { NewEstimator(3, EstimatorSettings{Decay: []float64{1, 2}}) })
	mustPanic(t, func() { NewEstimator(1, EstimatorSettings{Decay: []float64{0}}) })
	mustPanic(t, func() { NewEstimator(1, EstimatorSettings{Memory: -1}) })
}

func TestHarvestSlope(t *testing.T) {
	for _, cs := range []float64{1e-12, 1e-4, .1, 1, 5, 50} {
		const h = 1e-6
		f := func(d float64) float64 { return math.Log(-math.Expm1(-cs*math.Exp(d))) - d }
		want := (f(h) - f(-h)) / (2 * h)
		if got := slope(cs); math.Abs(got-want) > 1e-8 {
			t.Errorf("slope at %v is %v, want %v", cs, got, want)
		}
	}
}

// The sensitivity of the inflow to the decay is the derivative of T/E, and
// items weigh by e^(ca) only as far as c is known.
func TestExposure(t *testing.T) {
	const c, b, age = .4, 3.0, 20
	crawl := env.Crawled{Age: age}
	const n = 200000
	for k := range n { // as many items as to be their own mean
		a := age * (float64(k) + .5) / n
		y := b * age / n * math.Exp(-c*a)
		crawl.Items = append(crawl.Items, env.Item{Age: a, Interest: y})
		crawl.Interest += y
	}
	for _, lumps := range []bool{false, true} {
		e := NewEstimator(1, EstimatorSettings{})
		if lumps {
			crawl.Items = nil
		}
		e.Add(crawl)
		s := &e.src[0]
		s.thetaVar = 1e-8
		ratio := func(theta float64) float64 {
			s.theta = theta
			s.expose()
			return s.t / s.e
		}
		const h = 1e-4
		want := (math.Log(ratio(math.Log(c)+h)) - math.Log(ratio(math.Log(c)-h))) / (2 * h)
		if got := ratio(math.Log(c)); math.Abs(got-b) > 1e-3 {
			t.Errorf("lumps %v: inflow is %v, want %v", lumps, got, b)
		}
		if math.Abs(s.slope-want) > 1e-3*math.Abs(want) {
			t.Errorf("lumps %v: ∂ ln B/∂ ln c is %v, want %v", lumps, s.slope, want)
		}
		if lumps {
			continue
		}
		if s.e < .75*age || s.e > age { // less, since g is constant within a bin
			t.Errorf("exposure at a known decay is %v, want nearly the %v epochs elapsed", s.e, age)
		}
		for _, sd := range []float64{.1, .3, 1e6} {
			s.thetaVar = sd * sd
			if got := ratio(math.Log(c)); math.Abs(got-b) > 1e-3 {
				t.Errorf("ln c ± %v: inflow is %v, want %v", sd, got, b)
			}
			if least := crawl.Interest; s.t < least*.999999 || s.t > least*math.Exp(.3/sd) {
				t.Errorf("ln c ± %v: weighted interest is %v, want from %v up to e^(.3/sd) times that", sd, s.t, least)
			}
		}
	}
}
