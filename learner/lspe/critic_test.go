package lspe

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/stream"
)

// drawn returns a learner past its first pass, one source of which has the given
// cycles.
func drawn(t testing.TB, cycles [][2]float64, theta float64) *Learner {
	in := env.Mixed(3, 2, 1)
	l := newLearner(t, in, 1, nil)
	w := newHarvests(in, 1)
	w.learn(l, 10)
	s := &l.src[0]
	s.forget()
	s.Theta, s.Unit, s.LastTheta = theta, theta, 0
	l.move(0, theta)
	for k, c := range cycles {
		s.Cycles++
		s.take(c[0], c[1], l.set.B.At(k+1))
	}
	return l
}

// TestCriticAgainstDense holds LSPE(0) against the same recursion on matrices that
// are summed up transition by transition, as the doc comment of nodes says.
func TestCriticAgainstDense(t *testing.T) {
	r := stream.New(1, stream.Test)
	for range 50 {
		var cycles [][2]float64
		theta := 2 + 20*r.Float64()
		for range 1 + r.Intn(30) {
			age := 1 + math.Floor(2*theta*r.Float64())
			cycles = append(cycles, [2]float64{age, 10 * age * r.Float64()})
		}
		l := drawn(t, cycles, theta)
		s, cost := &l.src[0], l.costs[0]

		// All cycles with their weights, the pseudo-cycles among them.
		type cycle struct{ age, harvest, weight float64 }
		var all []cycle
		for k, c := range cycles {
			b := l.set.B.At(k + 1)
			for j := range all {
				all[j].weight *= 1 - b
			}
			all = append(all, cycle{c[0], c[1], b})
		}
		for _, e := range []float64{-3, -1, 1, 3} {
			age := max(1, math.Round(s.Theta*math.Exp(e/min(l.slope(0), 2*s.Theta))-half))
			all = append(all, cycle{age, l.level(s) * l.pooled.at(age), pseudoWeight / float64(len(cycles)) / 4})
		}
		var epochs, harvest, weight float64
		for _, c := range all {
			epochs += c.weight * c.age
			harvest += c.weight * c.harvest
			weight += c.weight
		}
		rewards := map[string][2]float64{"harvest": {harvest / epochs, 0}, "cost": {cost * weight / epochs, cost}}
		// φ is (crawl block, wait block): 4 + 3 features.
		features := func(z float64, crawl bool) *mat.VecDense {
			v := mat.NewVecDense(7, nil)
			for m := range 4 {
				if crawl {
					v.SetVec(m, math.Pow(z, float64(m)))
				} else if m > 0 {
					v.SetVec(3+m, math.Pow(z, float64(m)))
				}
			}
			return v
		}
		for name, reward := range rewards {
			B, A, b := mat.NewDense(7, 7, nil), mat.NewDense(7, 7, nil), mat.NewVecDense(7, nil)
			for _, c := range all {
				z := c.age / s.Unit
				for j := range nodes {
					phi := features(z*float64(j)/nodes, false)
					next, lasts := features(z*float64(j+1)/nodes, false), c.age/nodes
					if j == nodes-1 {
						next = features(z, true)
					}
					var d mat.VecDense
					d.SubVec(next, phi)
					B.RankOne(B, c.weight, phi, phi)
					A.RankOne(A, c.weight, phi, &d)
					b.AddScaledVec(b, -c.weight*lasts*reward[0], phi)
				}
				phi, x := features(z, true), c.harvest
				if name == "cost" {
					x = reward[1]
				}
				B.RankOne(B, c.weight, phi, phi)
				A.RankOne(A, -c.weight, phi, phi)
				b.AddScaledVec(b, c.weight*x, phi)
			}
			// The fixed point A r + b = 0.
			var want mat.VecDense
			b.ScaleVec(-1, b)
			if err := want.SolveVec(A, b); err != nil && mat.Cond(A, 2) > 1e12 {
				continue
			}
			for range 32 { // 4096 steps
				l.evaluate(0)
			}
			got := &s.Wait
			if name == "cost" {
				got = &s.Toll
			}
			for _, z := range []float64{.3, .7, 1} {
				w := [degree]float64{want.AtVec(4), want.AtVec(5), want.AtVec(6)}
				if g, v := cubic(got, z), cubic(&w, z); math.Abs(g-v) > 1e-5*(1+math.Abs(v)+math.Abs(reward[0])*s.Unit) {
					t.Fatalf("%s at z = %v: %v; by dense matrices %v; %d cycles", name, z, g, v, len(cycles))
				}
			}
		}
	}
}

// TestCriticFindsIndex: among sources alike every threshold is the round, and W
// there is Whittle's index of the true curve.
func TestCriticFindsIndex(t *testing.T) {
	for _, law := range []env.Law{env.LawExponential, env.LawPower} {
		for _, decay := range []float64{.05, .3} {
			s := env.NewSource("", 4000, decay, 1)
			s.Law = law
			in := env.Instance{Sources: slices.Repeat([]env.Source{s}, 40), Budget: 4}
			l := newLearner(t, in, 1, nil)
			newHarvests(in, 1).learn(l, 4000)
			var worst float64
			for i := range in.Sources {
				at := l.Threshold(i) - half
				want := (at+1)*s.Harvest(at) - at*s.Harvest(at+1)
				worst = max(worst, math.Abs(l.Index(i)/want-1))
			}
			if worst > .2 {
				t.Errorf("%s, decay %v: W is off by %.2f", law, decay, worst)
			}
		}
	}
}

// TestRescaled: a new unit of the age changes no function.
func TestRescaled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) float64 { return rapid.Float64Range(-5, 5).Draw(t, name) }
		s := Source{Unit: 8, Theta: 8}
		for m := range s.Crawl {
			s.Crawl[m] = draw("crawl")
		}
		for m := range s.Wait {
			s.Wait[m], s.Toll[m] = draw("wait"), draw("toll")
		}
		for range 5 {
			s.take(1+math.Floor(rapid.Float64Range(0, 20).Draw(t, "age")), draw("harvest"), .4)
		}
		old := s
		s.Theta = rapid.Float64Range(1, 300).Draw(t, "θ")
		s.measure()
		if s.Unit > 2*s.Theta || s.Unit < s.Theta/2 {
			t.Fatalf("τ is %v at θ = %v", s.Unit, s.Theta)
		}
		for _, age := range []float64{1, 3, 12} {
			a, b := old.z(age), s.z(age)
			if old.expected(a) != s.expected(b) || cubic(&old.Wait, a) != cubic(&s.Wait, b) ||
				cubic(&old.Toll, a) != cubic(&s.Toll, b) {
				t.Fatalf("at age %v: %v, %v, %v; were %v, %v, %v",
					age, s.expected(b), cubic(&s.Wait, b), cubic(&s.Toll, b),
					old.expected(a), cubic(&old.Wait, a), cubic(&old.Toll, a))
			}
		}
		if old.span() != s.span() || old.eta() != s.eta() {
			t.Fatalf("span and η are %v and %v; were %v and %v", s.span(), s.eta(), old.span(), old.eta())
		}
	})
}

// TestCriticKeepsUp: while the cycles of a source get twice as long with each crawl the
// learned index stays near Whittle's, so that the actor turns round.
func TestCriticKeepsUp(t *testing.T) {
	s := env.NewSource("", 60, .12, 1.7)
	l := newLearner(t, env.Instance{Sources: slices.Repeat([]env.Source{s}, 50), Budget: 10}, 1, nil)
	l.pooled.mean = s.Harvest(l.round)
	p := &l.src[0]
	for age := 1.; age <= 512; age *= 2 {
		p.Cycles++
		b := l.set.B.At(int(p.Cycles))
		if p.Cycles == 1 {
			p.Unit, b = 1, 1
		}
		p.Theta = age
		p.measure()
		p.take(age, s.Harvest(age), b)
		p.PooledMean += b * (l.pooled.at(age) - p.PooledMean)
		l.evaluate(0)
		at := age - half
		want := (at+1)*s.Harvest(at) - at*s.Harvest(at+1)
		if got := l.Index(0); age >= 16 && !(got > .6*want && got < 1.2*want) {
			t.Errorf("at age %v W is %.4g, and Whittle's index %.4g", age, got, want)
		}
	}
}
