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
// B_ww changes by rank three with every cycle, and both B by the pseudo-cycles,
// whose weights change; so they are put together and factorised afresh, at 4×4
// and 3×3, and no inverse is kept: 11 numbers hold what B⁻¹ and A would need 50
// for.
const nodes = 8

var (
	nodePowers   [2*degree + 1]float64           // c_m
	nodeProducts [degree + 1][degree + 1]float64 // d_ik
	lastPowers   [degree + 1]float64             // e_i
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
}

const (
	doublings = 7 // 2⁷ steps of r follow a cycle
)

// pseudoCycles adds, with the weight 3/k in all, four cycles around the threshold
// whose harvests are the pooled curve's, at
//
//	S = θe^(L/κ) − ½,  L = ±1, ±3,  κ ≤ 2θ
//
// rounded to whole ages, so that the polynomials are held from the first cycle on
// where crawls will come. The bound of κ puts them an epoch apart. Where a source is
// crawled at two ages only they alone say what it brings at the ages beside these:
// left to the polynomials, a source worth fifty times the price at age 1 may be
// crawled at age 2 for good.
func (l *Learner) pseudoCycles(i int, z *[2*degree + 1]float64, x *[degree + 1]float64) {
	s := &l.src[i]
	share := pseudoWeight / float64(s.Cycles) / 4
	wide := math.Exp(1 / min(l.slope(i), 2*s.Theta))
	level, cube := l.level(s), wide*wide*wide
	for _, factor := range [...]float64{1 / cube, 1 / wide, wide, cube} {
		age := max(1, math.Round(s.Theta*factor-half))
		harvest := level * l.pooled.at(age)
		at, v := age/s.Unit, share
		for m := range z {
			z[m] += v
			if m < len(x) {
				x[m] += v * harvest
			}
			v *= at
		}
	}
}

// evaluate takes 2⁷ steps of LSPE(0) for source i:
//
//	h ← h + γB_cc⁻¹(X − B_cc h)
//	w ← w + γB_ww⁻¹(A_ww w + A_wc h − ηf),  with h = (C, 0, 0, 0) and κ̄ for the cost
//
// so many that r has solved its equations before the actor looks at it. With eight,
// a source whose threshold doubles at each crawl has weights that describe none of its
// thresholds, and may be given up though it is worth eight times the price.
func (l *Learner) evaluate(i int) {
	s, cost, d := &l.src[i], l.costs[i], l.set.Features
	z := [2*degree + 1]float64{1}
	copy(z[1:], s.Powers[:])
	x := s.Harvests
	l.pseudoCycles(i, &z, &x)
	span := s.Unit * z[1]
	eta, work := x[0]/span, cost*z[0]/span

	// The step of h has a closed form: with the solution h*, h* + (1 − γ)ⁿ(h − h*).
	// It is taken as a step from h, for the ridge leaves alone what the cycles say
	// nothing of.
	var b [critic.Most][critic.Most]float64
	for j := range d + 1 {
		for k := range d + 1 {
			b[j][k] = z[j+k]
		}
	}
	l.small.Factor(d+1, &b)
	var v [critic.Most]float64
	for j := range d + 1 {
		v[j] = x[j]
		for k := range d + 1 {
			v[j] -= b[j][k] * s.Crawl[k]
		}
	}
	l.small.Solve(&v)
	left := math.Pow(1-l.set.Gamma, 1<<doublings)
	for j := range d + 1 {
		s.Crawl[j] += (1 - left) * v[j]
	}
	if l.set.Critic == "random" {
		return
	}

	// w ← w + γB_ww⁻¹(A_ww w + g) is w ← w + Gw + g̃ with G = γB_ww⁻¹A_ww, the same
	// for both rewards, and two such steps are one with 2G + G² and 2g̃ + Gg̃.
	var g [degree][critic.Most]float64 // γA_ww, then G, column by column
	var gain, toll [critic.Most]float64
	for j := range d {
		for k := range d {
			b[j][k] = nodePowers[j+k+2] * z[j+k+2]
			g[k][j] = l.set.Gamma * (nodeProducts[j+1][k+1] - nodePowers[j+k+2]) * z[j+k+2]
		}
		f := s.Unit * nodePowers[j+1] * z[j+2] / nodes
		gain[j] = -eta * f
		for k := range d + 1 {
			gain[j] += lastPowers[j+1] * z[j+1+k] * s.Crawl[k]
		}
		gain[j] *= l.set.Gamma
		toll[j] = l.set.Gamma * (lastPowers[j+1]*z[j+1]*cost - work*f)
	}
	l.small.Factor(d, &b)
	for k := range d {
		l.small.Solve(&g[k])
	}
	l.small.Solve(&gain)
	l.small.Solve(&toll)
	for range doublings {
		step(gain[:], gain[:], &g)
		step(toll[:], toll[:], &g)
		square := g
		for k := range d {
			step(square[k][:], g[k][:], &g)
		}
		g = square
	}
	step(s.Wait[:], gain[:], &g)
	step(s.Toll[:], toll[:], &g)
}

// step takes w ← w + Gw + v.
func step(w, v []float64, g *[degree][critic.Most]float64) {
	old := [degree]float64(w)
	for j := range degree {
		w[j] += v[j] + g[0][j]*old[0] + g[1][j]*old[1] + g[2][j]*old[2]
	}
}

// Index returns the learned index of source i at its threshold, in interest per
// budget unit: the price at which crawling and waiting are worth the same,
//
//	A_X(s) = h(z) − w_X(z),  A_C(s) = C − w_C(z),  W = ΣA_X/max(ΣA_C, C/κ)
//
// over the ages s + ½ = θe^(−1/κ), θ and θe^(1/κ), between which the noise of the
// actor moves the crawls.
func (l *Learner) Index(i int) float64 {
	s, cost := &l.src[i], l.costs[i]
	kappa := l.slope(i)
	wide := math.Exp(1 / kappa)
	eta, work := s.eta(), cost/s.span()
	var ax, ac float64
	for _, factor := range [...]float64{1 / wide, 1, wide} {
		z := s.z(max(1, s.Theta*factor-half))
		wait, toll := cubic(&s.Wait, z), cubic(&s.Toll, z)
		switch l.set.Critic {
		case "zero": // V = 0: crawling is worth h − λC and waiting nothing
			wait, toll = 0, 0
		case "average": // as right after a crawl
			wait, toll = eta, work
		case "negative":
			wait, toll = 2*eta-wait, 2*work-toll
		}
		ax += s.expected(z) - wait
		ac += cost - toll
	}
	return ax / max(ac, cost/kappa)
}
