package critic

// The two passes over ℓ×ℓ matrices that a step of the critic makes. Each reads
// and writes its matrix once and does all that is to be done with it. Four sums
// in each row halve the time, because no addition waits for the one before.

// matrixPass takes A ← A + w φdᵀ and v ← v + A r with the new A.
func matrixPass(a, v, phi, d, r []float64, w float64) {
	l := len(phi)
	for i, f := range phi {
		row, d, r := a[i*l:][:l], d[:l], r[:l]
		wf := w * f
		var s0, s1, s2, s3, rest float64
		for len(row) >= 4 && len(d) >= 4 && len(r) >= 4 {
			x0, x1, x2, x3 := wf*d[0]+row[0], wf*d[1]+row[1], wf*d[2]+row[2], wf*d[3]+row[3]
			row[0], row[1], row[2], row[3] = x0, x1, x2, x3
			s0 += x0 * r[0]
			s1 += x1 * r[1]
			s2 += x2 * r[2]
			s3 += x3 * r[3]
			row, d, r = row[4:], d[4:], r[4:]
		}
		for j := range row {
			x := wf*d[j] + row[j]
			row[j] = x
			rest += x * r[j]
		}
		v[i] += (s0 + s2) + (s1 + s3) + rest
	}
}

// symmPass takes P ← P − zzᵀ and forms u = Pφ and y = Pv with the new P. P is
// held in full: loops of equal length cost less than half as many of changing
// length. Row and column see the same product z_i z_j, so that P stays
// symmetric to the last bit.
func symmPass(p, z, u, y, phi, v []float64) {
	l := len(z)
	for i, zi := range z {
		row, z, phi, v := p[i*l:][:l], z[:l], phi[:l], v[:l]
		var s0, s1, s2, s3, s, t0, t1, t2, t3, t float64
		for len(row) >= 4 && len(z) >= 4 && len(phi) >= 4 && len(v) >= 4 {
			x0, x1, x2, x3 := row[0]-zi*z[0], row[1]-zi*z[1], row[2]-zi*z[2], row[3]-zi*z[3]
			row[0], row[1], row[2], row[3] = x0, x1, x2, x3
			s0 += x0 * phi[0]
			s1 += x1 * phi[1]
			s2 += x2 * phi[2]
			s3 += x3 * phi[3]
			t0 += x0 * v[0]
			t1 += x1 * v[1]
			t2 += x2 * v[2]
			t3 += x3 * v[3]
			row, z, phi, v = row[4:], z[4:], phi[4:], v[4:]
		}
		for j := range row {
			x := row[j] - zi*z[j]
			row[j] = x
			s += x * phi[j]
			t += x * v[j]
		}
		u[i] = (s0 + s2) + (s1 + s3) + s
		y[i] = (t0 + t2) + (t1 + t3) + t
	}
}

// dot returns xᵀy. Two sums halve the wait of one addition for the one before.
func dot(x, y []float64) float64 {
	y = y[:len(x)]
	var s0, s1 float64
	i := 0
	for ; i < len(x)-1; i += 2 {
		s0 += x[i] * y[i]
		s1 += x[i+1] * y[i+1]
	}
	if i < len(x) {
		s0 += x[i] * y[i]
	}
	return s0 + s1
}
