package online

// pair is LSPE(0) for one source with two features, as [small] does it, by cycles
// whose sums are at hand. It takes 72 bytes.
type pair struct {
	b, inv         [3]float32 // B, B⁻¹: entries (0, 0), (1, 0), (1, 1)
	a              [4]float32 // A, by rows
	bx, bc, rx, rc [2]float32 // b̄ₓ, b̄_c, rₓ, r_c
}

func newPair(first [2]float32) (d pair) {
	d.restart(first[0], 0, first[1])
	return d
}

// restart sets B, and B⁻¹ from its factorisation.
func (d *pair) restart(b00, b10, b11 float32) {
	d.b = [3]float32{b00, b10, b11}
	// B = LDLᵀ with L = (1, 0; l, 1); rounding may have won over the ridge.
	l := float64(b10) / float64(b00)
	rest := max(float64(b11)-l*float64(b10), 1e-6*float64(b11))
	d.inv = [3]float32{float32(1/float64(b00) + l*l/rest), float32(-l / rest), float32(1 / rest)}
}

// trust compares B⁻¹ with B by the entries of B⁻¹B − I, each in units of its
// features, and falls back as small.trust does.
func (d *pair) trust(first [2]float32) bool {
	b, p := &d.b, &d.inv
	const ok = smallTrust
	e00, e11 := p[0]*b[0]+p[1]*b[1]-1, p[1]*b[1]+p[2]*b[2]-1
	e01, e10 := p[0]*b[1]+p[1]*b[2], p[1]*b[0]+p[2]*b[1]
	if e00*e00 < ok*ok && e11*e11 < ok*ok && e01*e01*b[0] < ok*ok*b[2] && e10*e10*b[2] < ok*ok*b[0] &&
		b[0] > smallFaded*first[0] && b[2] > smallFaded*first[1] {
		return true
	}
	d.restart(b[0]+smallDelta*(b[0]+smallTrace*first[0]), b[1], b[2]+smallDelta*(b[2]+smallTrace*first[1]))
	return false
}

// rescale multiplies what was learned of the harvests.
func (d *pair) rescale(k float32) {
	for j := range d.bx {
		d.bx[j] *= k
		d.rx[j] *= k
	}
}

// pairNumbers is how many numbers a pair has.
const pairNumbers = 18

// append appends all numbers, and take takes them up.
func (d *pair) append(v []float64) []float64 {
	for _, part := range d.parts() {
		for _, x := range part {
			v = append(v, float64(x))
		}
	}
	return v
}

func (d *pair) take(v []float64) {
	k := 0
	for _, part := range d.parts() {
		for j := range part {
			part[j] = float32(v[k])
			k++
		}
	}
}

func (d *pair) parts() [7][]float32 {
	return [7][]float32{d.b[:], d.inv[:], d.a[:], d.bx[:], d.bc[:], d.rx[:], d.rc[:]}
}

// keep forgets: everything but r times k, B⁻¹ over k.
func (d *pair) keep(k float32) {
	over := 1 / k
	for j := range d.b {
		d.b[j] *= k
		d.inv[j] *= over
	}
	for j := range d.a {
		d.a[j] *= k
	}
	for j := range d.bx {
		d.bx[j] *= k
		d.bc[j] *= k
	}
}

// add adds the matrix G = (g00, g10; g10, g11) to B, and to B⁻¹ by Sherman and
// Morrison, once for each column of its Cholesky factor.
func (d *pair) add(g00, g10, g11 float32) {
	d.b[0] += g00
	d.b[1] += g10
	d.b[2] += g11
	if g00 > 0 {
		d.morrison(1, g10/g00, g00)
		g11 -= g10 * g10 / g00
	}
	if g11 > 0 {
		d.morrison(0, 1, g11)
	}
}

// morrison updates B⁻¹ for B + c φφᵀ:
//
//	B⁻¹ ← B⁻¹ − c vvᵀ/(1 + c φᵀv),  v = B⁻¹φ
func (d *pair) morrison(f0, f1, c float32) {
	v0, v1 := d.inv[0]*f0+d.inv[1]*f1, d.inv[1]*f0+d.inv[2]*f1
	k := c / (1 + c*(v0*f0+v1*f1))
	d.inv[0] -= k * v0 * v0
	d.inv[1] -= k * v0 * v1
	d.inv[2] -= k * v1 * v1
}

// solve takes S steps r ← Mr + g with M = I + γB⁻¹A, g = γB⁻¹b̄ for both
// right-hand sides, by doubling: Mᵏ and I + M + … + Mᵏ⁻¹ for the bits of S.
func (d *pair) solve(gamma float32, steps int) {
	var g [4]float32 // γB⁻¹(b̄ₓ | b̄_c)
	i00, i10, i11 := gamma*d.inv[0], gamma*d.inv[1], gamma*d.inv[2]
	m00, m01 := 1+i00*d.a[0]+i10*d.a[2], i00*d.a[1]+i10*d.a[3]
	m10, m11 := i10*d.a[0]+i11*d.a[2], 1+i10*d.a[1]+i11*d.a[3]
	g[0], g[1] = i00*d.bx[0]+i10*d.bx[1], i10*d.bx[0]+i11*d.bx[1]
	g[2], g[3] = i00*d.bc[0]+i10*d.bc[1], i10*d.bc[0]+i11*d.bc[1]
	for ; steps > 0; steps >>= 1 {
		if steps&1 != 0 {
			d.rx[0], d.rx[1] = m00*d.rx[0]+m01*d.rx[1]+g[0], m10*d.rx[0]+m11*d.rx[1]+g[1]
			d.rc[0], d.rc[1] = m00*d.rc[0]+m01*d.rc[1]+g[2], m10*d.rc[0]+m11*d.rc[1]+g[3]
		}
		// Twice the steps: M² and Mg + g.
		g[0], g[1] = m00*g[0]+m01*g[1]+g[0], m10*g[0]+m11*g[1]+g[1]
		g[2], g[3] = m00*g[2]+m01*g[3]+g[2], m10*g[2]+m11*g[3]+g[3]
		m00, m01, m10, m11 = m00*m00+m01*m10, m01*(m00+m11), m10*(m00+m11), m11*m11+m01*m10
	}
}
