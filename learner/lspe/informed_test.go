package lspe

import (
	"fmt"
	"math"
	"testing"

	"ephemera/baselines"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// informed is given what [plugin] is, and by which distribution [rare] draws rates and decays: ln λ normal
// around the median with variance 1, c uniform on [.05, 1.05]. It holds the posterior of both on a grid, by
// the plug-in's quasi-likelihood. While it learns it plans with a draw from the posterior (Thompson, 1933),
// and what it has learned is the plan by its mean. So it says how much whoever knows all but a
// source's two numbers can learn from the same harvests.
type informed struct {
	*plugin
	median float64
	rand   *stream.Rand
}

const (
	decays = 40
	rates  = 61
)

func informedDecay(k int) float64 { return .05 + (float64(k)+half)/decays }
func informedRate(j int) float64  { return -3 + 6*float64(j)/(rates-1) } // ln of rate over median

// infer sets the parameters of a source to a draw from their posterior, or to its mean.
func (p *informed) infer(i int, draw bool) {
	s := p.given.Sources[i]
	var weights [decays][rates]float64
	best := math.Inf(-1)
	for k := range weights {
		s.Decay, s.Rate = informedDecay(k), 1
		var sum, expected, like float64
		for age, c := range p.seen[i] {
			h := s.Harvest(float64(age))
			sum += c.sum
			expected += c.n * h
			like += c.sum * math.Log(h) / s.Interest
		}
		for j := range weights[k] {
			x := informedRate(j)
			weights[k][j] = like + (sum*(x+math.Log(p.median))-p.median*math.Exp(x)*expected)/s.Interest - x*x/2
			best = max(best, weights[k][j])
		}
	}
	var all, decay, rate float64
	for k := range weights {
		for j, v := range weights[k] {
			w := math.Exp(v - best)
			weights[k][j] = w
			all += w
			decay += w * informedDecay(k)
			rate += w * informedRate(j)
		}
	}
	decay, rate = decay/all, rate/all
	if draw {
		left := p.rand.Float64() * all
	drawn:
		for k := range weights {
			for j, w := range weights[k] {
				if left -= w; left <= 0 {
					decay, rate = informedDecay(k), informedRate(j)
					break drawn
				}
			}
		}
	}
	p.in.Sources[i].Decay, p.in.Sources[i].Rate = decay, p.median*math.Exp(rate)
}

// plan takes the policy of draws, or of means.
func (p *informed) plan(draw bool) {
	for i := range p.in.Sources {
		p.infer(i, draw)
	}
	p.policy = byAges{baselines.NewWhittle(p.in)}
}

// learn plays a world, and plans anew when a fortieth of the epochs so far have passed.
func (p *informed) learn(w *harvests, epochs int) {
	var crawl []int
	next := 0
	for epoch := range epochs {
		if epoch >= next {
			p.plan(true)
			next = epoch + 1 + epoch/40
		}
		crawl = p.policy.Select(crawl[:0], &w.view)
		for _, c := range w.step(crawl) {
			p.add(c)
		}
	}
	p.plan(false)
}

// TestInformed prints, with -full, what the plug-in that is given the law earns where sources are quiet, and
// what one earns that is given the distribution of the parameters, too: as learned, and while learning. Else it
// holds the second against a share that it misses where it plans with means in place of draws.
func TestInformed(t *testing.T) {
	envtest.Alone(t)
	earned := func(c *target, median float64, epochs int, seed uint64) shares {
		in := c.instance(seed)
		best, w := whittle(in, epochs), newHarvests(in, seed)
		p := newPlugin(in)
		if median > 0 {
			i := &informed{p, median, stream.New(seed, stream.Policy)}
			i.learn(w, epochs)
		} else {
			p.learn(w, epochs)
		}
		learning := w.earned / float64(epochs) / best.learning
		return shares{w.follow(p.policy, in.Terms().Round(), epochs) / best.frozen, learning}
	}
	medians := []float64{1, .1, .03} // of the first three targets
	if !*full {
		if got := earned(&targets[0], medians[0], 1000, 1); got.frozen < .98 || got.learning < .95 {
			t.Errorf("%.4f; want at least .98 and .95", got)
		}
		return
	}
	for n := range targets[:7] {
		c := &targets[n]
		for _, family := range []bool{false, true} {
			name, median := "given the law, ", 0.
			if family {
				if n >= len(medians) {
					break
				}
				name, median = "given law and family, ", medians[n]
			}
			var frozen, learning []float64
			for k := range c.instances {
				got := earned(c, median, c.epochs, *from+uint64(k))
				frozen, learning = append(frozen, got.frozen), append(learning, got.learning)
			}
			fmt.Println("| "+name+c.name, "|", interval(frozen), "|", interval(learning), "|")
		}
	}
}
