package lspe

import "math"

// A crawl that brings far more or less than expected says that the source has
// become another one. Two sums of what exceeds one standard deviation (Page, 1954)
// tell it from noise, and the source is then begun anew from its last crawl and the
// pooled curve. A deviation is that of the square roots (Anscombe, 1948),
//
//	ζ = 2(√(X/φ + ⅜) − √(m/φ + ⅜)),  φ = D + .15²m
//
// for a harvest X of mean m and variance φm, a sum of items of size φ: the deviation of
// √(X/φ) is about ½ whatever the mean. In units of √(φm) the one item of a quiet source is
// three standard deviations, and three such in a row would be a jump. What exceeds ten
// standard deviations counts as ten in D: so votes of heavy tails do not hide jumps, and
// where items are rarer than D says, a few of them bring D to their size.
//
// Where a tenth of the sources jump at about one time the world has changed: each of the
// others counts as having few cycles at its next crawl.

const anscombe = 3. / 8 // of the root that gives a Poisson count the variance ¼ at any mean

// changeDetected takes in what a crawl brought and reports whether the level of the
// source has jumped.
func (s *Source) changeDetected(z, harvest float64) bool {
	mean := s.expected(z)
	if !(mean > 0) {
		return false
	}
	e := harvest - mean
	if s.Cycles >= int32(judged) {
		phi := s.Dispersion + modelError*modelError*mean
		deviation := 2 * (math.Sqrt(harvest/phi+anscombe) - math.Sqrt(mean/phi+anscombe))
		zeta := float32(max(-surprise, min(surprise, deviation)))
		s.CusumUp = max(0, s.CusumUp+zeta-1)
		s.CusumDown = max(0, s.CusumDown-zeta-1)
		if float64(max(s.CusumUp, s.CusumDown)) > alarm {
			return true
		}
		sigma := math.Sqrt(phi * mean)
		e = max(-rarest*sigma, min(rarest*sigma, e))
	}
	s.Dispersion += max(1/float64(s.Cycles), 1/dispersions) * (e*e/mean - s.Dispersion)
	return false
}

// count takes in whether the source of a crawl has changed. share is the number of
// sources that did so among the last 4N crawls.
func (l *Learner) count(changed bool, now int) {
	l.share -= l.share / (worldMemory * float64(len(l.src)))
	if !changed {
		return
	}
	l.share++
	if l.share > worldShare*float64(len(l.src)) {
		l.share, l.changed = 0, now
		l.epochs = min(l.epochs, int(worldMemory*l.round))
	}
}
