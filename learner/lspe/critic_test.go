package lspe

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/critic"
)

// drawn returns a learner past its first pass, whose source 0 has none of its cycles
// left and the threshold θ.
func drawn(t testing.TB, theta float64) *Learner {
	in := env.Mixed(3, 2, 1)
	l := newLearner(t, in, 1, nil)
	newHarvests(in, 1).learn(l, 10)
	s := &l.src[0]
	s.forget()
	s.Theta, s.Unit = theta, float32(theta)
	l.move(0, theta)
	return l
}

// takeIn has the critic of source i take in a cycle.
func takeIn(l *Learner, i int, age, harvest, b float64) {
	psi := l.pooled.features(age)
	l.learn(i, age, harvest, &psi, b)
}

// dense is LSPE(0) of one source on matrices that are summed up transition by
// transition, as the doc comment of nodes says: 4 features of the crawl block, and 3 of
// the wait block.
type dense struct {
	b, a                           *mat.Dense
	harvests, prior, costs, epochs *mat.VecDense // Σφ·reward, and Σφ·(what passes)
	age, harvest, pooled           float64       // averages
}

func newDense() *dense {
	matrix := func() *mat.Dense { return mat.NewDense(7, 7, nil) }
	vector := func() *mat.VecDense { return mat.NewVecDense(7, nil) }
	d := &dense{
		b: matrix(), a: matrix(),
		harvests: vector(), prior: vector(), costs: vector(), epochs: vector(),
	}
	for i := range 7 {
		d.b.Set(i, i, firstB)
	}
	return d
}

func (d *dense) fade(b float64) {
	d.b.Scale(1-b, d.b)
	d.a.Scale(1-b, d.a)
	for _, v := range []*mat.VecDense{d.harvests, d.prior, d.costs, d.epochs} {
		v.ScaleVec(1-b, v)
	}
	d.age *= 1 - b
	d.harvest *= 1 - b
	d.pooled *= 1 - b
}

func (d *dense) take(z, age, harvest, pooled, cost, weight float64) {
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
	for j := range nodes {
		if age == 1 {
			break
		}
		phi, next := features(z*float64(j)/nodes, false), features(z*float64(j+1)/nodes, false)
		if j == nodes-1 {
			next = features(z, true)
		}
		next.SubVec(next, phi)
		d.b.RankOne(d.b, weight, phi, phi)
		d.a.RankOne(d.a, weight, phi, next)
		d.epochs.AddScaledVec(d.epochs, weight*age/nodes, phi)
	}
	phi := features(z, true)
	d.b.RankOne(d.b, weight, phi, phi)
	d.a.RankOne(d.a, -weight, phi, phi)
	d.harvests.AddScaledVec(d.harvests, weight*harvest, phi)
	d.prior.AddScaledVec(d.prior, weight*pooled, phi)
	d.costs.AddScaledVec(d.costs, weight*cost, phi)
	d.age += weight * age
	d.harvest += weight * harvest
	d.pooled += weight * pooled
}

// TestCriticAgainstDense holds what is learned from cycles against dense matrices: the
// running inverses against B, and r against the fixed point Ar + b̄ = 0.
func TestCriticAgainstDense(t *testing.T) {
	r := stream.New(1, stream.Test)
	for range 50 {
		theta := 2 + 20*r.Float64()
		l, d := drawn(t, theta), newDense()
		s, cost := &l.src[0], l.costs[0]
		s.Score, s.Square = float32(r.NormFloat64()/10), .1 // it is steeper than the pooled curve, or flatter
		cycles := 1 + r.Intn(60)
		for range cycles {
			age := 1 + math.Floor(2*theta*r.Float64())
			harvest := 10 * age * r.Float64()
			s.Cycles++
			b := l.set.B.At(int(s.Cycles))
			if s.Cycles > 1 {
				d.fade(b)
			}
			takeIn(l, 0, age, harvest, b)
			prior := l.prior(s)
			d.take(s.z(age), age, harvest, 0, cost, b*(1-prior))
			last := 0.
			for _, e := range []float64{-3, -1, 1, 3} {
				off := s.Theta * (math.Exp(e/l.slope(0)) - 1)
				if math.Abs(off) < math.Abs(e/2) {
					off = e / 2
				}
				if last++; s.Theta-half+off > last {
					last = math.Round(s.Theta - half + off)
				}
				k := float64(s.Cycles)
				delta := k * float64(s.Score) / (k*float64(s.Square) + 1/l.slopes())
				steeper := math.Exp(delta * (l.pooled.features(last)[0] - float64(s.Phi[0])))
				d.take(s.z(last), last, 0, l.pooled.at(last)*steeper, cost, b*prior/4)
			}
		}
		var product mat.Dense
		for _, block := range []struct {
			from, l int
			inverse critic.Small
		}{{0, 4, s.CrawlInverse[:]}, {4, 3, s.WaitInverse[:]}} {
			p := mat.NewDense(block.l, block.l, nil)
			for i := range block.l {
				for j := range block.l {
					p.Set(i, j, block.inverse[max(i, j)*(max(i, j)+1)/2+min(i, j)])
				}
			}
			product.Reset()
			product.Mul(p, d.b.Slice(block.from, block.from+block.l, block.from, block.from+block.l))
			for i := range block.l {
				product.Set(i, i, product.At(i, i)-1)
			}
			if off := mat.Norm(&product, math.Inf(1)); l.fallbacks == 0 && off > 1e-4 {
				t.Errorf("after %d cycles PB − I has the norm %v", cycles, off)
			}
		}
		level, _ := l.level(s)
		d.harvests.AddScaledVec(d.harvests, level, d.prior)
		d.harvest += level * d.pooled
		for range 300 { // 4800 steps
			l.evaluate(0, level)
		}
		for _, c := range []struct {
			name    string
			rewards *mat.VecDense
			mean    float64
			got     *[degree]float64
		}{
			{"harvest", d.harvests, d.harvest / d.age, &s.Wait},
			{"cost", d.costs, cost / d.age, &s.Toll},
		} {
			var b, want mat.VecDense
			b.AddScaledVec(c.rewards, -c.mean, d.epochs)
			b.ScaleVec(-1, &b)
			if err := want.SolveVec(d.a, &b); err != nil && mat.Cond(d.a, 2) > 1e12 {
				continue
			}
			for _, z := range []float64{.3, .7, 1} {
				w := [degree]float64{want.AtVec(4), want.AtVec(5), want.AtVec(6)}
				if g, v := cubic(c.got, z), cubic(&w, z); math.Abs(g-v) > 1e-5*(1+math.Abs(v)+c.mean*float64(s.Unit)) {
					t.Errorf("%s at z = %v: %v; by dense matrices %v; %d cycles", c.name, z, g, v, cycles)
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
		s.begin(degree)
		for m := range s.Crawl {
			s.Crawl[m] = draw("crawl")
		}
		for m := range s.Wait {
			s.Wait[m], s.Toll[m] = draw("wait"), draw("toll")
		}
		for range 5 {
			s.fade(.4)
			s.take(degree, 1+math.Floor(rapid.Float64Range(0, 20).Draw(t, "age")), draw("harvest"), draw("harvest"), .4)
		}
		old := s
		s.Theta = rapid.Float64Range(1, 300).Draw(t, "θ")
		s.measure()
		if float64(s.Unit) > 2*s.Theta || float64(s.Unit) < s.Theta/2 {
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
		for m := range s.Harvests {
			by := math.Pow(float64(s.Unit/old.Unit), float64(m))
			if old.Harvests[m] != by*s.Harvests[m] || old.Prior[m] != by*s.Prior[m] ||
				m > 0 && old.Powers[m-1] != by*s.Powers[m-1] {
				t.Fatalf("averages of zᵐ, m = %d, are %v, %v and %v; were %v, %v and %v",
					m, s.Harvests, s.Prior, s.Powers, old.Harvests, old.Prior, old.Powers)
			}
		}
	})
}

// TestCriticKeepsUp: while the cycles of a source get twice as long with each crawl the
// learned index stays near Whittle's, so that the actor turns round. By the sixth cycle the prior, of
// which nothing was fitted, still has a third of the weight.
func TestCriticKeepsUp(t *testing.T) {
	s := env.NewSource("", 60, .12, 1.7)
	l := newLearner(t, env.Instance{Sources: slices.Repeat([]env.Source{s}, 50), Budget: 10}, 1, nil)
	l.pooled.mean, l.square = s.Harvest(l.round), 1
	p := &l.src[0]
	for age := 1.; age <= 512; age *= 2 {
		p.Cycles++
		b := l.set.B.At(int(p.Cycles))
		if p.Cycles == 1 {
			p.Unit, b = 1, 1.
		}
		p.Theta = age
		p.measure()
		takeIn(l, 0, age, s.Harvest(age), b)
		at := age - half
		want := (at+1)*s.Harvest(at) - at*s.Harvest(at+1)
		if got := l.Index(0); age >= 16 && !(got > .5*want && got < 1.2*want) {
			t.Errorf("at age %v W is %.4g, and Whittle's index %.4g", age, got, want)
		}
	}
}

// TestPriorOfFewItems: where a cycle brings half an item, the prior has half of its weight; where it brings a
// tenth of one five sixths; and where it brings twenty one part in 41. It counts ten times where the slopes of
// sources have a tenth of the variance, and half where crawls are free and the source waits for four rounds.
// At first it counts as three cycles do, or as a hundred items, which are 200 cycles of half an item.
func TestPriorOfFewItems(t *testing.T) {
	for _, c := range []struct {
		items, slopes, rounds, price float64
		cycles                       int32
		want                         float64
	}{
		{.5, .1, 1, 1, 1e6, .5}, {.1, .1, 1, 1, 1e6, 5. / 6}, {20, .1, 1, 1, 1e6, 1. / 41},
		{.5, .001, 1, 1, 1e6, 10. / 11}, {.5, .1, 4, 1, 1e6, .5}, {.5, .1, 4, 0, 1e6, 1. / 3}, {.5, .1, 1, 0, 1e6, .5},
		{.5, .1, 1, 1, 100, 2. / 3}, {20, .1, 1, 1, 3, .5},
	} {
		l := drawn(t, 2)
		l.between.Slope, l.between.Precision, l.price = 1e9*c.slopes, 1e9, c.price
		l.spread, l.square = 1/c.items, 1 // that of all harvests, which counts at first
		s := &l.src[0]
		s.Theta, s.Cycles, s.Mean, s.Dispersion = c.rounds*l.round, c.cycles, 1, 1/c.items
		if got := l.prior(s); math.Abs(got/c.want-1) > .002 {
			t.Errorf("%v items, slopes of %v, %v rounds, the price %v, %d cycles: the prior has %.5f; want %.5f",
				c.items, c.slopes, c.rounds, c.price, c.cycles, got, c.want)
		}
	}
}
