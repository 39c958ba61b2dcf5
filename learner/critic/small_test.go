package critic

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ephemera/env/stream"
)

// TestSmall holds the running inverse of a few features against gonum's of a matrix
// that is averaged next to it, over 10⁵ steps, some of which change the units.
func TestSmall(t *testing.T) {
	r := stream.New(1, stream.Test)
	for l := 1; l <= Most; l++ {
		p := make(Small, l*(l+1)/2)
		p.Begin(l, 1)
		b := mat.NewSymDense(l, nil)
		for i := range l {
			b.SetSym(i, i, 1)
		}
		phi := make([]float64, l)
		unit := 1.
		for n := 1; n <= 100_000; n++ {
			v, z := 1., r.Float64()*2/unit
			for i := range phi {
				phi[i] = v
				v *= z
			}
			w := 1 / math.Sqrt(float64(n+1))
			p.Scale(1 / (1 - w))
			b.ScaleSym(1-w, b)
			p.Add(phi, w)
			b.SymRankOne(b, w, mat.NewVecDense(l, phi))
			if n%4999 == 0 {
				by := math.Pow(2, float64(r.Intn(3)-1))
				unit *= by
				p.Rescale(0, by)
				for i := range l {
					for j := range i + 1 {
						b.SetSym(i, j, b.At(i, j)/math.Pow(by, float64(i+j)))
					}
				}
			}
			if n%997 > 0 && n > 20 {
				continue
			}
			if off := worst(b, dense(l, p)); off > 1e-6 {
				t.Fatalf("%d features, step %d: BP − I has entries up to %v", l, n, off)
			}
			if a := array(b); !p.Trusted(l, &a) {
				t.Fatalf("%d features, step %d: not trusted", l, n)
			}
		}
		var y, v [Most]float64
		for i := range l {
			v[i] = r.NormFloat64()
		}
		p.Mul(&y, &v)
		var want mat.VecDense
		want.MulVec(dense(l, p), mat.NewVecDense(l, v[:l]))
		for i := range l {
			if math.Abs(y[i]-want.AtVec(i)) > 1e-12*(1+mat.Norm(&want, 2)) {
				t.Errorf("%d features: Pv is %v; want %v", l, y, want)
			}
		}
		a := array(b)
		p[0] *= 1.01
		if p.Trusted(l, &a) {
			t.Errorf("%d features: an inverse that is 1 %% off is trusted", l)
		}
		p.Tikhonov(l, &a)
		if off := worst(b, dense(l, p)); off > 1e-4 || !p.Trusted(l, &a) {
			t.Errorf("%d features: by Tikhonov BP − I has entries up to %v", l, off)
		}
	}
}

// TestSmallTikhonov holds the Tikhonov form against gonum's inverse of B + δ diag B, where
// B is of any rank; and what it solves, within reach of B, is solved.
func TestSmallTikhonov(t *testing.T) {
	r := stream.New(2, stream.Test)
	for range 400 {
		l := 2 + r.Intn(Most-1)
		b := mat.NewSymDense(l, nil)
		for range 1 + r.Intn(l+2) {
			phi := mat.NewVecDense(l, nil)
			for i := range l {
				phi.SetVec(i, r.NormFloat64())
			}
			b.SymRankOne(b, 1, phi)
		}
		p, a := make(Small, l*(l+1)/2), array(b)
		p.Tikhonov(l, &a)
		ridged := mat.DenseCopyOf(b)
		for i := range l {
			ridged.Set(i, i, b.At(i, i)*(1+smallDelta))
		}
		if off := worst(ridged, dense(l, p)); off > 1e-3 {
			t.Fatalf("(B + δ diag B)P − I has entries up to %v", off)
		}
		v := mat.NewVecDense(l, nil)
		for i := range l {
			v.SetVec(i, r.NormFloat64())
		}
		v.MulVec(b, v)
		var y, again mat.VecDense
		y.MulVec(dense(l, p), v)
		again.MulVec(b, &y)
		again.SubVec(&again, v)
		if off := mat.Norm(&again, 2); off > 1e-5*mat.Norm(v, 2) {
			t.Fatalf("By = v = %v is off by %v", rows(v), off)
		}
	}
}

// dense returns P as gonum's.
func dense(l int, p Small) *mat.Dense {
	d := mat.NewDense(l, l, nil)
	for i := range l {
		for j := range l {
			d.Set(i, j, p.at(i, j))
		}
	}
	return d
}

// array returns the lower triangle of B.
func array(b mat.Matrix) (a [Most][Most]float64) {
	l, _ := b.Dims()
	for i := range l {
		for j := range i + 1 {
			a[i][j] = b.At(i, j)
		}
	}
	return a
}

// BenchmarkSmall is what a crawl takes of the running inverse of four features, next to the
// same by gonum's matrices, in turns: B⁻¹ ← B⁻¹ − k uuᵀ with u = B⁻¹φ, and y = B⁻¹v. There is
// one in each of up to ten million sources.
func BenchmarkSmall(b *testing.B) {
	const l, w = 4, .01
	p := make(Small, l*(l+1)/2)
	p.Begin(l, 1)
	phi, v := []float64{1, .5, .25, .125}, [Most]float64{1, 2, 3, 4}
	var y [Most]float64
	here := func() {
		p.Scale(1 / (1 - w))
		p.Add(phi, w)
		p.Mul(&y, &v)
	}
	inverse := mat.NewSymDense(l, nil)
	for i := range l {
		inverse.SetSym(i, i, 1)
	}
	x, in := mat.NewVecDense(l, phi), mat.NewVecDense(l, v[:])
	u, out := mat.NewVecDense(l, nil), mat.NewVecDense(l, nil)
	inTurns(b, 500, "mat", here, func() {
		inverse.ScaleSym(1/(1-w), inverse)
		u.MulVec(inverse, x)
		inverse.SymRankOne(inverse, -w/(1+w*mat.Dot(x, u)), u)
		out.MulVec(inverse, in)
	})
}
