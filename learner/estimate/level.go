package estimate

import (
	"math"

	"ephemera/env"
)

// level is how much one source publishes. A crawl brings back all items since
// the last one, with their age. Interest is counted as it was at publication,
// e^(ca) times what is found at the age a, and cut where it is far above what
// is usual at the source: a few huge items would drown the rest. What the cut
// takes away is put back as the mean share that it takes from all sources.
//
// What is foretold is a mean over forecasters: profiles (flat, common to all
// sources, the source's own) times memories (from all that was seen down to some
// days of hourly epochs). Each weighs as much as it was right about the harvests
// of the past.
type level struct {
	N, Log, Log2   float64 // items, Σ ln ξ, Σ (ln ξ)²
	Cut, Cut2, Raw float64 // Σ over items of cut interest, its square, uncut interest
	C, Lag, Ages   float64 // decay rate behind these sums, Σ cut interest·age, Σ age

	Got   [memories]float64            // Σ cut interest, by memory
	Want  [memories][profiles]float64  // Σ exposure·profile, epochs
	Score [profiles * memories]float64 // Σ ln quasi-likelihood of the harvests
	Rate  [profiles * memories]float64 // cut interest per epoch, of each forecaster
	Mix   [profiles]float64            // Σ weight·rate, by profile
	Theta [profiles]float64            // ln of the rate by the longest memory
	Var   float64                      // of ln of what is foretold, were c known
	Long  float64                      // variance of Theta
	Sway  float64                      // ∂ ln B/∂ ln c
}

// common is the law of all sources.
type common struct {
	Profile profile
	VaryOwn [2]float64                   // variance of the sources' own profiles around it: hours, days
	Log     [profiles * memories]float64 // of the weight of a forecaster where a source has not shown its own
	Rate    float64                      // mean level, cut interest per epoch; 0 until something was found
	Mean    float64                      // of ln of the sources' levels
	Var     float64                      // of the same
	Phi     float64                      // Σv²/Σv of cut interest v
	Item    float64                      // its mean
	Spread  float64                      // s.d. of ln ξ within a source
	Tail    float64                      // mean interest over mean cut interest
	Psi     float64                      // variance of harvests over that of Poisson items
	PsiN    float64                      // harvests behind it
}

// The profiles.
const (
	flatProfile = iota
	commonProfile
	ownProfile
	profiles
)

// The memories: how far back a level looks, in epochs, apart from the horizon.
const memories = 4

var memory = [memories]float64{math.Inf(1), 1024, 256, 64}

// fading is what a memory keeps from epoch to epoch.
var fading = func() (v [memories]float64) {
	for m := range v {
		v[m] = math.Exp(-1 / memory[m])
	}
	return v
}()

const (
	// drift is the weight, in units of φ, with which a level leans on that of
	// the next longer memory: levels are thought to move by a half, 1/√drift.
	drift     = 4
	cutItems  = 10   // items that the common spread of ln ξ counts as
	tailItems = 200  // items that the common tail counts as
	maxGrowth = 30   // of ln interest, back to publication
	mostItem  = 10   // times the most that was ever found, what an item may have been
	psiMemory = 1000 // harvests
	psiFirst  = 20
	psiCut    = 25 // of a squared standardised deviation
)

// inUse lists the forecasters that are in use, as profile·memories + memory, and
// counts their profiles.
func (e *Estimates) inUse() (cast []int, profs int) {
	profs = profiles
	if !e.clock.dated() || e.set.Profile == "off" {
		profs = 1
	}
	for j := range profs * memories {
		if j%memories == 0 || e.set.Memory != "long" {
			cast = append(cast, j)
		}
	}
	return cast, profs
}

// phi returns the variance of the cut interest of a Poisson stream in units of
// its mean, Σv²/Σv; that of all sources counts as one item.
func (e *Estimates) phi(s *source) float64 {
	l := &s.Level
	switch {
	case e.Common.Phi > 0:
		return (l.Cut2 + e.Common.Phi*e.Common.Item) / (l.Cut + e.Common.Item)
	case l.Cut > 0:
		return l.Cut2 / l.Cut
	}
	return 0
}

// top returns where the interest of an item is cut: at 1.5 standard deviations
// and a half above the mean of ln ξ. Of exponential marks that cuts off .2 %.
func (e *Estimates) top(l *level) float64 {
	if l.N < 1 {
		return math.Inf(1)
	}
	m := l.Log / l.N
	v := (max(0, l.Log2-m*l.Log) + cutItems*e.Common.Spread*e.Common.Spread) / (l.N + cutItems)
	return math.Exp(m + 1.5*math.Sqrt(v) + .5)
}

// addLevel takes in a crawl of epoch n; keep is what the horizon leaves of what
// was known.
func (e *Estimates) addLevel(s *source, cr *env.Crawled, n int, keep float64) {
	l := &s.Level
	c, doubt := math.Exp(s.Slope.Theta), math.Sqrt(s.Slope.Var)
	e.redo(s, c)
	found := e.spread(s, cr, c, doubt)
	e.judge(s, n, cr.Age, c, found)

	s.forget(keep, float64(cr.Age))
	weight := [memories]float64{1, 1, 1, 1}
	for k, y := range e.y {
		hour, day := e.clock.at(n - k)
		if s.Days != nil {
			s.Days.Tally.add(hour, day, y, e.e[k])
		}
		for _, j := range e.cast {
			p, m := j/memories, j%memories
			if p == flatProfile {
				l.Got[m] += weight[m] * y
			}
			l.Want[m][p] += weight[m] * e.e[k] * e.shape(s, p, hour, day)
		}
		for m := range weight {
			weight[m] *= fading[m]
		}
	}
	e.shapeOwn(s)
	e.setLevel(s)
}

// forget takes weight from what is known: all of it, and what the shorter
// memories have left after the epochs of a crawl.
func (s *source) forget(keep, age float64) {
	l := &s.Level
	if s.Days != nil {
		s.Days.Tally.scale(keep, keep)
	}
	for _, v := range []*float64{&l.N, &l.Log, &l.Log2, &l.Cut, &l.Cut2, &l.Raw, &l.Lag, &l.Ages} {
		*v *= keep
	}
	for m := range l.Got {
		f := keep * math.Exp(-age/memory[m])
		l.Got[m] *= f
		for p := range l.Want[m] {
			l.Want[m][p] *= f
		}
	}
	for j := range l.Score {
		l.Score[j] *= keep
	}
}

// expose multiplies the exposures, after a window was found.
func (l *level) expose(f float64) {
	for m := range l.Want {
		for p := range l.Want[m] {
			l.Want[m][p] *= f
		}
	}
}

// spread writes what the crawl tells of each epoch since the last one and
// returns the cut interest as it was found. An error of c grows with the age,
// so interest is taken back to its publication only as far as the standard
// error of ca is below .3; older epochs have an exposure below 1 instead, and
// their items count for as much less in what is usual at the source. Beyond
// the window the exposure is 0.
func (e *Estimates) spread(s *source, cr *env.Crawled, c, doubt float64) (found float64) {
	l := &s.Level
	limit := min(maxGrowth, .3/max(doubt, 1e-3))
	window := s.reach()
	e.y, e.e = e.y[:0], e.e[:0]
	for k := range cr.Age {
		seen := max(0, min(1, window-float64(k)))
		e.y = append(e.y, 0)
		e.e = append(e.e, exposure(float64(k), float64(k)+seen, c, limit))
	}
	first := l.N == 0
	if first { // its first items tell the scale
		e.measure(l, cr.Items, c, limit)
	}
	top := e.top(l)
	for k, it := range cr.Items {
		if !(it.Interest > 0) {
			continue
		}
		ca := min(c*it.Age, limit)
		xi := min(math.Exp(e.ln[k]+ca), mostItem*e.Most)
		v := min(xi, top)
		e.y[min(max(int(it.Age), 0), cr.Age-1)] += v
		found += e.Units(it.Interest) * (v / xi)
		l.Cut += v
		l.Cut2 += v * v
		l.Raw += xi
		l.Lag += v * min(it.Age, limit/c)
	}
	if !first {
		e.measure(l, cr.Items, c, limit)
	}
	return found
}

// exposure returns ∫ e^min(0, limit−ca) da from age lo to hi.
func exposure(lo, hi, c, limit float64) (e float64) {
	whole := limit / c
	if lo < whole {
		e, lo = min(hi, whole)-lo, min(hi, whole)
	}
	return e + math.Exp(min(0, limit-c*lo))*env.Decayed(c, hi-lo)
}

// measure takes in what is usual at the source.
func (e *Estimates) measure(l *level, items []env.Item, c, limit float64) {
	for k, it := range items {
		if !(it.Interest > 0) {
			continue
		}
		w, ca := 1.0, c*it.Age
		if ca > limit {
			w, ca = math.Exp(limit-ca), limit
		}
		ln := e.ln[k] + ca
		l.N += w
		l.Log += w * ln
		l.Log2 += w * ln * ln
		l.Ages += w * it.Age
	}
}

// redo takes the sums of a source to another decay rate. An item of the age a
// was counted as e^(ca) of what was found of it; to first order, what they
// count together changes with their mean age.
func (e *Estimates) redo(s *source, c float64) {
	l := &s.Level
	old := l.C
	l.C = c
	if l.Cut == 0 || old == c {
		return
	}
	g := math.Exp(max(-maxGrowth, min((c-old)*l.Lag/l.Cut, 2)))
	// Nor are the items taken to more, in the mean, than one may have been.
	g = min(g, max(1, mostItem*e.Most*s.Slope.N/l.Raw))
	for m := range l.Got {
		l.Got[m] *= g
	}
	for _, v := range []*float64{&l.Cut, &l.Raw, &l.Lag} {
		*v *= g
	}
	l.Cut2 *= g * g
	if s.Days != nil {
		s.Days.Tally.scale(g, 1)
	}
	// Σ(l + d)², with the same d for all
	d := (c - old) * l.Ages / l.N
	l.Log2 += 2*d*l.Log + l.N*d*d
	l.Log += l.N * d
}

// judge scores the forecasters by what they foretold of a harvest X. With μ
// what was foretold and the variance φψμ the quasi-log-likelihood is
//
//	(X ln μ − μ)/(φψ)
//
// up to what is the same for all. It asks for the mean of X, as far as a few
// large harvests allow it.
func (e *Estimates) judge(s *source, n, age int, c, found float64) {
	l, com := &s.Level, &e.Common
	phi := e.phi(s)
	if !(l.Rate[0] > 0) || !(phi > 0) {
		return
	}
	var inflow [profiles]float64 // Σ α^k profile, for a level of 1
	var sum, square float64
	w, fade := env.Decayed(c, 1), math.Exp(-c)
	for k := range min(age, int(min(math.Ceil(s.reach()), 1e9))) {
		hour, day := e.clock.at(n - k)
		for p := range e.profs {
			inflow[p] += w * e.shape(s, p, hour, day)
		}
		sum += w
		square += w * w
		if w *= fade; w < 1e-9 {
			break
		}
	}
	var mean float64
	for p := range e.profs {
		mean += l.Mix[p] * inflow[p]
	}
	if !(mean > 0) {
		return
	}
	phi *= square / sum
	d := found - mean
	noise := phi*mean + mean*mean*l.Var
	com.Psi += (min(d*d/noise, psiCut) - com.Psi) / com.PsiN
	com.PsiN = min(com.PsiN+1, psiMemory)
	for _, j := range e.cast {
		guess := l.Rate[j] * inflow[j/memories]
		l.Score[j] += (found*math.Log(guess/mean) - guess + mean) / (phi * com.Psi)
	}
}

// setLevel brings what the forecasters foretell, and their mixture, up to date.
// With T found in E epochs, a level leans on that of the next longer memory, and
// the longest on the mean of the sources, by
//
//	(T + w b)/(E + w),   w = φψ/(b v),   variance φψ/(E + w) of itself
//
// where b is what it leans on and v the variance of the level in units of b².
func (e *Estimates) setLevel(s *source) {
	if !e.Known() {
		return
	}
	l := &s.Level
	phi := e.phi(s) * e.Common.Psi
	var variance [profiles * memories]float64
	for _, j := range e.cast {
		p, m := j/memories, j%memories
		if m == 0 {
			variance[j] = e.longest(l, p, phi)
			l.Rate[j] = math.Exp(l.Theta[p])
			continue
		}
		lean := l.Rate[j-1]
		w := drift * phi / lean
		l.Rate[j] = (l.Got[m] + w*lean) / (l.Want[m][p] + w)
		variance[j] = phi / l.Rate[j] / (l.Want[m][p] + w)
	}
	l.Long = variance[flatProfile*memories]
	var w [profiles * memories]float64
	e.weigh(l, &w)
	l.Mix, l.Var = [profiles]float64{}, 0
	for _, j := range e.cast {
		l.Mix[j/memories] += w[j] * l.Rate[j]
		l.Var += w[j] * variance[j]
	}
	if l.Cut > 0 {
		l.Sway = l.C * l.Lag / l.Cut
	}
}

// prior returns how many sources the first weight of a forecaster counts as.
// Levels are thought to be steady until they are seen to move.
func prior(j int) float64 {
	if j%memories > 0 {
		return .02
	}
	return 1
}

// longest finds the mode of ln B given what was found by the longest memory, T in
// E epochs, and the law of the sources, ln B ~ N(m, τ²):
//
//	(T − EB)/φψ = (ln B − m)/τ²
//
// and returns the variance, 1/(EB/φψ + 1/τ²).
func (e *Estimates) longest(l *level, p int, phi float64) float64 {
	got, want := l.Got[0]/phi, l.Want[0][p]/phi
	t := l.Theta[p]
	if t == 0 {
		t = e.Common.Mean
	}
	var info float64
	for range 3 {
		b := math.Exp(t)
		info = want*b + 1/e.Common.Var
		t += clip((got-want*b-(t-e.Common.Mean)/e.Common.Var)/info, 1)
	}
	l.Theta[p] = t
	return 1 / info
}

// weigh writes the weights of the forecasters of a source.
func (e *Estimates) weigh(l *level, w *[profiles * memories]float64) {
	best := math.Inf(-1)
	for _, j := range e.cast {
		best = max(best, e.Common.Log[j]+l.Score[j])
	}
	var sum float64
	for _, j := range e.cast {
		w[j] = math.Exp(e.Common.Log[j] + l.Score[j] - best)
		sum += w[j]
	}
	for j := range w {
		w[j] /= sum
	}
}

// fitCommon brings what is common to all sources up to date.
func (e *Estimates) fitCommon() {
	com := &e.Common
	var n, rate, cut, cut2, items, raw, spread, dof float64
	for i := range e.Sources {
		l := &e.Sources[i].Level
		if want := l.Want[0][flatProfile]; want > 0 {
			n++
			rate += l.Got[0] / want
		}
		if l.Cut > 0 {
			cut += l.Cut
			cut2 += l.Cut2
			items += l.N
			raw += l.N * l.Raw / l.Cut // in units of the source's mean item
		}
		if l.N > 2 {
			spread += max(0, l.Log2-l.Log*l.Log/l.N)
			dof += l.N - 1
		}
	}
	if !(rate > 0) {
		return
	}
	if com.Rate == 0 { // until the sources have been compared
		com.Mean, com.Var = math.Log(rate/n), 1
	}
	com.Rate = rate / n
	if cut > 0 {
		com.Phi, com.Item, com.Tail = cut2/cut, cut/items, raw/items
	}
	if dof > 0 {
		com.Spread = math.Sqrt(spread / dof)
	}
	e.fitLaw()
	e.fitProfiles()

	// The weights where a source has not shown its own are the mean of the
	// sources' weights: one step of expectation-maximisation.
	var mean, w [profiles * memories]float64
	for i := range e.Sources {
		s := &e.Sources[i]
		e.shapeOwn(s)
		e.setLevel(s)
		e.weigh(&s.Level, &w)
		for j := range w {
			mean[j] += w[j]
		}
	}
	for j := range mean {
		com.Log[j] = math.Log(mean[j] + prior(j))
	}
}

// fitLaw takes a step of expectation-maximisation of the law of the sources.
func (e *Estimates) fitLaw() {
	var law normal
	for i := range e.Sources {
		if l := &e.Sources[i].Level; l.Want[0][flatProfile] > 0 && l.Long != 0 {
			law.add(l.Theta[flatProfile], l.Long)
		}
	}
	law.fit(&e.Common.Mean, &e.Common.Var)
}

// Inflow returns B = λξ̄ of source i in the mean over the hours and days, in
// units of interest per epoch, and its standard error.
func (e *Estimates) Inflow(i int) (b, doubt float64) {
	if !e.Known() {
		return 1, 0
	}
	s := &e.Sources[i]
	l := &s.Level
	for _, v := range l.Mix {
		b += v
	}
	tail := e.Common.Tail
	if l.Cut > 0 {
		tail = (l.N*l.Raw/l.Cut + tailItems*e.Common.Tail) / (l.N + tailItems)
	}
	return b * tail, math.Sqrt(l.Var + l.Sway*l.Sway*s.Slope.Var)
}
