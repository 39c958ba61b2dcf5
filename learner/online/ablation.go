package online

// This file holds what the priced actor-critic needs for ablations only: values
// fitted by polynomials, and values anchored after the crawl.

// fitted returns L = x − λC + V(1) − V(αx + u), V anchored at V(1) = 0.
func (p *core) fitted(i int, x, age float64) float64 {
	l := x - p.price*p.costs[i]
	if p.poly == nil { // V = P(s − 1) below Θ, x above it
		turn, profit := float64(p.turn[i]), p.profit(i)
		switch {
		case profit <= 0:
			return l - max(0, p.after(i, x)-p.price*p.costs[i])
		case age < turn:
			return l - profit*age
		}
		return l - profit*(turn-1) - (p.after(i, x) - p.top(i))
	}
	var f [maxFeatures]float64
	rx, rc := p.poly.weights(i)
	for j, v := range p.powers(i, p.after(i, x), age+1, &f) {
		l -= (rx[j]*p.unit - p.price*rc[j]) * v
	}
	return l
}

// powers returns the features z, z², … of a state, or of an age, both 0 right
// after a crawl.
func (p *core) powers(i int, x, age float64, dst *[maxFeatures]float64) []float64 {
	z := (age - 1) / p.period
	if p.set.Critic == "polynomial" {
		// z = (x − u)/(u* − u)
		z = 0
		if u, end := p.gain(i), p.ceiling(i); u < end {
			z = (x - u) / (end - u)
		}
	}
	f := dst[:p.poly.l]
	v := z
	for k := range f {
		f[k] = v
		v *= z
	}
	return f
}

// fit takes a closed cycle into the polynomial critic of source i, transition
// by transition.
func (p *core) fit(i int, harvest, cost, w float64) bool {
	var a, b, d [maxFeatures]float64
	ages := int(p.age[i])
	eta, work := float64(p.eta[i]), float64(p.work[i])
	x := p.gain(i)
	phi, change := p.powers(i, x, 1, &a), d[:p.poly.l]
	for k := 1; k <= ages; k++ {
		next := b[:p.poly.l]
		rx, rc := -eta, -work
		if k < ages {
			x = p.after(i, x)
			next = p.powers(i, x, float64(k+1), &b)
		} else {
			clear(next)
			rx, rc = harvest-eta, cost-work
		}
		for j, v := range next {
			change[j] = v - phi[j]
		}
		p.poly.add(i, phi, change, rx, rc, w/((1-w)*float64(ages)+float64(k)*w))
		copy(phi, next)
	}
	trusted := p.poly.trust(i)
	p.poly.solve(i, ages)
	return trusted
}
