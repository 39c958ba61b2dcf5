package estimate

import "math"

// clock tells the hour of the day and the day of the week of an epoch. In a
// world without dates there is one hour and one day.
type clock struct {
	start, length float64 // seconds
}

const (
	hours, days = 24, 7
	// Epochs longer than these hold no single hour or day.
	longestHour, longestDay = 4 * 3600, 36 * 3600
)

// dated reports whether there is anything to learn of the calendar.
func (c clock) dated() bool { return c.length > 0 && c.length <= longestDay }

// at returns the hour and the day in which the middle of epoch t lies, the time
// between the decisions t−1 and t.
func (c clock) at(t int) (hour, day int) {
	if !c.dated() {
		return 0, 0
	}
	s := c.start + (float64(t)-.5)*c.length
	if c.length <= longestHour {
		hour = wrap(s/3600, hours)
	}
	return hour, wrap(s/86400, days)
}

// wrap returns ⌊v⌋ modulo n.
func wrap(v float64, n int64) int {
	k := int64(math.Floor(v)) % n
	if k < 0 {
		k += n
	}
	return int(k)
}

// profile is how what is published is spread over the hours of the day and,
// from hours on, the days of the week, each with mean 1: an epoch has the
// product of the two of the mean.
type profile [hours + days]float64

func (p *profile) at(hour, day int) float64 { return p[hour] * p[hours+day] }

// evenly is the profile without structure.
func evenly() (p profile) {
	for k := range p {
		p[k] = 1
	}
	return p
}

// cycles are the bins of the hours and of the days.
var cycles = [2][2]int{{0, hours}, {hours, hours + days}}

// tally counts, by hour and by day, what was published and the epochs in which
// it could have been.
type tally struct{ Got, Epochs profile }

func (t *tally) scale(got, epochs float64) {
	for k := range t.Got {
		t.Got[k] *= got
		t.Epochs[k] *= epochs
	}
}

func (t *tally) add(hour, day int, y, epochs float64) {
	for _, k := range [2]int{hour, hours + day} {
		t.Got[k] += y
		t.Epochs[k] += epochs
	}
}

// Calendar is what is known of the hours and days of one source.
type Calendar struct {
	Tally tally
	Own   profile
}

// expected writes the counts of a cycle, and what was to be expected of them
// under a profile with the same sum, in units of φ.
func (t *tally) expected(got, want []float64, from int, base *profile, phi float64) {
	var sum, e float64
	for k := range got {
		sum += t.Got[from+k]
		e += t.Epochs[from+k] * base[from+k]
	}
	for k := range got {
		got[k], want[k] = t.Got[from+k]/phi, 0
		if e > 0 {
			want[k] = sum / e * t.Epochs[from+k] * base[from+k] / phi
		}
	}
}

// lean sets dst to the profile that counts support. A bin with the count T
// where E was expected under the profile base, and the variance φE, is
//
//	base (T + w)/(E + w),   w = φ/v
//
// with v the variance of such ratios between bins beyond chance: no structure,
// v = 0, leaves the base.
func lean(dst, base, got, want []float64, phi, v float64) {
	var sum float64
	for k := range dst {
		dst[k] = base[k]
		if v > 0 {
			w := phi / v
			dst[k] *= (got[k] + w) / (want[k] + w)
		}
		sum += dst[k]
	}
	// Bins without exposure (hours that no epoch's middle falls in) count as
	// the others; epochs are spread evenly over the rest.
	for k := range dst {
		dst[k] *= float64(len(dst)) / sum
	}
}

// excess adds up, over bins, how far counts are from what was expected beyond
// chance: v = Σ((T − E)²/E − φ)/ΣE.
type excess struct{ num, den float64 }

func (x *excess) add(got, want []float64, phi float64) {
	var bins float64
	for _, e := range want {
		if e > 0 {
			bins++
		}
	}
	if bins < 2 {
		return
	}
	for k, e := range want {
		if e > 0 {
			d := got[k] - e
			x.num += d*d/e - phi*(bins-1)/bins
			x.den += e
		}
	}
}

func (x *excess) value() float64 {
	if !(x.den > 0) || !(x.num > 0) {
		return 0
	}
	return x.num / x.den
}

// shapeOwn brings a source's own profile up to date: it leans on the common one.
func (e *Estimates) shapeOwn(s *source) {
	phi := e.phi(s)
	if s.Days == nil || !(phi > 0) {
		return
	}
	base := &e.Common.Profile
	var g, w profile
	for j, c := range cycles {
		got, want := g[c[0]:c[1]], w[c[0]:c[1]]
		s.Days.Tally.expected(got, want, c[0], base, phi)
		lean(s.Days.Own[c[0]:c[1]], base[c[0]:c[1]], got, want, e.Common.Psi, e.Common.VaryOwn[j])
	}
}

// fitProfiles brings the common profile up to date, which leans on the flat
// one, and how much the sources' own ones differ from it.
func (e *Estimates) fitProfiles() {
	if !e.clock.dated() {
		return
	}
	even, com := evenly(), &e.Common
	for j, c := range cycles {
		var own, all excess
		var buf [4]profile
		sumGot, sumWant := buf[0][c[0]:c[1]], buf[1][c[0]:c[1]] // of all sources
		g, w := buf[2][c[0]:c[1]], buf[3][c[0]:c[1]]
		for i := range e.Sources {
			s := &e.Sources[i]
			if s.Level.Cut == 0 {
				continue
			}
			phi := e.phi(s)
			s.Days.Tally.expected(g, w, c[0], &com.Profile, phi)
			own.add(g, w, com.Psi)
			s.Days.Tally.expected(g, w, c[0], &even, phi)
			// Where sources differ by v, one of them counts for no more than
			// its differing allows.
			var sum float64
			for _, x := range w {
				sum += x
			}
			f := 1 / (1 + com.VaryOwn[j]/com.Psi*sum/float64(len(w)))
			for k := range g {
				sumGot[k] += f * g[k]
				sumWant[k] += f * w[k]
			}
		}
		com.VaryOwn[j] = own.value()
		all.add(sumGot, sumWant, com.Psi)
		lean(com.Profile[c[0]:c[1]], even[c[0]:c[1]], sumGot, sumWant, com.Psi, all.value())
	}
}

// shape returns the share of the mean that profile p has in an epoch.
func (e *Estimates) shape(s *source, p, hour, day int) float64 {
	switch p {
	case commonProfile:
		return e.Common.Profile.at(hour, day)
	case ownProfile:
		return s.Days.Own.at(hour, day)
	}
	return 1
}

// Even reports whether source i publishes the same at all times.
func (e *Estimates) Even(i int) bool {
	l := &e.Sources[i].Level
	return l.Mix[commonProfile]+l.Mix[ownProfile] == 0
}

// Share returns what source i publishes in epoch t, over its mean.
func (e *Estimates) Share(i, t int) float64 {
	if e.Even(i) {
		return 1
	}
	if k := t - e.from; e.from >= 0 && k >= 0 && k < lookAhead {
		return e.mixed(&e.Sources[i], e.hour[k], e.day[k])
	}
	hour, day := e.clock.at(t)
	return e.mixed(&e.Sources[i], hour, day)
}

func (e *Estimates) mixed(s *source, hour, day int) float64 {
	var r, v float64
	for p, m := range s.Level.Mix {
		r += m
		v += m * e.shape(s, p, hour, day)
	}
	return v / r
}

// lookAhead is over how many epochs what is to come is averaged.
const lookAhead = 24

// Ahead returns the mean of the shares from epoch t on, weighted by α^k: over
// the time in which an item loses its interest.
func (e *Estimates) Ahead(i, t int, alpha float64) float64 {
	if e.Even(i) {
		return 1
	}
	if e.from != t {
		e.from = t
		for k := range e.hour {
			e.hour[k], e.day[k] = e.clock.at(t + k)
		}
	}
	var sum, n float64
	w := 1.0
	for k := range e.hour {
		sum += w * e.mixed(&e.Sources[i], e.hour[k], e.day[k])
		n += w
		if w *= alpha; w < 1e-3 {
			break
		}
	}
	return sum / n
}
