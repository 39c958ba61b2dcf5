package estimate

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"ephemera/env"
)

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

// MarshalText writes the bits of the numbers: there may be millions of profiles.
func (p profile) MarshalText() ([]byte, error) {
	var raw [8 * len(p)]byte
	for k, v := range p {
		binary.LittleEndian.PutUint64(raw[8*k:], math.Float64bits(v))
	}
	return base64.RawStdEncoding.AppendEncode(nil, raw[:]), nil
}

// UnmarshalText reads what MarshalText wrote.
func (p *profile) UnmarshalText(text []byte) error {
	raw, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err != nil || len(raw) != 8*len(p) {
		return fmt.Errorf("a profile of %d bytes; allowed are %d", len(raw), 8*len(p))
	}
	for k := range p {
		if p[k] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*k:])); !(p[k] >= 0) || math.IsInf(p[k], 1) {
			return fmt.Errorf("a profile has %v; allowed are finite numbers, 0 or more", p[k])
		}
	}
	return nil
}

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

// Calendar is what is known of the hours and days of one source.
type Calendar struct {
	Items, Epochs profile // by hour and by day: items, and epochs in which they could be seen
	Own           profile `json:"-"` // follows from them and the common one
}

// addCalendar takes in the items of a crawl, which sees so many epochs back. First
// it adds to the gain what the profile g was right about them: the logarithm of the
// likelihood of Poisson items at the rate λg over that at the rate λ,
//
//	Σ ln g over the items − Σ λ(g − 1) over the epochs
func (e *Estimates) addCalendar(c *Calendar, crawl *env.Crawled, seen, epoch int, keep float64) {
	for k := range c.Items {
		c.Items[k] *= keep
		c.Epochs[k] *= keep
	}
	mean := math.Exp(e.Sources[crawl.Source].Rate.Log)
	for k := range seen {
		hour, day := e.clock.at(epoch - k)
		e.Gain -= mean * (c.Own.at(hour, day) - 1)
		c.Epochs[hour]++
		c.Epochs[hours+day]++
	}
	for _, it := range crawl.Items {
		hour, day := e.clock.at(epoch - int(it.Age))
		e.Gain += math.Log(c.Own.at(hour, day))
		c.Items[hour]++
		c.Items[hours+day]++
	}
	e.shapeOwn(c)
}

// expected writes what was to be expected of the counts of a cycle under a profile
// with the same sum.
func (c *Calendar) expected(want []float64, from int, base *profile) {
	var sum, e float64
	for k := range want {
		sum += c.Items[from+k]
		e += c.Epochs[from+k] * base[from+k]
	}
	for k := range want {
		want[k] = 0
		if e > 0 {
			want[k] = sum / e * c.Epochs[from+k] * base[from+k]
		}
	}
}

// lean sets dst to the profile that counts support. A bin with the count T
// where E was expected under the profile base is
//
//	base (T + w)/(E + w),   w = 1/v
//
// with v the variance of such ratios between bins beyond chance: no structure,
// v = 0, leaves the base. It is the mean of a gamma law of mean 1 and variance v
// after Poisson counts.
func lean(dst, base, got, want []float64, v float64) {
	var sum float64
	for k := range dst {
		dst[k] = base[k]
		if v > 0 {
			dst[k] *= (v*got[k] + 1) / (v*want[k] + 1)
		}
		sum += dst[k]
	}
	for k := range dst {
		dst[k] *= float64(len(dst)) / sum
	}
}

// excess adds up, over n bins, how far counts are from what was expected beyond chance
// and two standard errors of it: v = (Σ((T − E)²/E − 1) − 2√(2n))/ΣE.
type excess struct{ num, den, n float64 }

func (x *excess) add(got, want []float64) {
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
			x.num += d*d/e - (bins-1)/bins
			x.den += e
			x.n++
		}
	}
}

func (x *excess) value() float64 {
	if x.den == 0 {
		return 0
	}
	return max(0, x.num-2*math.Sqrt(2*x.n)) / x.den
}

// shapeOwn brings a source's own profile up to date: it leans on the common one.
func (e *Estimates) shapeOwn(s *Calendar) {
	var want profile
	for j, c := range cycles {
		s.expected(want[c[0]:c[1]], c[0], &e.Profile)
		lean(s.Own[c[0]:c[1]], e.Profile[c[0]:c[1]], s.Items[c[0]:c[1]], want[c[0]:c[1]], e.VaryOwn[j])
	}
}

// fitProfiles brings the common profile up to date, which leans on the flat
// one, and how much the sources' own ones differ from it.
func (e *Estimates) fitProfiles() {
	if !e.dated() {
		return
	}
	even := evenly()
	for j, c := range cycles {
		var own, all excess
		var buf [3]profile
		sumGot, sumWant := buf[0][c[0]:c[1]], buf[1][c[0]:c[1]] // of all sources
		want := buf[2][c[0]:c[1]]
		for i := range e.Sources {
			s := e.Sources[i].Calendar
			got := s.Items[c[0]:c[1]]
			s.expected(want, c[0], &e.Profile)
			own.add(got, want)
			s.expected(want, c[0], &even)
			// Where sources differ by v, one of them counts for no more than
			// its differing allows.
			var sum float64
			for _, x := range want {
				sum += x
			}
			f := 1 / (1 + e.VaryOwn[j]*sum/float64(len(want)))
			for k := range got {
				sumGot[k] += f * got[k]
				sumWant[k] += f * want[k]
			}
		}
		e.VaryOwn[j] = own.value()
		all.add(sumGot, sumWant)
		lean(e.Profile[c[0]:c[1]], even[c[0]:c[1]], sumGot, sumWant, all.value())
	}
	for i := range e.Sources {
		e.shapeOwn(e.Sources[i].Calendar)
	}
}

// Even reports whether sources are thought to publish the same at all times: there
// are no dates, or the profiles have not yet been right about so much that chance is
// unlikely.
func (e *Estimates) Even() bool { return !e.dated() || e.Gain < unlikely }

// Share returns what source i publishes in epoch t, over its mean.
func (e *Estimates) Share(i, t int) float64 {
	if e.Even() {
		return 1
	}
	hour, day := e.clock.at(t)
	return e.Sources[i].Calendar.Own.at(hour, day)
}

// lookAhead is over how many epochs what is to come is averaged.
const lookAhead = 24

// ahead holds the hour and the day of the epochs from a given one on.
type ahead struct {
	from      int
	hour, day [lookAhead]int
}

// Ahead returns the mean of the shares from epoch t on, weighted by α^k, over the time
// in which an item loses its interest, and the same over that of all sources.
func (e *Estimates) Ahead(i, t int, alpha float64) (share, overAll float64) {
	a := &e.ahead
	if a.from != t {
		a.from = t
		for k := range a.hour {
			a.hour[k], a.day[k] = e.clock.at(t + k)
		}
	}
	own := &e.Sources[i].Calendar.Own
	var sum, all, n float64
	w := 1.0
	for k := range a.hour {
		sum += w * own.at(a.hour[k], a.day[k])
		all += w * e.Profile.at(a.hour[k], a.day[k])
		n += w
		if w *= alpha; w < 1e-3 {
			break
		}
	}
	return sum / n, sum / all
}

// wave is how what waits at all sources together rises and falls.
type wave struct {
	at    int // epoch
	share float64
}

// Wave returns what waits at all sources together at epoch t, over its mean, with
// their mean decay: the price of a crawl rises and falls with it.
func (e *Estimates) Wave(t int) float64 {
	if e.wave.at != t {
		alpha := math.Exp(-math.Exp(e.DecayLaw.Mean))
		var sum, n float64
		w := 1.0
		for k := 0; k < 7*24 && w > 1e-6; k++ {
			sum += w * e.Profile.at(e.clock.at(t-k))
			n += w
			w *= alpha
		}
		e.wave = wave{t, sum / n}
	}
	return e.wave.share
}
