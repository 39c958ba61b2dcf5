package lspe

// start ends the first pass, when each source was crawled or a round is over, since crawls
// may fail: the pooled curve by what was found, and the price at which the thresholds that
// follow from it spend the budget. A pass in which nothing was found is repeated.
func (l *Learner) start() {
	l.pooled = newPooled(l.round)
	p := &l.pooled
	var cost float64
	var mid [poolFeatures]float64
	n, square := 0, 0.
	for i := range l.src {
		if s := &l.src[i]; s.Cycles > 0 {
			n++
			cost += l.costs[i]
			square += (s.Mean*s.Mean - square) / float64(n)
			l.harvest += s.Mean
			for k, f := range p.features(float64(s.Span)) {
				mid[k] += (f - mid[k]) / float64(n)
			}
		}
	}
	mean := l.harvest / float64(n)
	if !(mean > 0) { // or not a number, where no crawl succeeded
		l.line()
		return
	}
	p.mean = 1
	p.mean = mean / p.of(&mid)
	spread := square / mean / mean
	l.spread, l.square = square-mean*mean+square/float64(n), mean*mean
	l.cold = false
	l.between.Mean = 1
	l.harvest /= cost
	for i := range l.src {
		if s := &l.src[i]; s.Cycles > 0 {
			psi := p.features(float64(s.Span))
			p.add(&psi, &mid, s.Mean, 1, spread)
		}
	}
	p.tabulate()
	if l.set.Price == "learned" {
		l.price = l.clearing()
	}
	for i := range l.src {
		if s := &l.src[i]; s.Cycles > 0 {
			l.restart(i, float64(s.Span), s.Mean)
			l.draw(s)
			l.sleep(l.standing(i, float64(s.Noise), l.mean(i)))
		}
	}
}

// clearing returns the price at which the thresholds by the pooled curve spend the
// budget, by bisection over at most some 4096 of the sources.
func (l *Learner) clearing() float64 {
	step := 1 + len(l.src)/4096
	spends := func(price float64) bool {
		var cost float64
		for i := 0; i < len(l.src); i += step {
			if s := &l.src[i]; s.Cycles > 0 {
				prior := levelPrior * l.pooled.mean
				level := (s.Mean + prior) / (l.pooled.at(float64(s.Span)) + prior)
				cost += l.spends(i, l.pooled.threshold(price*l.cost(i), level))
			}
		}
		return cost*float64(step) > l.budget
	}
	low, high := 0., l.harvest
	if !spends(low) || high == 0 {
		return 0
	}
	for range 40 {
		if !spends(high) {
			break
		}
		high *= 2
	}
	for range 50 {
		if mid := (low + high) / 2; spends(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// restart begins source i, which has brought that harvest at that age, from the
// pooled curve.
func (l *Learner) restart(i int, age, harvest float64) {
	s := &l.src[i]
	s.forget()
	s.Cycles, s.Mean = 1, harvest
	psi := l.pooled.features(age)
	for k, f := range psi {
		s.Phi[k] = float32(f)
	}
	s.Unit = float32(l.round) // of no power of z yet
	level, _ := l.level(s)
	l.move(i, l.pooled.threshold(l.priced(i, l.price)*l.cost(i), level))
	s.LastTheta = float32(s.Theta)
	age, harvest = l.shorten(s, age, harvest)
	psi = l.pooled.features(age)
	l.learn(i, age, harvest, &psi, 1)
	if l.set.Critic == "random" {
		for j := range l.set.Features {
			s.Wait[j], s.Toll[j] = l.rand.NormFloat64()*harvest, l.rand.NormFloat64()*l.cost(i)
		}
	}
}
