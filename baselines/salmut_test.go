package baselines

import (
	"math"
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// The threshold converges to the optimal one: Roy, Borkar,
// Karandikar and Chaporkar (2019). At a fixed price the optimal age is
// argmax (x(s) − λC)/s, and a threshold in (s − 1, s] is crossed at age s.
func TestSalmutLearnsTheOptimalAge(t *testing.T) {
	envtest.Alone(t)
	s := env.NewSource("", 1, .3, 1)
	s.Cost = 2
	for _, price := range []float64{.1, .25, .5, .75} {
		best, earns := 0, 0.0
		for age := 1; age < 100; age++ {
			if v := (s.MeanState(age) - price*s.Cost) / float64(age); v > earns {
				best, earns = age, v
			}
		}
		for seed := range uint64(5) {
			noise := seed > 0
			terms := env.Terms{Costs: []float64{s.Cost}, Budget: s.Cost}
			settings := but(DefaultSalmut(), func(s *Salmut) { s.Ages, s.Dual = 40, 1e-300 })
			l := must(NewSalmut(terms, settings, stream.New(seed, stream.Policy))).(*salmut)
			l.price = price
			r := stream.New(seed, stream.Test)
			o := env.Online{Last: []int{-1}}
			for e := range 60000 {
				var got []env.Crawled
				if r.Float64() < 1/(1+math.Exp(-l.margin(0, o.Age(0)))) {
					x := s.MeanState(o.Age(0))
					if noise {
						x *= r.ExpFloat64()
					}
					got = append(got, env.Crawled{Source: 0, Age: o.Age(0), Interest: x})
					o.Last[0] = e
				}
				o.Epoch++
				l.Update(got, &o)
			}
			tau := math.Exp(l.theta[0])
			if noise {
				// Near the optimum ages earn much the same.
				age := max(1, math.Ceil(tau))
				if got := (s.MeanState(int(age)) - price*s.Cost) / age; got < .93*earns {
					t.Errorf("price %v, noisy harvests: threshold %.3f earns %.4f per epoch, "+
						"the optimal age %d %.4f; want .93 of it", price, tau, got, best, earns)
				}
			} else if float64(best-1) > tau || tau > float64(best) {
				t.Errorf("price %v: threshold %.3f, want within (%d, %d]", price, tau, best-1, best)
			}
			if l.price != price {
				t.Errorf("the fixed price moved from %v to %v", price, l.price)
			}
			if best <= 1 || noise {
				continue
			}
			// The critic's reward per epoch is what the threshold earns, which
			// the randomised threshold keeps somewhat below the optimum.
			v := l.table[0][0]
			if eta := (v.interest - price*s.Cost) / v.left; eta > earns*1.01 || eta < earns*.93 {
				t.Errorf("price %v: reward per epoch %v, want a little below %v", price, eta, earns)
			}
		}
	}
}

// On Table I the price settles where the Lagrangian bound has it.
func TestSalmutLearnsThePrice(t *testing.T) {
	for _, c := range []struct{ budget, price, reward float64 }{
		{1, 105.1, 260.39},
		{2, 43.6, 338.05},
		{3, 18.1, 372.41},
	} {
		w := must(env.NewMean(env.Paper(c.budget), false))
		l := must(NewSalmut(w.Terms(), DefaultSalmut(), stream.New(3, stream.Policy))).(*salmut)
		var reward, price float64
		const epochs, half = 20000, 10000
		for n := range epochs {
			got := must(w.Step(l.Select(nil, &w.View().Online)))
			l.Update(got, &w.View().Online)
			if n >= half {
				price += l.price / (epochs - half)
				for _, g := range got {
					reward += g.Interest / (epochs - half)
				}
			}
		}
		if math.Abs(price/c.price-1) > .25 {
			t.Errorf("budget %v: price %.1f, want about %.1f", c.budget, price, c.price)
		}
		if reward < .98*c.reward || reward > c.reward*1.0001 {
			t.Errorf("budget %v: reward %.2f, exploration and all; want at least .98 of the bound, %.2f",
				c.budget, reward, c.reward)
		}
	}
}
