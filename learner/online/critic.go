package online

// evaluate takes a closed cycle of S epochs into the critic of source i:
// LSPE(0) on the features in which V is linear under a threshold Θ, in the age
// below it and in the state above it,
//
//	φ(s) = (min(s, Θ) − 1, (x(s) − x(min(s, Θ)))/u*),  V(1) = 0
//
// The sums over the cycle are at hand: of the first feature, 0, 1, …, m − 1
// with m = min(S, Θ) and then m − 1 for the S − m epochs above Θ, where the
// second, h, runs. It costs O(S − m).
func (p *core) evaluate(i int, harvest, cost, w float32) bool {
	ages, turn := p.age[i], p.turn[i]
	m := min(ages, turn)
	var h, sum, square, climb float32 // h(S), Σh, Σh², Σh(h′ − h)
	if ages > turn && p.ceil[i] > 0 {
		end := 1 - p.peak[i]/p.ceil[i] // of x at the ceiling
		for range min(int(ages-turn), maxAbove) {
			next := h + p.loss[i]*(end-h)
			climb += h * (next - h)
			h = next
			sum += h
			square += h * h
		}
	}
	f := m - 1 // φ(S) = (f, h)
	over := ages - m
	c := w / ages
	d := &p.lspe[i]
	d.keep(1 - w)
	// B ← B + w(mean φφᵀ − B)
	d.add(c*(f*m*(2*m-1)/6+over*f*f), c*f*sum, c*square)
	// A ← A + w(mean φ(φ′ − φ)ᵀ − A). The last change is −φ(S).
	d.a[0] += c * (f*(m-2)/2 - f*f)
	d.a[2] -= c * h * f
	d.a[3] += c * (climb - h*h)
	// b̄ ← b̄ + w(mean φρ − b̄)
	ages0, ages1 := f*m/2+over*f, sum
	eta, work := p.eta[i], p.work[i]
	d.bx[0] += c * (f*harvest - eta*ages0)
	d.bx[1] += c * (h*harvest - eta*ages1)
	d.bc[0] += c * (f*cost - work*ages0)
	d.bc[1] += c * (h*cost - work*ages1)

	trusted := d.trust(p.first())
	d.solve(float32(p.set.Gamma), int(ages))
	// Π: an epoch more of waiting adds at most u to what is harvested, and at
	// most one crawl. Above the threshold there is no bound; what diverges,
	// with γ near 2, begins again.
	d.rx[0] = project(d.rx[0], p.ceil[i]*p.loss[i])
	d.rc[0] = project(d.rc[0], cost)
	if v := d.rx[1] + d.rc[1]; v-v != 0 {
		d.rx[1], d.rc[1] = p.ceil[i], 0
	}
	p.blend(i)
	return trusted
}

// blend sets the slope of V that the index uses. LSPE(0) finds, with weights of
// the cycles as above,
//
//	r₁ = 2 Σ(m − 1)X / Σ(m − 1)m − η   (of S ≤ Θ)
//
// which is η if all cycles are alike. If they are not, r₁ counts the long ones
// twice and takes the mean away. The mean of r₁ and η is the rate of harvest
// with weights (m − 1)m: cycles that exploration cut short hardly count. So the
// slope is the mean of both, if A and B are those of cycles up to the present
// threshold, −(Θ − 1)/2 and (Θ − 1)(2Θ − 1)/6; as far as they are not, r₁ speaks
// of other cycles, and the slope is the average reward.
func (p *core) blend(i int) {
	d, turn := &p.lspe[i], p.turn[i]
	f := turn - 1
	if f == 0 {
		return
	}
	off := max(magnitude(1+2*d.a[0]/f), magnitude(1-6*d.b[0]/(f*(2*turn-1))))
	if u := .5 * (1 - 2*off); u > 0 {
		p.slope[i] += u * (d.rx[0] - p.slope[i])
		p.toll[i] += u * (d.rc[0] - p.toll[i])
	}
}

func magnitude(v float32) float32 { return max(v, -v) }

// project returns v within [0, top], and 0 for what is no number.
func project(v, top float32) float32 {
	if v > 0 {
		return min(v, top)
	}
	return 0
}

// maxAbove is how far above the threshold, in epochs, the second feature is
// followed; the rest of such a cycle counts as 0.
const maxAbove = 1000

// first is what the mean squares of the features are taken for at first: ages
// up to the period, and states that are seldom above the threshold.
func (p *core) first() [2]float32 {
	return [2]float32{float32(max(1, p.period*p.period/3)), 1e-2}
}
