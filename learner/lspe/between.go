package lspe

import "math"

// between is by how much sources differ from each other, which says how much the pooled curve
// counts in each (credibility; Bühlmann and Straub, 1970). A harvest of source i at age s is
//
//	X = a(1 + δ(ψ − ψ̄)) H̄(s) + noise,   ψ = ln(1 − e^(−s/16R)),
//
// a being its level and δ by how much the slope of its curve over ln s differs from that of H̄. The
// variances of both are moments: the noises of two harvests are independent, so the product of
// two deviations of one source is, in the mean, the square of what is its own.
//
//	u = X/aH̄ − 1, v its variance:  τ_δ² = E[δ²] ≈ Σ k (ψ − ψ̄)u/v · D / Σ k (ψ − ψ̄)²/v · E
//	x = X/H̄:                       ω² = E[(a − μ)²] ≈ Σ S (x − μ)(X̄/H̄ − μ) / Σ S
//	                               σ² ≈ Σ (X − aH̄)² / Σ (aH̄)²
//
// D and E are the means of (ψ − ψ̄)u/v and (ψ − ψ̄)²/v over the k cycles of the source before, so
// that the denominator is one over the squared error of τ_δ² where sources are alike; with S, the age
// at the crawl, each source counts as much as any other in ω² and in the mean level μ. σ² is the
// variance of a harvest of mean size. τ_δ² and ω² begin with values that are typical, which count as if
// they had been measured, and σ² begins at 0: a learner that has seen little takes sources for
// different.
type between struct {
	Slope     float64 `json:"slope"`     // Σ k (ψ − ψ̄)u/v · D
	Precision float64 `json:"precision"` // Σ k (ψ − ψ̄)²/v · E
	Rounds    float64 `json:"rounds"`    // Σ S/R
	Mean      float64 `json:"mean"`      // μ
	Level     float64 `json:"level"`     // Σ S/R (x − μ)(X̄/H̄ − μ)
	Error     float64 `json:"error"`     // Σ (X − aH̄)²
	Expected  float64 `json:"expected"`  // Σ (aH̄)²
}

// leastBetween is the least variance between sources: they are never taken to be alike altogether,
// else nothing would be learned of a single one.
const leastBetween = 1e-4

// mostSpan is how many rounds a cycle counts in the moments of levels.
const mostSpan = 10

// compare takes in the cycle that closes with a harvest at an age of features ψ, before it is
// learned. A harvest that surprises by more than any does counts as one that does not.
func (l *Learner) compare(s *Source, age, harvest float64, psi *[poolFeatures]float64, level, pooled float64) {
	b := &l.between
	v := l.variation(s)
	most := surprise * math.Sqrt(v)
	u := max(-most, min(most, harvest/(level*l.pooled.of(psi))-1))

	t, k := psi[0]-float64(s.Phi[0]), float64(s.Cycles)
	score, square := t*u/v, t*t/v
	b.Slope += k * score * float64(s.Score)
	b.Precision += k * square * float64(s.Square)
	s.Score += float32((score - float64(s.Score)) / k)
	s.Square += float32((square - float64(s.Square)) / k)

	x, w := level*(1+u), min(age/l.round, mostSpan)
	b.Rounds += w
	b.Mean += (x - b.Mean) * w / (b.Rounds + float64(len(l.src)))
	b.Level += w * (x - b.Mean) * (s.Mean/pooled - b.Mean)
	expected := level * pooled
	b.Error += u * u * expected * expected
	b.Expected += expected * expected
}

// slopes returns τ_δ², the variance of the slopes of sources.
func (l *Learner) slopes() float64 {
	return max(leastBetween, (l.between.Slope+slopeInfo*slopeSpread)/(l.between.Precision+slopeInfo))
}

// alike returns σ²μ/ω², the harvests of mean size after which a source is as well known by its own
// level as by that of all.
func (l *Learner) alike() float64 {
	b, weight := &l.between, levelRounds*float64(len(l.src))
	noise := b.Error / (b.Expected + weight*l.pooled.mean*l.pooled.mean)
	levels := (b.Level + weight*levelSpread) / (b.Rounds + weight)
	return noise * b.Mean / max(leastBetween, levels)
}

// level returns how much more the source brings than the pooled curve at the same ages, and H̄
// there,
//
//	a = (X̄ + pμ)/(H̄ + p),  p = H̄(R) max(½/k, b(k) σ²μ/ω²):
//
// the mean level counts as half a harvest, or as many as sources ask for that differ by so little.
func (l *Learner) level(s *Source) (level, pooled float64) {
	psi := [poolFeatures]float64{float64(s.Phi[0]), float64(s.Phi[1]), float64(s.Phi[2])}
	pooled = l.pooled.of(&psi)
	k := int(s.Cycles)
	prior := l.pooled.mean * max(levelPrior/float64(k), l.b.at(k)*l.alike())
	return (s.Mean + prior*l.between.Mean) / (pooled + prior), pooled
}

// steeper returns δ of the source, as is most likely by its moments,
//
//	δ = kD/(kE + 1/τ_δ²)
func (l *Learner) steeper(s *Source) float64 {
	k := float64(s.Cycles)
	return k * float64(s.Score) / (k*float64(s.Square) + 1/l.slopes())
}

// prior returns the share ε of the prior in a cycle of the source,
//
//	ε = max(½v/(½v + n), p/(k + p)),  v = max(1, .01/τ_δ²),  p = max(3, 100/n min(1, 1/n))
//
// n being the items, or batches, of a harvest, X̄²/σ². A harvest of half an item counts as much as the
// prior, or one of more items where the slopes of sources hardly differ. So do the first three cycles, or,
// where harvests have less than an item, the first hundred items. Where crawls are free a source may wait for
// far longer than others, and H̄ has few harvests of its own there: beyond two rounds, n ← nθ/2R.
func (l *Learner) prior(s *Source) float64 {
	rarity := l.noise(s) // 1/n
	if l.price == 0 {
		rarity *= min(1, pooledRounds*l.round/s.Theta)
	}
	items := priorItems * rarity * max(1, alikeSlopes/l.slopes())
	first := max(pseudoWeight, firstItems*rarity*min(1, rarity))
	return max(items/(items+1), first/(first+float64(s.Cycles)))
}
