package baselines

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// somePages are pages that change seldom and often, with pings and without.
func somePages() env.Instance {
	in := env.Instance{ID: "pages", Budget: 4}
	for i := range 20 {
		s := env.NewPage(fmt.Sprint(i), .004*math.Pow(1.4, float64(i)), 1+float64(i%4))
		s.Cost = 1 + .5*float64(i%2)
		if i%3 == 0 {
			s.Recall, s.False = .3+.1*float64(i%7), .2*s.Decay
		}
		in.Sources = append(in.Sources, s)
	}
	return in.Pages()
}

func TestFreshnessPoliciesKeepTheContract(t *testing.T) {
	in := somePages()
	for _, c := range []struct {
		name      string
		newPolicy func() env.Policy[env.Model]
	}{
		{"greedy-ncis", func() env.Policy[env.Model] { return NewGreedyNCIS(in) }},
		{"lambdacrawl", func() env.Policy[env.Model] { return NewLambdaCrawl(in) }},
	} {
		t.Run(c.name, func(t *testing.T) { envtest.Policy(t, in, c.newPolicy) })
	}
	for _, e := range ChangeEstimators() {
		for _, c := range []struct {
			name  string
			build func() (env.Policy[env.Online], error)
		}{
			{"explore-then-commit", func() (env.Policy[env.Online], error) {
				return NewExploreThenCommit(in.Terms(), ExploreThenCommit{e, 3})
			}},
			{"lambdacrawl-learned", func() (env.Policy[env.Online], error) {
				return NewLearnedLambdaCrawl(in.Terms(), e)
			}},
			{"whittle", func() (env.Policy[env.Online], error) { return NewEstimatedWhittle(in.Terms(), e) }},
		} {
			t.Run(c.name+"/"+e.Estimator, func(t *testing.T) {
				envtest.Policy(t, in, func() env.Policy[env.Online] {
					p, err := c.build()
					if err != nil {
						t.Fatal(err)
					}
					return p
				})
			})
		}
	}
}

// TestRatesOfPages: the rates of a rule cost the budget, and at no other rates that do is the
// paper's objective greater.
func TestRatesOfPages(t *testing.T) {
	in := somePages()
	terms, change := in.Terms(), changesOf(in)
	for _, tt := range []struct {
		name  string
		rule  rateRule
		value func(mu, delta, rho float64) float64
	}{
		{"azar", azar, func(mu, delta, rho float64) float64 { return mu * rho / (rho + delta) }},
		{"lambdacrawl", lambdaCrawl, func(mu, delta, rho float64) float64 { return mu * math.Log(rho/(rho+delta)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rate := solveRates(tt.rule, change, terms)
			var cost float64
			for i, r := range rate {
				cost += terms.Costs[i] * r
			}
			if math.Abs(cost-terms.Budget) > 1e-6*terms.Budget {
				t.Errorf("the rates cost %v; the budget is %v", cost, terms.Budget)
			}
			for i := range rate {
				for j := range rate {
					d := 1e-4 * rate[i] // moves from i to j
					if rate[i] == 0 || i == j {
						continue
					}
					more := d * terms.Costs[i] / terms.Costs[j]
					mi, mj := terms.Importance[i], terms.Importance[j]
					gain := tt.value(mj, change[j], rate[j]+more) - tt.value(mj, change[j], rate[j]) +
						tt.value(mi, change[i], rate[i]-d) - tt.value(mi, change[i], rate[i])
					if gain > 1e-9 {
						t.Errorf("crawls of page %d are worth %v more at page %d", i, gain, j)
					}
				}
			}
		})
	}
}

// TestLambdaCrawlOfItsAuthors: the rates are those that LambdaCrawl_IncomplObs gives in the
// program of the paper's authors (microsoft/Optimal-Freshness-Crawl-Scheduling).
func TestLambdaCrawlOfItsAuthors(t *testing.T) {
	terms := env.Terms{Costs: []float64{1, 1, 1, 1}, Importance: []float64{1, 2, 5, 1}}
	change := []float64{.1, 1, 3, .001}
	for _, tt := range []struct {
		budget float64
		want   []float64
	}{
		{2, []float64{0.1515743641311979, 0.5063023827348989, 1.3230893788958427, 0.019033874238075957}},
		{1, []float64{0.08534072984434933, 0.25255714938868457, 0.650015575111067, 0.012086545655898263}},
	} {
		terms.Budget = tt.budget
		for i, got := range solveRates(lambdaCrawl, change, terms) {
			if math.Abs(got-tt.want[i]) > 1e-9*tt.want[i] {
				t.Errorf("budget %v, page %d: %v crawls per epoch; want %v", tt.budget, i, got, tt.want[i])
			}
		}
	}
}

// TestChangeEstimators: at cycles of one length, and at random ones, each estimator comes to the
// rate of change of which its source says that it does; the naive ratio to what is seen.
func TestChangeEstimators(t *testing.T) {
	const delta, n = .1, 40_000
	r := stream.New(4, stream.Test)
	random := func() int { return 1 + int(r.ExpFloat64()*12) }
	fixed := func() int { return 8 }
	for _, tt := range []struct {
		name string
		age  func() int
		want float64
		by   float64
	}{
		{"cho", fixed, delta, .03},
		{"lln", random, delta, .06}, // crawls at random times, in whole epochs
		{"mle", fixed, delta, .03},
		{"mle", random, delta, .03},
		{"naive", fixed, -math.Expm1(-delta*8) / 8, .03},
		{"sa", random, delta, .12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var p pageBits
			for range n {
				s := tt.age()
				p.add(env.Crawled{Age: s, Changed: r.Float64() < -math.Expm1(-delta*float64(s))})
			}
			if got := changeRates[tt.name](&p); math.Abs(got-tt.want) > tt.by*tt.want {
				t.Errorf("rate of change %v; want %v", got, tt.want)
			}
		})
	}
	c := ChangeRates{"guess"}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "allowed are cho, lln, mle, naive, sa") {
		t.Errorf("error %v", err)
	}
}

// TestCrawlValue: the value of a crawl is that of cycles which end when age and pings make ι
// epochs, as they are drawn, and without pings it is Whittle's index.
func TestCrawlValue(t *testing.T) {
	r := stream.New(5, stream.Test)
	for _, tt := range []struct{ change, recall, noise, iota float64 }{
		{.05, .6, .03, 15}, {.05, .6, .03, 60}, {.2, .9, .02, 4}, {.2, .3, .2, 9}, {1, .5, 0, 2},
		{.05, .5, .5, 150}, {.01, .3, 2, 100}, // many false pings
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			s := env.NewPage("", tt.change, 2)
			s.Recall, s.False = tt.recall, tt.noise
			alpha, gamma := (1-tt.recall)*tt.change, tt.recall*tt.change+tt.noise
			v := newCrawlValue(s)
			var fresh, length, square float64
			const n = 200_000
			for range n {
				// Of the first false ping, seen change and unseen change.
				var at, f float64
				stale := false
				for eff := 0.; eff < tt.iota; {
					gap := r.ExpFloat64() / gamma
					end := min(gap, tt.iota-eff)
					if lives := r.ExpFloat64() / alpha; !stale {
						f += min(lives, end)
						stale = lives < end
					}
					at += end
					if eff += end; end == gap {
						eff += v.ping
						stale = stale || r.Float64() < tt.recall*tt.change/gamma
					}
				}
				x := 2 * (f - math.Exp(-alpha*tt.iota)*at)
				fresh, length, square = fresh+x/n, length+at/n, square+x*x/n
			}
			if got := v.exact(s, alpha, gamma, tt.iota); math.Abs(got-fresh) > 5*math.Sqrt(square/n) {
				t.Errorf("value %v; of cycles that were drawn %v", got, fresh)
			}
			if got, want := v.at(tt.iota), v.exact(s, alpha, gamma, tt.iota); math.Abs(got-want) > .01*want {
				t.Errorf("in the table it is %v; exactly %v", got, want)
			}
		})
	}
	// Whole epochs are many where little changes in one.
	s := env.NewPage("", .002, 3)
	v := newCrawlValue(s)
	for _, age := range []float64{100, 900} {
		if got, want := v.at(age), index.Page(.002, 3, age); math.Abs(got-want) > .02*want+1e-3 {
			t.Errorf("age %v: value %v; Whittle's index is %v", age, got, want)
		}
	}
}
