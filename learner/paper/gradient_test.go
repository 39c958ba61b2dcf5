package paper

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/mat"

	"ephemera/env"
	"ephemera/env/stream"
)

// chain is the Markov chain of a few sources whose states are ages 1 … most: the
// oldest stays where it is. Its stationary distribution, average reward β and
// value V follow from linear equations, so that gradients can be held against
// finite differences of β.
type chain struct {
	p    *Learner
	most int
}

// newChain returns a chain on the first n sources of Table I, with a learner whose
// critic is the exact V.
func newChain(t *testing.T, n, most int, change func(*Settings)) *chain {
	t.Helper()
	in := env.Paper(1)
	in.Sources = in.Sources[:n]
	set := DefaultSettings()
	set.Kappa, set.Reward = .02, "crawled"
	change(&set)
	p, err := New(in, set, stream.New(1))
	if err != nil {
		t.Fatal(err)
	}
	p.kappa = set.Kappa
	return &chain{p: p, most: most}
}

func (c *chain) sources() int { return len(c.p.q) }

func (c *chain) size() int {
	return int(math.Pow(float64(c.most), float64(c.sources())))
}

// state returns X of a state by its number.
func (c *chain) state(k int) []float64 {
	x := make([]float64, c.sources())
	for i := range x {
		x[i] = -c.p.hi[i] * math.Expm1(math.Log(c.p.factor[i])*float64(k%c.most+1))
		k /= c.most
	}
	return x
}

// next returns the state that follows where bit i of crawl says that source i is
// crawled.
func (c *chain) next(k, crawl int) int {
	to, place := 0, 1
	for i := range c.sources() {
		age := k % c.most
		if crawl>>i&1 == 1 {
			age = 0
		} else {
			age = min(age+1, c.most-1)
		}
		to += age * place
		k, place = k/c.most, place*c.most
	}
	return to
}

// each calls f with every action in a state, its probability, and its reward
// beyond the price.
func (c *chain) each(k int, f func(crawl int, p, reward float64)) {
	c.p.takeState(c.state(k))
	for crawl := range 1 << c.sources() {
		p, reward := 1.0, 0.0
		for i, x := range c.p.x {
			if crawl>>i&1 == 1 {
				p *= c.p.f[i]
				reward += x - c.p.price.lambda*c.p.costs[i]
			} else {
				p *= c.p.g[i]
			}
		}
		if c.p.set.Reward == "literal" {
			reward = c.p.sum
		}
		f(crawl, p, reward)
	}
}

// solve returns the stationary distribution, β and V with V(0) = 0 for the
// thresholds of the learner:
//
//	π = πP, Σπ = 1;  β = Σ π(x) r(x);  V(x) = r(x) − β + Σ_y p(y|x) V(y)     (6)
func (c *chain) solve(t *testing.T) (pi []float64, beta float64, v []float64) {
	t.Helper()
	n := c.size()
	a, r := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil) // I − P
	for k := range n {
		a.Set(k, k, a.At(k, k)+1)
		c.each(k, func(crawl int, p, reward float64) {
			to := c.next(k, crawl)
			a.Set(k, to, a.At(k, to)-p)
			r.SetVec(k, r.AtVec(k)+p*reward)
		})
	}
	balance := mat.DenseCopyOf(a.T())
	one := mat.NewVecDense(n, nil)
	for k := range n {
		balance.Set(0, k, 1) // instead of one equation: Σπ = 1
	}
	one.SetVec(0, 1)
	var dist, value mat.VecDense
	if err := dist.SolveVec(balance, one); err != nil {
		t.Fatal(err)
	}
	beta = mat.Dot(&dist, r)
	for k := range n { // V(0) = 0: β takes its column
		a.Set(k, 0, 1)
	}
	if err := value.SolveVec(a, r); err != nil {
		t.Fatal(err)
	}
	if math.Abs(value.AtVec(0)-beta) > 1e-8*math.Abs(beta) {
		t.Fatalf("β is %v by the distribution and %v by the Poisson equation", beta, value.AtVec(0))
	}
	value.SetVec(0, 0)
	return dist.RawVector().Data, beta, value.RawVector().Data
}

// direction returns the mean of what one step of the learner, with a(n) = 1,
// adds to q in the stationary regime, with V exact.
func (c *chain) direction(t *testing.T) [][3]float64 {
	t.Helper()
	pi, _, v := c.solve(t)
	c.p.value = func(x []float64) float64 {
		k, place := 0, 1
		for i := range x {
			age := math.Log1p(-x[i]/c.p.hi[i]) / math.Log(c.p.factor[i])
			k += (min(int(math.Round(age)), c.most) - 1) * place
			place *= c.most
		}
		return v[k]
	}
	q := append([][3]float64(nil), c.p.q...)
	sum := make([][3]float64, len(q))
	for k, weight := range pi {
		c.each(k, func(crawl int, prob, _ float64) {
			for i := range c.p.crawled {
				c.p.crawled[i] = crawl>>i&1 == 1
			}
			next := c.next(k, crawl)
			c.p.ascend(c.state(next), v[next], 1)
			for i := range q {
				for j := range q[i] {
					sum[i][j] += weight * prob * (c.p.q[i][j] - q[i][j])
				}
			}
			copy(c.p.q, q)
		})
	}
	return sum
}

// differences returns finite differences of β by q.
func (c *chain) differences(t *testing.T) [][3]float64 {
	t.Helper()
	grad := make([][3]float64, len(c.p.q))
	for i := range c.p.q {
		for j := range c.p.q[i] {
			was := c.p.q[i][j]
			grad[i][j] = fd.Derivative(func(h float64) float64 {
				c.p.q[i][j] = was + h
				_, beta, _ := c.solve(t)
				return beta
			}, 0, &fd.Settings{Formula: fd.Central, Step: 1e-4 / math.Pow(300, float64(j))})
			c.p.q[i][j] = was
		}
	}
	return grad
}

// TestGradient: (7), "∇β = ∫ π(dx) Σ_y p(y|x) ∇ log p(y|x) V(y)" (Allerton,
// section III), is the gradient for the reward Σ Xᵢ of (6), and not for the
// reward of the crawls, where its sign can be wrong. What replaces it is.
func TestGradient(t *testing.T) {
	for _, c := range []struct {
		reward, gradient string
		want             float64
	}{
		{"literal", "sampled", math.NaN()}, {"literal", "expected", math.NaN()},
		{"crawled", "sampled", .563}, {"crawled", "expected", -.357},
	} {
		ch := newChain(t, 1, 40, func(s *Settings) { s.Reward, s.Gradient = c.reward, c.gradient })
		ch.p.q[0] = [3]float64{250}
		got, fd := ch.direction(t)[0][0], ch.differences(t)[0][0]
		if agrees := math.Abs(got-fd) < 1e-6; agrees != (c.reward == "literal" || c.gradient == "expected") {
			t.Errorf("%s reward, %s: %.4f; finite differences of β give %.4f", c.reward, c.gradient, got, fd)
		}
		if math.Abs(got-c.want) > 5e-4 {
			t.Errorf("%s reward, %s: %.4f, want %.3f", c.reward, c.gradient, got, c.want)
		}
	}
}

// TestJointGradient: the same for two sources with thresholds that depend on each
// other's state, and for all coordinates of q: with the printed margin and the
// others, with a price and without.
func TestJointGradient(t *testing.T) {
	for _, margin := range []string{"state", "unit", "age"} {
		for _, lambda := range []float64{0, 60} {
			for _, reward := range []string{"literal", "crawled"} {
				if reward == "literal" && lambda > 0 {
					continue
				}
				for _, gradient := range []string{"sampled", "expected"} {
					name := fmt.Sprintf("%s margin, λ = %v, %s reward, %s", margin, lambda, reward, gradient)
					ch := newChain(t, 2, 9, func(s *Settings) {
						s.Margin, s.Reward, s.Gradient = margin, reward, gradient
						if margin != "state" {
							s.Kappa, s.Shift = 2, .1
						}
					})
					ch.p.price.lambda = lambda
					ch.p.q[0] = [3]float64{260, -.1, 1e-4}
					ch.p.q[1] = [3]float64{300, .2, -1e-4}
					got, want := ch.direction(t), ch.differences(t)
					worst := 0.0
					for i := range got {
						for j := range got[i] {
							scale := 1e-3*math.Pow(300, float64(j)) + math.Abs(want[i][j])
							worst = math.Max(worst, math.Abs(got[i][j]-want[i][j])/scale)
						}
					}
					if right := reward == "literal" || gradient == "expected"; right != (worst < 1e-3) {
						t.Errorf("%s: %.5v; finite differences of β give %.5v", name, got, want)
					}
				}
			}
		}
	}
}

// TestRelative: the step without a unit has the sign of the gradient, and is 0
// with it: where a crawl pays as much as none, which is the Whittle condition.
func TestRelative(t *testing.T) {
	for _, margin := range []string{"unit", "age"} {
		var last float64
		for _, threshold := range []float64{182, 210, 240, 270, 300, 330, 350} {
			at := func(gradient string) float64 {
				ch := newChain(t, 1, 40, func(s *Settings) {
					s.Margin, s.Gradient, s.Kappa, s.Shift = margin, gradient, 30, 0
				})
				ch.p.price.lambda = 105
				ch.p.q[0] = [3]float64{threshold}
				return ch.direction(t)[0][0]
			}
			step, grad := at("relative"), at("expected")
			if math.Abs(grad) > .02 && step*grad <= 0 {
				t.Errorf("%s margin, T = %v: step %.4f against a gradient of %.4f", margin, threshold, step, grad)
			}
			last = step
		}
		if last >= 0 {
			t.Errorf("%s margin: at T = 350 the threshold still rises", margin)
		}
	}
}

// TestAlways: with T projected on [u, u*] the printed logit cannot say "always":
// at x = T = u it is below ½. The margin in ages can.
func TestAlways(t *testing.T) {
	for _, tt := range []struct {
		name string
		want bool
	}{{"printed", false}, {"price", false}, {"ages", true}} {
		var set Settings
		if err := set.SetReading(tt.name); err != nil {
			t.Fatal(err)
		}
		p, err := New(env.Paper(1), set, stream.New(1))
		if err != nil {
			t.Fatal(err)
		}
		x := append([]float64(nil), p.lo...)
		for i := range p.q {
			p.q[i] = [3]float64{p.lo[i]}
		}
		p.kappa = set.KappaMax
		p.takeState(x)
		for i, f := range p.f {
			if f > .99 != tt.want {
				t.Errorf("%s: source %d at T = x = u is crawled with probability %v; want above .99: %v",
					tt.name, i+1, f, tt.want)
			}
		}
	}
}
