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

// profile is how what is published is spread over the hours of the day and the
// days of the week, each with mean 1: an epoch has Hour·Day of the mean.
type profile struct {
	Hour [hours]float64
	Day  [days]float64
}

// evenly is the profile without structure.
func evenly() (p profile) {
	for h := range p.Hour {
		p.Hour[h] = 1
	}
	for d := range p.Day {
		p.Day[d] = 1
	}
	return p
}

// tally counts, by hour and by day, what was published and the epochs in which
// it could have been.
type tally struct {
	Hour, HourEpochs [hours]float64
	Day, DayEpochs   [days]float64
}

func (t *tally) scale(f float64) {
	t.scaleCounts(f)
	for h := range t.HourEpochs {
		t.HourEpochs[h] *= f
	}
	for d := range t.DayEpochs {
		t.DayEpochs[d] *= f
	}
}

func (t *tally) scaleCounts(f float64) {
	for h := range t.Hour {
		t.Hour[h] *= f
	}
	for d := range t.Day {
		t.Day[d] *= f
	}
}

func (t *tally) add(hour, day int, y, epochs float64) {
	t.Hour[hour] += y
	t.HourEpochs[hour] += epochs
	t.Day[day] += y
	t.DayEpochs[day] += epochs
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
	for k := range got {
		if want[k] > 0 {
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
func (f *Forecast) shapeOwn(s *series) {
	phi := f.phi(s)
	if !f.clock.dated() || !(phi > 0) {
		return
	}
	var got, want [hours]float64
	expected(got[:], want[:], s.Tally.Hour[:], s.Tally.HourEpochs[:], f.Common.Hour[:], phi)
	lean(s.Own.Hour[:], f.Common.Hour[:], got[:], want[:], f.Psi, f.VaryOwn[0])
	expected(got[:days], want[:days], s.Tally.Day[:], s.Tally.DayEpochs[:], f.Common.Day[:], phi)
	lean(s.Own.Day[:], f.Common.Day[:], got[:days], want[:days], f.Psi, f.VaryOwn[1])
}

// expected writes counts, and what was to be expected of them under a profile
// with the same sum, in units of φ.
func expected(got, want, y, epochs, base []float64, phi float64) {
	var t, e float64
	for k := range y {
		t += y[k]
		e += epochs[k] * base[k]
	}
	for k := range y {
		got[k], want[k] = y[k]/phi, 0
		if e > 0 {
			want[k] = t / e * epochs[k] * base[k] / phi
		}
	}
}

// poolProfiles brings the common profile up to date, which leans on the flat
// one, and how much the sources' own ones differ from it.
func (f *Forecast) poolProfiles() {
	if !f.clock.dated() {
		return
	}
	even := evenly()
	var hour, day common
	var own [2]excess
	for i := range f.src {
		s := &f.src[i]
		phi := f.phi(s)
		if s.Cut == 0 {
			continue
		}
		var got, want [hours]float64
		expected(got[:], want[:], s.Tally.Hour[:], s.Tally.HourEpochs[:], f.Common.Hour[:], phi)
		own[0].add(got[:], want[:], f.Psi)
		expected(got[:], want[:], s.Tally.Hour[:], s.Tally.HourEpochs[:], even.Hour[:], phi)
		hour.add(got[:], want[:], f.VaryOwn[0]/f.Psi)
		expected(got[:days], want[:days], s.Tally.Day[:], s.Tally.DayEpochs[:], f.Common.Day[:], phi)
		own[1].add(got[:days], want[:days], f.Psi)
		expected(got[:days], want[:days], s.Tally.Day[:], s.Tally.DayEpochs[:], even.Day[:], phi)
		day.add(got[:days], want[:days], f.VaryOwn[1]/f.Psi)
	}
	f.VaryOwn = [2]float64{own[0].value(), own[1].value()}
	hour.lean(f.Common.Hour[:], even.Hour[:], f.Psi)
	day.lean(f.Common.Day[:], even.Day[:], f.Psi)
}

// common adds up the counts of all sources. Where sources differ by v, one of
// them counts for no more than its differing allows.
type common struct{ got, want [hours]float64 }

func (c *common) add(got, want []float64, v float64) {
	var e float64
	for _, w := range want {
		e += w
	}
	f := 1 / (1 + v*e/float64(len(want)))
	for k := range got {
		c.got[k] += f * got[k]
		c.want[k] += f * want[k]
	}
}

func (c *common) lean(dst, base []float64, phi float64) {
	var x excess
	n := len(dst)
	x.add(c.got[:n], c.want[:n], phi)
	lean(dst, base, c.got[:n], c.want[:n], phi, x.value())
}
