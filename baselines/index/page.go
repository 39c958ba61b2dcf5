package index

import "math"

// Page returns Cγ of a page at a real age, in epochs: that of [env.NewPage] with the rate of
// change Δ and the importance μ,
//
//	Cγ(a) = μ/Δ·(1 − e^(−Δa)(1 + a(1 − e^(−Δ))))
//
// It keeps its digits where Δa is near 0: up to .01 by a series.
func Page(change, importance, age float64) float64 {
	y := change * age
	if y < 1e-2 {
		// With a(1 − e^(−Δ)) = y(1 − h): 1 − e^(−y)(1 + y(1 − h)) = 1 − e^(−y)(1 + y) + yh·e^(−y)
		h := change * (1./2 - change*(1./6-change/24))
		return importance / change * (y*y*(1./2-y*(1./3-y*(1./8-y/30))) + y*h*math.Exp(-y))
	}
	return importance / change * (1 - math.Exp(-y)*(1-age*math.Expm1(-change)))
}
