package estimate

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/optimize"
	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/stream"
)

// TestModeOfPage: what a page is thought to be is the mode of its posterior, with every cycle
// of its bin at the mean, as a maximiser finds it that knows nothing of the equations.
func TestModeOfPage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := NewPages(1, 0)
		e.RateLaw = normal{rapid.Float64Range(-6, 1).Draw(t, "mean"), rapid.Float64Range(.05, 4).Draw(t, "variance")}
		pinged := rapid.Bool().Draw(t, "pinged")
		for range rapid.IntRange(1, 30).Draw(t, "crawls") {
			if pinged {
				e.Pages[0].Pings = rapid.IntRange(0, 5).Draw(t, "pings")
			}
			e.Add(env.Crawled{
				Age: rapid.IntRange(1, 300).Draw(t, "age"), Changed: rapid.Bool().Draw(t, "changed"),
			})
		}
		p := &e.Pages[0]
		for range 50 { // in turn, which takes some turns from one mode to the next
			e.step(p)
		}
		minus := func(x []float64) float64 { // −ln of the posterior
			u, q := math.Exp(x[0]), 0.
			law := e.rateLaw(p)
			d := x[0] - law.Mean
			sum := -u*p.Same - d*d/law.Var/2
			if p.pinged() {
				q = math.Exp(x[1])
				d := x[1] - e.TrustLaw.Mean
				sum += -q*p.Quiet - d*d/e.TrustLaw.Var/2
			}
			for _, c := range p.Changed {
				sum += c.N * math.Log(-math.Expm1(-(u*c.Epochs+q*c.Pings)/c.N))
			}
			return -sum
		}
		at := []float64{p.Rate, p.Trust}
		for k, slope := range fd.Gradient(nil, minus, at, nil) {
			if math.Abs(slope) > 1e-3 {
				t.Fatalf("at %v the posterior still rises, by %v along %d", at, slope, k)
			}
		}
		problem := optimize.Problem{Func: minus}
		best, err := optimize.Minimize(problem, []float64{e.RateLaw.Mean, e.TrustLaw.Mean}, nil, &optimize.NelderMead{})
		if err == nil && best.F < minus(at)-1e-3 {
			t.Fatalf("the mode is at %v, %v above that at %v", best.X, minus(at)-best.F, at)
		}
	})
}

// TestLawsOfPages: the laws of all pages and what pings are worth are found from bits.
func TestLawsOfPages(t *testing.T) {
	r := stream.New(3, stream.Test)
	const n, recall, false_ = 300, .6, .4 // pings that tell nothing, as a share of the changes
	e := NewPages(n, 0)
	rate := make([]float64, n)
	for i := range rate {
		rate[i] = math.Exp(-3 + .8*r.NormFloat64())
	}
	poisson := func(mean float64) (k int) {
		for at := r.ExpFloat64(); at < mean; at += r.ExpFloat64() {
			k++
		}
		return k
	}
	for epoch := range 12000 {
		i := r.Intn(n)
		age := 1 + r.Intn(40)
		changes := poisson(rate[i] * float64(age))
		for range changes {
			if r.Float64() < recall {
				e.Ping(i)
			}
		}
		for range poisson(false_ * rate[i] * float64(age)) {
			e.Ping(i)
		}
		e.Add(env.Crawled{Source: i, Age: age, Changed: changes > 0})
		e.Fit(epoch)
	}
	mean, of := 0., e.Page
	for i := range rate {
		mean += math.Log(of(i).Changes/rate[i]) / n
	}
	if math.Abs(mean) > .1 {
		t.Errorf("in the mean of the logarithm the rates are off by %.2f", mean)
	}
	if u := e.RateLaw.Mean; math.Abs(u-(-3+math.Log(1-recall))) > .3 || math.Abs(e.RateLaw.Var-.64) > .3 {
		t.Errorf("unseen rates are thought to be of the law %+v", e.RateLaw)
	}
	if p := -math.Expm1(-math.Exp(e.TrustLaw.Mean)); math.Abs(p-recall/(recall+false_)) > .08 {
		t.Errorf("a ping is thought to tell of a change with the probability %.2f; it is %.2f",
			p, recall/(recall+false_))
	}
}

// TestRescale: the cycles of a page count for as much in epochs of another length.
func TestRescale(t *testing.T) {
	long, short := NewPages(1, 0), NewPages(1, 0)
	short.RateLaw.Mean = long.RateLaw.Mean - math.Log(4)
	short.Open(0)
	for range 40 {
		for _, c := range []env.Crawled{{Age: 2}, {Age: 3, Changed: true}, {Age: 8, Changed: true}} {
			long.Ping(0)
			long.Add(c)
			c.Age *= 4
			short.Ping(0)
			short.Add(c)
		}
	}
	long.Rescale(0, 4)
	got, want := long.Pages[0], short.Pages[0]
	if d := math.Abs(got.Rate - want.Rate); d > 1e-4 {
		t.Errorf("the rate is %v of what it is in short epochs", math.Exp(d))
	}
	sums := func(p page) string {
		text := fmt.Sprintf("%.6g", []float64{p.Same, p.Quiet})
		for _, c := range p.Changed {
			text += fmt.Sprintf(" %d %d %.6g", c.Log, c.Class, []float64{c.N, c.Epochs, c.Pings})
		}
		return text
	}
	if sums(got) != sums(want) {
		t.Errorf("after Rescale the page has the cycles\n%s, want\n%s", sums(got), sums(want))
	}
}
