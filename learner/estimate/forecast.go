package estimate

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"ephemera/env"
)

// Forecast foretells what each source publishes in an epoch to come. A crawl
// brings back all items since the last one, with their age, so that in the end
// every epoch of every source is seen, late. What is foretold is a mean over
// forecasters: profiles (flat, common to all sources, the source's own) times
// memories (from all that was seen down to some days of hourly epochs). Each
// weighs as much as it was right about the harvests of the past.
//
// Interest is counted as it was at publication, e^(ca) times what is found at
// the age a, and cut where it is far above what is usual at the source: a few
// huge items would drown the rest. What the cut takes away is put back as the
// mean share that it takes from all sources.
type Forecast struct {
	set   Settings
	clock clock
	src   []series
	pooled

	y, e []float64 // by epochs back from a crawl: interest, exposure

	// Hour and day of the epochs from a given one on.
	from      int
	hour, day [lookAhead]int
}

// pooled is what is common to all sources.
type pooled struct {
	Common  profile
	VaryOwn [2]float64                   // variance of the sources' own profiles around it: hours, days
	Log     [profiles * memories]float64 // of the weight of a forecaster where a source has not shown its own
	Rate    float64                      // mean level, cut interest per epoch; 0 until something was found
	Weight  float64                      // of the mean level, in units of φ
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

const (
	// drift is the weight, in units of φ, with which a level leans on that of
	// the next longer memory: levels are thought to move by a half, 1/√drift.
	drift     = 4
	lookAhead = 24   // epochs over which what is to come is averaged
	cutItems  = 10   // items that the common spread of ln ξ counts as
	tailItems = 200  // items that the common tail counts as
	maxGrowth = 30   // of ln interest, back to publication
	psiMemory = 1000 // harvests
	psiFirst  = 20
	psiCut    = 25 // of a squared standardised deviation
)

// series is what is known of one source.
type series struct {
	N, Log, Log2   float64                      // items, Σ ln ξ, Σ (ln ξ)²
	Cut, Cut2, Raw float64                      // Σ over items of cut interest, its square, uncut interest
	C, Lag, Ages   float64                      // decay rate behind these sums, Σ cut interest·age, Σ age
	Tally          tally                        // cut interest and exposure by hour and day
	Got            [memories]float64            // Σ cut interest, by memory
	Want           [memories][profiles]float64  // Σ exposure·profile, epochs
	Own            profile                      // the source's own profile
	Score          [profiles * memories]float64 // Σ ln quasi-likelihood of the harvests
	Level          [profiles * memories]float64 // cut interest per epoch
	Mix            [profiles]float64            // Σ weight·level, by profile
}

// Init begins with nothing known.
func (f *Forecast) Init(t env.Terms, set Settings) {
	*f = Forecast{set: set, src: make([]series, len(t.Costs)), clock: clock{float64(t.Start), t.Length}, from: -1}
	f.pooled = pooled{Common: evenly(), Tail: 1, Psi: 1, PsiN: psiFirst, Weight: 1}
	for i := range f.src {
		f.src[i].Own = evenly()
	}
}

// Known reports whether there is anything to foretell from.
func (f *Forecast) Known() bool { return f.Rate > 0 }

// inUse returns the profiles [from, to) and the number of memories in use.
func (f *Forecast) inUse() (from, to, mem int) {
	mem = memories
	if f.set.Memory == "long" {
		mem = 1
	}
	switch {
	case !f.clock.dated() || f.set.Profile == "off":
		return flatProfile, flatProfile + 1, mem
	case f.set.Profile == "common":
		return commonProfile, commonProfile + 1, mem
	case f.set.Profile == "own":
		return ownProfile, ownProfile + 1, mem
	}
	return 0, profiles, mem
}

// phi returns the variance of the cut interest of a Poisson stream in units of
// its mean, Σv²/Σv; that of all sources counts as one item.
func (f *Forecast) phi(s *series) float64 {
	if f.Phi == 0 {
		if s.Cut > 0 {
			return s.Cut2 / s.Cut
		}
		return 0
	}
	return (s.Cut2 + f.Phi*f.Item) / (s.Cut + f.Item)
}

// top returns where the interest of an item is cut: at 1.5 standard deviations
// and a half above the mean of ln ξ. Of exponential marks that cuts off .2 %.
func (f *Forecast) top(s *series) float64 {
	if s.N < 1 || f.set.Tails == "raw" {
		return math.Inf(1)
	}
	m := s.Log / s.N
	v := (max(0, s.Log2-m*s.Log) + cutItems*f.Spread*f.Spread) / (s.N + cutItems)
	return math.Exp(m + 1.5*math.Sqrt(v) + .5)
}

// shape returns the share of the mean that profile p has in an epoch.
func (f *Forecast) shape(s *series, p, hour, day int) float64 {
	switch p {
	case commonProfile:
		return f.Common.Hour[hour] * f.Common.Day[day]
	case ownProfile:
		return s.Own.Hour[hour] * s.Own.Day[day]
	}
	return 1
}

// Add takes in a crawl at epoch n of a source whose decay rate is c, known up
// to the standard error of its logarithm.
func (f *Forecast) Add(cr env.Crawled, n int, c, doubt float64) {
	if len(cr.Items) == 0 && cr.Interest > 0 {
		return // a world without items
	}
	s := &f.src[cr.Source]
	s.redo(c)
	found := f.spread(s, &cr, c, doubt)
	f.judge(s, n, cr.Age, c, found)

	keep := 1.0
	if f.set.Horizon > 0 {
		keep = math.Exp(-float64(cr.Age) / f.set.Horizon)
	}
	dated := f.clock.dated()
	s.forget(keep, float64(cr.Age), dated)
	from, to, mem := f.inUse()
	weight := [memories]float64{1, 1, 1, 1}
	for k, y := range f.y {
		hour, day := f.clock.at(n - k)
		if dated {
			s.Tally.add(hour, day, y, f.e[k])
		}
		for m := range mem {
			s.Got[m] += weight[m] * y
			for p := from; p < to; p++ {
				s.Want[m][p] += weight[m] * f.e[k] * f.shape(s, p, hour, day)
			}
			weight[m] *= fading[m]
		}
	}
	f.shapeOwn(s)
	f.level(s)
}

// fading is what a level's memory keeps from epoch to epoch.
var fading = func() (v [memories]float64) {
	for m := range v {
		v[m] = math.Exp(-1 / memory[m])
	}
	return v
}()

// forget takes weight from what is known: all of it, and what the shorter
// memories have left after the epochs of a crawl.
func (s *series) forget(keep, age float64, dated bool) {
	if dated {
		s.Tally.scale(keep)
	}
	for _, v := range []*float64{&s.N, &s.Log, &s.Log2, &s.Cut, &s.Cut2, &s.Raw, &s.Lag, &s.Ages} {
		*v *= keep
	}
	for m := range s.Got {
		f := keep * math.Exp(-age/memory[m])
		s.Got[m] *= f
		for p := range s.Want[m] {
			s.Want[m][p] *= f
		}
	}
	for j := range s.Score {
		s.Score[j] *= keep
	}
}

// spread writes what the crawl tells of each epoch since the last one and
// returns the cut interest as it was found. An error of c grows with the age,
// so interest is taken back to its publication only as far as the standard
// error of ca is below .3; older epochs have an exposure below 1 instead, and
// their items count for as much less in what is usual at the source.
func (f *Forecast) spread(s *series, cr *env.Crawled, c, doubt float64) (found float64) {
	limit := float64(maxGrowth)
	if doubt > 0 {
		limit = min(limit, .3/doubt)
	}
	f.y, f.e = f.y[:0], f.e[:0]
	for k := range cr.Age {
		f.y = append(f.y, 0)
		f.e = append(f.e, math.Exp(min(0, limit-c*(float64(k)+.5))))
	}
	measure := func() {
		for _, it := range cr.Items {
			if it.Interest > 0 {
				ca := c * it.Age
				l := math.Log(it.Interest) + min(ca, limit)
				w := math.Exp(min(0, limit-ca))
				s.N += w
				s.Log += w * l
				s.Log2 += w * l * l
				s.Ages += w * it.Age
			}
		}
	}
	first := s.N == 0
	if first { // its first items tell the scale
		measure()
	}
	top := f.top(s)
	for _, it := range cr.Items {
		if !(it.Interest > 0) {
			continue
		}
		grow := math.Exp(min(c*it.Age, limit))
		xi := it.Interest * grow
		v := min(xi, top)
		f.y[min(max(int(it.Age), 0), cr.Age-1)] += v
		found += v / grow
		s.Cut += v
		s.Cut2 += v * v
		s.Raw += xi
		s.Lag += v * min(it.Age, limit/c)
	}
	if !first {
		measure()
	}
	return found
}

// redo takes the sums of a source to another decay rate. An item of the age a
// was counted as e^(ca) of what was found of it; to first order, what they
// count together changes with their mean age.
func (s *series) redo(c float64) {
	old := s.C
	s.C = c
	if s.Cut == 0 || old == c {
		return
	}
	g := math.Exp(max(-2, min(2, (c-old)*s.Lag/s.Cut)))
	for m := range s.Got {
		s.Got[m] *= g
	}
	for _, v := range []*float64{&s.Cut, &s.Raw, &s.Lag} {
		*v *= g
	}
	s.Cut2 *= g * g
	s.Tally.scaleCounts(g)
	// Σ(l + d)², with the same d for all
	d := (c - old) * s.Ages / s.N
	s.Log2 += 2*d*s.Log + s.N*d*d
	s.Log += s.N * d
}

// judge scores the forecasters by what they foretold of a harvest X. With μ
// what was foretold and the variance φψμ the quasi-log-likelihood is
//
//	(X ln μ − μ)/(φψ)
//
// up to what is the same for all. It asks for the mean of X, as far as a few
// large harvests allow it.
func (f *Forecast) judge(s *series, n, age int, c, found float64) {
	from, to, mem := f.inUse()
	phi := f.phi(s)
	if !(s.Level[from*memories] > 0) || !(phi > 0) {
		return
	}
	var inflow [profiles]float64 // Σ α^k profile, for a level of 1
	var sum, square float64
	w, fade := -math.Expm1(-c)/c, math.Exp(-c)
	for k := range age {
		hour, day := f.clock.at(n - k)
		for p := from; p < to; p++ {
			inflow[p] += w * f.shape(s, p, hour, day)
		}
		sum += w
		square += w * w
		if w *= fade; w < 1e-9 {
			break
		}
	}
	var mean float64
	for p := from; p < to; p++ {
		mean += s.Mix[p] * inflow[p]
	}
	if !(mean > 0) {
		return
	}
	phi *= square / sum
	d := found - mean
	f.Psi += (min(d*d/(phi*mean), psiCut) - f.Psi) / f.PsiN
	f.PsiN = min(f.PsiN+1, psiMemory)
	for p := from; p < to; p++ {
		for m := range mem {
			j := p*memories + m
			guess := s.Level[j] * inflow[p]
			s.Score[j] += (found*math.Log(guess/mean) - guess + mean) / (phi * f.Psi)
		}
	}
}

// level brings the levels of the forecasters and their mixture up to date. With
// T found in E epochs, a level leans on that of the next longer memory, and the
// longest on the mean of the sources, by
//
//	(T + w b)/(E + w),   w = φψ/(b v)
//
// where b is what it leans on and v the variance of the level in units of b².
func (f *Forecast) level(s *series) {
	if !f.Known() {
		return
	}
	from, to, mem := f.inUse()
	phi := f.phi(s) * f.Psi
	for p := from; p < to; p++ {
		lean, units := f.Rate, f.Weight
		for m := range mem {
			w := units * phi / lean
			lean = (s.Got[m] + w*lean) / (s.Want[m][p] + w)
			s.Level[p*memories+m] = lean
			units = drift
		}
	}
	var w [profiles * memories]float64
	f.weigh(s, &w)
	s.Mix = [profiles]float64{}
	for p := from; p < to; p++ {
		for m := range mem {
			j := p*memories + m
			s.Mix[p] += w[j] * s.Level[j]
		}
	}
}

// weigh writes the weights of the forecasters of a source.
func (f *Forecast) weigh(s *series, w *[profiles * memories]float64) {
	from, to, mem := f.inUse()
	best := math.Inf(-1)
	for p := from; p < to; p++ {
		for m := range mem {
			j := p*memories + m
			best = max(best, f.Log[j]+s.Score[j])
		}
	}
	var sum float64
	for p := from; p < to; p++ {
		for m := range mem {
			j := p*memories + m
			w[j] = math.Exp(f.Log[j] + s.Score[j] - best)
			sum += w[j]
		}
	}
	for j := range w {
		w[j] /= sum
	}
}

// pool brings what is common to all sources up to date.
// Pool gathers what is common to all sources.
func (f *Forecast) Pool() {
	from, to, mem := f.inUse()
	var n, rate, cut, cut2, items, raw, spread, dof float64
	for i := range f.src {
		s := &f.src[i]
		if e := s.Want[0][from]; e > 0 {
			n++
			rate += s.Got[0] / e
		}
		if s.Cut > 0 {
			cut += s.Cut
			cut2 += s.Cut2
			items += s.N
			raw += s.N * s.Raw / s.Cut // in units of the source's mean item
		}
		if s.N > 2 {
			spread += max(0, s.Log2-s.Log*s.Log/s.N)
			dof += s.N - 1
		}
	}
	if n == 0 || !(cut > 0) || !(rate > 0) {
		return
	}
	f.Rate = rate / n
	f.Phi, f.Item, f.Tail = cut2/cut, cut/items, raw/items
	if dof > 0 {
		f.Spread = math.Sqrt(spread / dof)
	}
	if n > 1 {
		var q float64
		for i := range f.src {
			s := &f.src[i]
			if e := s.Want[0][from]; e > 0 {
				d := s.Got[0]/e - f.Rate
				q += d*d - f.Phi*f.Psi*f.Rate/max(e, firstWeight)
			}
		}
		f.Weight = f.Rate * f.Rate / max(q/(n-1), leastSpread*f.Rate*f.Rate)
	}
	f.poolProfiles()

	// The weights where a source has not shown its own are the mean of the
	// sources' weights: one step of expectation-maximisation.
	var mean, w [profiles * memories]float64
	for i := range f.src {
		s := &f.src[i]
		f.shapeOwn(s)
		f.level(s)
		f.weigh(s, &w)
		for j := range w {
			mean[j] += w[j]
		}
	}
	for j := range mean {
		f.Log[j] = math.Log((mean[j] + 1) / (float64(len(f.src)) + float64((to-from)*mem)))
	}
}

// Mean returns the interest that source i publishes per epoch, in the mean over
// the hours and days.
func (f *Forecast) Mean(i int) float64 {
	s := &f.src[i]
	var r float64
	for _, v := range s.Mix {
		r += v
	}
	tail := f.Tail
	if s.Cut > 0 {
		tail = (s.N*s.Raw/s.Cut + tailItems*f.Tail) / (s.N + tailItems)
	}
	return r * tail
}

// Even reports whether source i publishes the same at all times.
func (f *Forecast) Even(i int) bool {
	s := &f.src[i]
	return s.Mix[commonProfile]+s.Mix[ownProfile] == 0
}

// Share returns what source i publishes in epoch t, over its mean.
func (f *Forecast) Share(i, t int) float64 {
	if f.Even(i) {
		return 1
	}
	k := t - f.from
	if f.from < 0 || k < 0 || k >= lookAhead {
		hour, day := f.clock.at(t)
		return f.mixed(&f.src[i], hour, day)
	}
	return f.mixed(&f.src[i], f.hour[k], f.day[k])
}

func (f *Forecast) mixed(s *series, hour, day int) float64 {
	var r, v float64
	for p, m := range s.Mix {
		r += m
		v += m * f.shape(s, p, hour, day)
	}
	return v / r
}

// Ahead returns the mean of the shares from epoch t on, weighted by α^k: over
// the time in which an item loses its interest.
func (f *Forecast) Ahead(i, t int, alpha float64) float64 {
	if f.Even(i) {
		return 1
	}
	if f.from != t {
		f.from = t
		for k := range f.hour {
			f.hour[k], f.day[k] = f.clock.at(t + k)
		}
	}
	var sum, n float64
	w := 1.0
	for k := range f.hour {
		sum += w * f.mixed(&f.src[i], f.hour[k], f.day[k])
		n += w
		if w *= alpha; w < 1e-3 {
			break
		}
	}
	return sum / n
}

// ForecastState are the forecasts of all sources as data.
type ForecastState struct {
	Sources []series `json:"sources"`
	Pooled  pooled   `json:"pooled"`
}

// Clone returns a copy that shares nothing.
func (f *Forecast) Clone() Forecast {
	g := *f
	g.src = slices.Clone(f.src)
	return g
}

// State returns the whole state.
func (f *Forecast) State() ForecastState {
	return ForecastState{Sources: append([]series(nil), f.src...), Pooled: f.pooled}
}

// SetState takes up a state that State returned.
func (f *Forecast) SetState(s ForecastState) error {
	if len(s.Sources) != len(f.src) {
		return fmt.Errorf("forecasts of %d sources; the learner has %d", len(s.Sources), len(f.src))
	}
	if _, err := json.Marshal(s); err != nil { // as no state that was kept
		return fmt.Errorf("forecasts: %w", err)
	}
	copy(f.src, s.Sources)
	f.pooled = s.Pooled
	return nil
}
