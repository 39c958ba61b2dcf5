package critic

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ephemera/env/stream"
)

// TestSmall holds Small against gonum: the solution where B is well conditioned,
// and where it is singular the shortest of those that come nearest.
func TestSmall(t *testing.T) {
	r := stream.New(1, stream.Test)
	for round := range 400 {
		l := 1 + r.Intn(Most)
		rank := l
		if round%2 == 1 {
			rank = 1 + r.Intn(l)
		}
		var b [Most][Most]float64
		for range rank * 3 {
			var phi [Most]float64
			for i := range rank {
				phi[i] = r.NormFloat64()
			}
			for i := range l {
				for j := range l {
					b[i][j] += phi[i] * phi[j]
				}
			}
		}
		dense, v, want := mat.NewSymDense(l, nil), [Most]float64{}, make([]float64, l)
		for i := range l {
			v[i] = r.NormFloat64()
			for j := range i + 1 {
				dense.SetSym(i, j, b[i][j])
			}
		}
		var chol mat.Cholesky
		top := dense.SliceSym(0, rank)
		if !chol.Factorize(top) || chol.Cond() > 1e6 {
			continue
		}
		var x mat.VecDense
		if err := chol.SolveVecTo(&x, mat.NewVecDense(rank, append([]float64{}, v[:rank]...))); err != nil {
			t.Fatal(err)
		}
		copy(want, x.RawVector().Data)
		var s Small
		s.Factor(l, &b)
		s.Solve(&v)
		for i := range l {
			if math.Abs(v[i]-want[i]) > 1e-4*(1+math.Abs(want[i])) {
				t.Fatalf("round %d, rank %d of %d: %v; by gonum %v", round, rank, l, v[:l], want)
			}
		}
	}
}
