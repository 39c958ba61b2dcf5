package calendar

// Functions for FirstAge: nine figures suffice there, and tables are fast.

import "math"

// lambert returns z − 1 for the solution z ≥ 1 of z − log z = 1 + q²/2. In
// terms of Lambert's function, z = −W₋₁(−e^(−1−q²/2)). In q it is smooth, also
// at the branch point q = 0, where z = 1 + q + q²/3 + …
func lambert(q float64) float64 {
	t := q * lambertPerUnit
	k := int(t)
	if !(q < lambertEnd) {
		return lambertNewton(q)
	}
	// Cubic Hermite interpolation.
	a, b := &lambertTable[k], &lambertTable[k+1]
	t -= float64(k)
	d := b.z - a.z
	return a.z + t*(a.slope+t*((3*d-2*a.slope-b.slope)+t*(a.slope+b.slope-2*d)))
}

const (
	lambertPerUnit = 32
	lambertEnd     = 12
	// lambertErr bounds the error of lambert(q) relative to 1 + lambert(q).
	lambertErr = 1e-8
)

// lambertNode holds z − 1 and its slope over one step of the table.
type lambertNode struct{ z, slope float64 }

var lambertTable = func() (t [lambertEnd*lambertPerUnit + 1]lambertNode) {
	t[0] = lambertNode{0, 1. / lambertPerUnit}
	for k := 1; k < len(t); k++ {
		q := float64(k) / lambertPerUnit
		z := lambertNewton(q)
		// dz/dq = q z/(z − 1)
		t[k] = lambertNode{z, q * (1 + z) / z / lambertPerUnit}
	}
	return t
}()

// lambertNewton solves z − log(1+z) = q²/2 for z, here z − 1 of lambert, by
// Newton's method. The function is convex and the start lies above the
// solution, so the steps fall until rounding stops them.
func lambertNewton(q float64) float64 {
	// z − log(1+z) ≥ q²/2 at z = q + q²/2.
	z := q + q*q/2
	for range 100 {
		next := z - (z-math.Log1p(z)-q*q/2)*(1+z)/z
		if !(next < z) {
			break
		}
		z = next
	}
	return z
}

// logLess returns log(1 − x) for 0 < x < 1 to 1e−12.
func logLess(x float64) float64 {
	if x < 1e-4 {
		return math.Log1p(-x)
	}
	// 1 − x = 2^e m, and m = a(1 + f) with a the middle of one of 128 parts.
	b := math.Float64bits(1 - x)
	n := &logTable[b>>45&127]
	f := math.Float64frombits(b&(1<<52-1)|1023<<52)*n.inverse - 1
	return float64(int(b>>52)-1023)*math.Ln2 + n.log + f*(1-f*(1./2-f*(1./3-f*(1./4-f*(1./5)))))
}

// logNode holds 1/a and log a.
type logNode struct{ inverse, log float64 }

var logTable = func() (t [128]logNode) {
	for k := range t {
		a := 1 + (float64(k)+0.5)/128
		t[k] = logNode{1 / a, math.Log(a)}
	}
	return t
}()
