package lspe

import (
	"math"

	"ephemera/learner/critic"
)

// The critic of a source is LSPE(0) on Q(s, crawl) and Q(s, wait), harvest and
// cost as two rewards, given that it is crawled at its threshold:
//
//	Q_X(s, crawl) = h(z),  Q_X(s, wait) = w(z),  V(0) = 0
//
// A crawl at age S closes a cycle (0, wait) → … → (S, crawl) → 0. It counts as nodes
// transitions between (zj/8, wait), j = 0 … 7, and (z, crawl), of S/8 epochs each.
// What LSPE needs of a cycle are then powers of z times constants, and averages of
// these powers hold all cycles:
//
//	c_m = Σ_j (j/8)^m,  d_ik = Σ_{j<7} (j/8)^i ((j+1)/8)^k,  e_i = (7/8)^i
//	B_cc = Z_{i+k},  B_ww = c_{i+k} Z_{i+k}
//	A_ww = (d_ik − c_{i+k}) Z_{i+k},  A_wc = e_i Z_{i+k}
//	f_i = τ c_i Z_{i+1}/8, the epochs that pass while φ_i is what it is
//
// A and b̄ are put together from them. Of B the inverse runs along, by an update of rank
// one for the crawl and of rank three for the waiting, c = LLᵀ:
//
//	Σ_j φ(zj/8)φ(zj/8)ᵀ = Σ_m (z L_1m, z² L_2m, z³ L_3m)(…)ᵀ
//
// A cycle of one epoch has no choice but at age 0, and counts in B_cc alone: its eighths would
// say that waiting at age 1 is worth what the crawl brings, and a source that is crawled at
// every epoch would not learn what waiting brings from the few cycles that show it.
const nodes = 8

var (
	nodePowers   [2*degree + 1]float64           // c_m
	nodeProducts [degree + 1][degree + 1]float64 // d_ik
	lastPowers   [degree + 1]float64             // e_i
	waits        [degree][degree]float64         // L of c_{i+k}, i and k from 1 on
)

func init() {
	for j := range nodes {
		v := float64(j) / nodes
		for m := range nodePowers {
			nodePowers[m] += math.Pow(v, float64(m))
		}
		if j == nodes-1 {
			break
		}
		for i := range nodeProducts {
			for k := range nodeProducts {
				nodeProducts[i][k] += math.Pow(v, float64(i)) * math.Pow(v+1./nodes, float64(k))
			}
		}
	}
	for i := range lastPowers {
		lastPowers[i] = math.Pow((nodes-1.)/nodes, float64(i))
	}
	for i := range degree {
		for k := range i + 1 {
			v := nodePowers[i+k+2]
			for m := range k {
				v -= waits[i][m] * waits[k][m]
			}
			if waits[i][k] = v / waits[k][k]; i == k {
				waits[i][i] = math.Sqrt(v)
			}
		}
	}
}

// learn takes a cycle of source i into its averages, with weight b(1 − ε), and with
// bε the prior: four cycles around the threshold, at ages S whose harvests are those of the pooled
// curve, made as steep as the source most likely is,
//
//	S = θ − ½ + d,  |d| = max(|θe^(L/κ) − θ|, |L|/2),  L = ±1, ±3,   X = H̄(S) e^(δ(ψ(S) − ψ̄))
//
// S is rounded to whole ages, from 1 on, of which no two are the same. So the polynomials are held
// from the first cycle on where crawls will come, and where harvests are few for good. Four ages
// determine a cubic, however few a source is crawled at: else r may be anything in the directions
// that no cycle shows, and grows there with the rounding of sums. Where a source is crawled at two
// ages only the four alone say what it brings at the ages next to these: left to the
// polynomials, a source worth fifty times the price at age 1 may be crawled at age 2 for good. What
// the harvests of all its cycles say of the slope is in δ, and may be more than the averages hold,
// which forget.
//
// It returns the level of the source, and the mean of the pooled curve's features over the four.
func (l *Learner) learn(
	i int, age, harvest float64, psi *[poolFeatures]float64, b float64,
) (level float64, center [poolFeatures]float64) {
	s, d := &l.src[i], l.set.Features
	s.Span += float32(b * (age - float64(s.Span)))
	s.Mean += b * (harvest - s.Mean)
	for k, f := range psi {
		s.Phi[k] += float32(b * (f - float64(s.Phi[k])))
	}
	prior := l.prior(s)
	if s.Cycles == 1 {
		s.begin(d)
	} else {
		s.fade(b)
	}
	s.take(d, age, harvest, 0, b*(1-prior))
	wide, delta, last := math.Exp(1/l.slope(i)), l.steeper(s), 0.
	cube := wide * wide * wide
	for _, off := range [...]float64{
		-max(s.Theta*(1-1/cube), 3*half), -max(s.Theta*(1-1/wide), half),
		max(s.Theta*(wide-1), half), max(s.Theta*(cube-1), 3*half),
	} {
		last = max(last+1, math.Round(s.Theta-half+off))
		phi := l.pooled.features(last)
		for k := range phi {
			center[k] += phi[k] / 4
		}
		s.take(d, last, 0, l.pooled.tilted(&phi, delta*(phi[0]-float64(s.Phi[0]))), b*prior/4)
	}
	if k := s.Cycles; k <= 8 || k%checks == 0 {
		l.check(s)
	}
	level, _ = l.level(s)
	l.evaluate(i, level)
	return level, center
}

const checks = 16 // cycles from one look at the inverses to the next; up to the eighth there is one each

// check puts the Tikhonov form in the place of an inverse that is not trusted.
func (l *Learner) check(s *Source) {
	d := l.set.Features
	z := [2*degree + 1]float64{1}
	copy(z[1:], s.Powers[:])
	var b [critic.Most][critic.Most]float64
	for j := range d + 1 {
		for k := range j + 1 {
			b[j][k] = z[j+k]
		}
	}
	if p := critic.Small(s.CrawlInverse[:]); !p.Trusted(d+1, &b) {
		p.Tikhonov(d+1, &b)
		l.fallbacks++
	}
	for j := range d {
		for k := range j + 1 {
			b[j][k] = nodePowers[j+k+2] * s.waited(j+k+2)
		}
	}
	if p := critic.Small(s.WaitInverse[:]); !p.Trusted(d, &b) {
		p.Tikhonov(d, &b)
		l.fallbacks++
	}
}

const sweeps = 16 // steps of r that follow a cycle

// evaluate takes 16 steps of LSPE(0) for source i at its level a, see level:
//
//	h ← h + γB_cc⁻¹(X − B_cc h)
//	w ← w + γB_ww⁻¹(A_ww w + A_wc h − ηf),  with h = (C, 0, 0, 0) and κ̄ for the cost
//
// so many that r has all but solved its equations before the actor looks at it. With
// fewer, a source whose threshold doubles at each crawl has weights that describe none
// of its thresholds, and may be given up though it is worth eight times the price.
//
// Rows of the inverses beyond the degree are 0, and so are the weights there.
func (l *Learner) evaluate(i int, level float64) {
	s, cost, gamma := &l.src[i], l.cost(i), l.set.Gamma
	unit := float64(s.Unit)
	z := [2*degree + 1]float64{1}
	copy(z[1:], s.Powers[:])
	harvests := s.Harvests
	for m := range harvests {
		harvests[m] += level * s.Prior[m]
	}
	span := unit * z[1]
	eta, work := harvests[0]/span, cost/span

	inverse := critic.Small(s.CrawlInverse[:])
	for range sweeps {
		var v, y [critic.Most]float64
		for j := range v {
			left := harvests[j]
			for k, h := range s.Crawl {
				left -= z[j+k] * h
			}
			v[j] = left
		}
		inverse.Mul(&y, &v)
		for j := range s.Crawl {
			s.Crawl[j] += gamma * y[j]
		}
	}
	if l.set.Critic == "random" {
		return
	}

	for m := range z {
		z[m] = s.waited(m)
	}
	// With G = γB_ww⁻¹A_ww, and g̃ of what does not change, a step is w ← w + Gw + g̃.
	inverse = critic.Small(s.WaitInverse[:])
	var g [degree][critic.Most]float64 // column by column
	var gain, toll [critic.Most]float64
	for k := range degree {
		var a [critic.Most]float64
		for j := range degree {
			a[j] = gamma * (nodeProducts[j+1][k+1] - nodePowers[j+k+2]) * z[j+k+2]
		}
		inverse.Mul(&g[k], &a)
	}
	var x, c [critic.Most]float64
	for j := range degree {
		f := unit * nodePowers[j+1] * z[j+2] / nodes
		x[j] = -eta * f
		for k := range degree + 1 {
			x[j] += lastPowers[j+1] * z[j+1+k] * s.Crawl[k]
		}
		x[j] *= gamma
		c[j] = gamma * (lastPowers[j+1]*z[j+1]*cost - work*f)
	}
	inverse.Mul(&gain, &x)
	inverse.Mul(&toll, &c)
	for range sweeps {
		step(&s.Wait, &gain, &g)
		step(&s.Toll, &toll, &g)
	}
}

// step takes w ← w + Gw + v.
func step(w *[degree]float64, v *[critic.Most]float64, g *[degree][critic.Most]float64) {
	old := *w
	for j := range degree {
		w[j] += v[j] + g[0][j]*old[0] + g[1][j]*old[1] + g[2][j]*old[2]
	}
}
