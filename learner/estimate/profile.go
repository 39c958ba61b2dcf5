package estimate

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"ephemera/env"
)

// clock tells where in the cycles of a profile an epoch lies.
type clock struct {
	start, length float64 // seconds
}

const (
	hours, days = 24, 7
	parts       = 12                  // of an hour: five minutes each
	week        = days * hours * 3600 // seconds
	thursday    = 4                   // day of a week that begins on Sunday: 1 January 1970
	longestHour = 4 * 3600            // seconds: longer epochs hold no single hour
	lookAround  = 7 * 24              // epochs over which shares are looked at: a week of hours
	stride      = 256                 // epochs that are counted together
	farBack     = 1 << 20             // epochs that are counted at most

	negligibleShare = 1e-3 // of the weight of the first epoch, below which others are not looked at
)

// dated reports whether there is anything to learn of the calendar.
func (c clock) dated() bool { return c.length > 0 && c.length <= longestHour }

// at returns the bins of the hour, the day and the part of the hour, in UTC, in which
// the middle of epoch t lies, the time between the decisions t−1 and t. Epochs of an hour
// or more lie in no single part, and all are counted in the first.
func (c clock) at(t int) [len(cycles)]int {
	second := int(math.Floor(c.start+(float64(t)-.5)*c.length)) % week
	second = (second + week) % week // before 1970 too
	hour := second / 3600
	part := 0
	if c.length < 3600 {
		part = second % 3600 * parts / 3600
	}
	return [...]int{hour % hours, hours + (hour/hours+thursday)%days, hours + days + part}
}

// profile is how what is published is spread over the hours of the day, the days of the
// week and the parts of an hour, each with mean 1: an epoch has the product of the three
// of the mean. There may be millions of them.
type profile [hours + days + parts]float32

// MarshalText writes the bits of the numbers.
func (p profile) MarshalText() ([]byte, error) {
	raw, err := binary.Append(nil, binary.LittleEndian, p[:])
	return base64.RawStdEncoding.AppendEncode(nil, raw), err
}

// UnmarshalText reads what MarshalText wrote.
func (p *profile) UnmarshalText(text []byte) error {
	raw, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err == nil {
		_, err = binary.Decode(raw, binary.LittleEndian, p[:])
	}
	if err != nil || slices.ContainsFunc(p[:], func(v float32) bool { return !(v >= 0 && v <= math.MaxFloat32) }) {
		return fmt.Errorf("a profile is %.20q; allowed are %d finite numbers, 0 or more", text, len(p))
	}
	return nil
}

// even is the profile without structure.
var even = profile(slices.Repeat([]float32{1}, len(profile{})))

// cycles are the bins of the hours, of the days and of the parts of an hour.
var cycles = [...][2]int{{0, hours}, {hours, hours + days}, {hours + days, hours + days + parts}}

// variances are how much, by cycle, profiles differ from another.
type variances [len(cycles)]float64

// calendar is what is known of the cycles of one source, where epochs have dates.
type calendar struct {
	Items, Epochs profile `json:",omitzero"` // by bin: items, and epochs in which they could be seen
	Spread        spread  `json:",omitzero"`
	Own           profile `json:"-"` // follows from them and the profile of all
	Phi           float32 `json:"-"` // φ, its spread; 0 stands for 1
}

// spread tells how far the numbers of items of crawls lie from what was to be expected of
// them, over what chance would have them. A source publishes in bursts where that is above
// 1: of as many items as a burst has, the others tell no more of hours and days than the
// first.
type spread struct {
	Square float64 // Σ(n − m)²/(1 + v)
	Mean   float64 // Σ m
}

// spreadItems is how many items the spread of all sources counts as.
const spreadItems = 30

// over returns φ, which is 1 at least and leans on φ′, that of all sources:
//
//	φ = max(1, (Σ(n − m)²/(1 + v) + 30φ′)/(Σm + 30))
func (p *spread) over(ofAll float64) float64 {
	return max(1, (p.Square+spreadItems*ofAll)/(p.Mean+spreadItems))
}

// spread takes in the n items of a crawl that covers so many epochs of each hour of the day,
// e of which the source has shown T items in E epochs before: with φ times the variance of
// Poisson
//
//	m = Σ eT/E,   E(n − m)² = φm(1 + v),   v = Σ (e²/E)/Σ e
//
// where v is what T leaves open. Hours of which nothing was seen before are left out.
func (c *calendar) spread(items, epochs *profile) {
	var n, m, square, sum float64
	for hour := range hours {
		if seen := float64(c.Epochs[hour]); seen > 0 {
			e := float64(epochs[hour])
			n += float64(items[hour])
			m += e * float64(c.Items[hour]) / seen
			square += e * e / seen
			sum += e
		}
	}
	if sum > 0 {
		c.Spread.Square += (n - m) * (n - m) / (1 + square/sum)
		c.Spread.Mean += m
	}
}

// addCalendar takes in the items of a crawl, which sees so many epochs back. A part of an epoch
// alone counts as one. An item may be a little older, as crawls are at any time of their epochs, but within the
// lifetime that an objective gives; one that is estimated is not sure enough.
func (e *Estimates) addCalendar(s *source, crawl *env.Crawled, seen float64, epoch int, keep float64) {
	c, oldest := &s.Calendar, math.Inf(1)
	if e.given != nil {
		oldest = max(seen, e.lifetime(s))
	}
	for k := range c.Items {
		c.Items[k] *= float32(keep)
		c.Epochs[k] *= float32(keep)
	}
	c.Spread.Square *= keep
	c.Spread.Mean *= keep
	epochs := e.epochsBack(epoch, int(max(seen, math.Ceil(min(1, seen)))))
	var items profile
	for _, it := range crawl.Items {
		if it.Age <= oldest {
			e.count(&items, epoch-int(it.Age))
		}
	}
	c.spread(&items, &epochs)
	for k := range c.Items {
		c.Items[k] += items[k]
		c.Epochs[k] += epochs[k]
	}
	e.weigh(c)
	c.shape(&e.Profile, e.Vary)
}

// count adds epoch t to its bins. Those near the epoch that lookAt was last given are at hand.
func (e *Estimates) count(to *profile, t int) {
	if k := t - e.around.epoch + lookAround; k >= 0 && k < len(e.around.bins) {
		for _, bin := range e.around.bins[k] {
			to[bin]++
		}
		return
	}
	for _, bin := range e.clock.at(t) {
		to[bin]++
	}
}

// epochsBack returns how many of the n epochs up to epoch t lie in each bin. First crawls see
// far back, and what many of them have in common is counted once. Some see back to 1970: whole
// weeks stand for what lies before them.
func (e *Estimates) epochsBack(t, n int) profile {
	most := cmp.Or(farBack-math.Mod(farBack, week/e.clock.length), farBack) // epochs of whole weeks, or less
	times := float32(max(1, float64(n)/most))
	n = int(min(float64(n), most))
	a := e.lookAt(t)
	for k := len(a.back) - 1; k < n/stride; k++ {
		further := a.back[k]
		for j := range stride {
			e.count(&further, t-k*stride-j)
		}
		a.back = append(a.back, further)
	}
	epochs := a.back[n/stride]
	for k := n - n%stride; k < n; k++ {
		e.count(&epochs, t-k)
	}
	for k := range epochs {
		epochs[k] *= times
	}
	return epochs
}

// weigh brings φ of a source up to date.
func (e *Estimates) weigh(c *calendar) { c.Phi = float32(c.Spread.over(e.Spread)) }

// expected returns the counts of a cycle, and what was to be expected of them under a
// profile, where each item counts 1/φ. They are written to the profiles of room.
func (c *calendar) expected(cycle [2]int, base *profile, room *[2]profile) (got, want []float32) {
	got, want = room[0][cycle[0]:cycle[1]], room[1][cycle[0]:cycle[1]]
	phi := max(1, c.Phi)
	var items, epochs float32
	for k := range got {
		got[k] = c.Items[cycle[0]+k] / phi
		want[k] = c.Epochs[cycle[0]+k] * base[cycle[0]+k]
		items += got[k]
		epochs += want[k]
	}
	for k := range want {
		want[k] *= items / max(1, epochs)
	}
	return got, want
}

// shape brings the profile of a source up to date. A bin with the count T where E was
// expected under the profile of all sources has, over what it has there, the share
//
//	(T + w)/(E + w),   w = 1/v
//
// with v the variance of such ratios between bins beyond chance; no structure, v = 0,
// leaves 1. It is the mean of a gamma law of mean 1 and variance v after Poisson counts.
func (c *calendar) shape(base *profile, vary variances) {
	var room [2]profile
	for j, cycle := range cycles {
		got, want := c.expected(cycle, base, &room)
		own, v, sum := c.Own[cycle[0]:cycle[1]], float32(vary[j]), float32(0)
		for k := range own {
			own[k] = base[cycle[0]+k] * (v*got[k] + 1) / (v*want[k] + 1)
			sum += own[k]
		}
		for k := range own {
			own[k] *= float32(len(own)) / sum
		}
	}
}

// vary returns how much profiles differ from a given one: how far the counts of n bins
// are from what was expected beyond chance and two standard errors,
//
//	v = (Σ((T − E)²/E − 1) − 2√(2n))/ΣE
func vary(sources []source, base *profile) (v variances) {
	var room [2]profile
	for j, cycle := range cycles {
		var n, excess, sum float64
		for i := range sources {
			got, want := sources[i].Calendar.expected(cycle, base, &room)
			if slices.Max(want) > 0 {
				excess++ // one bin follows from the others
			}
			for k, x := range want {
				if x > 0 {
					n++
					excess += float64((got[k]-x)*(got[k]-x)/x - 1)
					sum += float64(x)
				}
			}
		}
		v[j] = max(0, excess-2*math.Sqrt(2*n)) / max(1, sum)
	}
	return v
}

// fitProfiles brings the profile of all sources up to date, and how much their own
// differ from it. In the sum over all a source with E items in a bin has the weight
// 1/(1 + vE), the inverse of the variance of its ratios.
func (e *Estimates) fitProfiles() {
	var together spread
	for i := range e.Sources {
		p := &e.Sources[i].Calendar.Spread
		together.Square += p.Square
		together.Mean += p.Mean
	}
	e.Spread = together.over(1)
	var room [2]profile
	var items, expected [len(profile{})]float64 // that was expected under an even profile
	for i := range e.Sources {
		c := &e.Sources[i].Calendar
		e.weigh(c)
		for j, cycle := range cycles {
			got, want := c.expected(cycle, &even, &room)
			for k, x := range want {
				w := 1 / (1 + e.Vary[j]*float64(x))
				items[cycle[0]+k] += w * float64(got[k])
				expected[cycle[0]+k] += w * float64(x)
			}
		}
	}
	var all calendar
	for k := range items {
		all.Items[k], all.Epochs[k] = float32(items[k]), float32(expected[k])
	}
	all.shape(&even, vary([]source{{Calendar: all}}, &even))
	e.Profile, e.Vary = all.Own, vary(e.Sources, &all.Own)
	e.around.forget()
	for i := range e.Sources {
		e.Sources[i].Calendar.shape(&e.Profile, e.Vary)
	}
}

// around holds the bins of the epochs about a given one, and the hours in which they lie.
type around struct {
	epoch int
	bins  [2*lookAround + 1][len(cycles)]int32
	hours [2][]hourRun // of the epochs up to that one, backwards, and of those that follow it
	back  []profile    // how many of the last 0, stride, 2·stride, … epochs up to that one lie in each bin
	// ofAll are the shares of all sources without end, backwards and ahead, at an α; NaN where it is not known.
	ofAll [2]struct{ alpha, share float64 }
}

// forget drops what depends on the profile of all sources.
func (a *around) forget() { a.ofAll[0].alpha, a.ofAll[1].alpha = math.NaN(), math.NaN() }

// hourRun are epochs in a row that lie in one hour of one day. Of two in a row that
// have the same parts of their hours, each is a repetition of the other.
type hourRun struct {
	hour, day int32
	parts     []int32 // bin of the part of the hour of each epoch
	repeats   bool    // has the parts of the run before
}

// lookAt brings the bins to those about epoch t.
func (e *Estimates) lookAt(t int) *around {
	a := &e.around
	if a.epoch == t {
		return a
	}
	begin := 0
	if t == a.epoch+1 {
		begin = copy(a.bins[:], a.bins[1:])
	}
	a.epoch, a.back = t, append(a.back[:0], profile{})
	a.forget()
	for k := begin; k < len(a.bins); k++ {
		for j, bin := range e.clock.at(t + k - lookAround) {
			a.bins[k][j] = int32(bin)
		}
	}
	parts := make([]int32, 0, 2*lookAround)
	for side, step := range []int{-1, 1} {
		runs := a.hours[side][:0]
		for k := range lookAround {
			bins := a.bins[lookAround+max(0, step)+k*step]
			parts = append(parts, bins[2])
			if last := len(runs) - 1; last >= 0 && runs[last].hour == bins[0] && runs[last].day == bins[1] {
				run := &runs[last]
				run.parts = parts[len(parts)-len(run.parts)-1:]
				continue
			}
			runs = append(runs, hourRun{hour: bins[0], day: bins[1], parts: parts[len(parts)-1:]})
		}
		for r := range runs[1:] {
			runs[r+1].repeats = slices.Equal(runs[r+1].parts, runs[r].parts)
		}
		a.hours[side] = runs
	}
	return a
}

// Share returns what source i publishes, over its mean, in the n epochs up to epoch t
// (step −1) or those that follow it (step 1), and what all sources do without end: with
// gₖ the share of the k-th from t and 1 of those beyond a week,
//
//	Σ αᵏgₖ/Σ αᵏ = 1 + (1 − α)/(1 − αⁿ) Σ αᵏ(gₖ − 1)
//
// The epochs of one hour have in common what the hour and the day are worth, and of many
// hours the sum over their parts is the same.
func (e *Estimates) Share(i, t, step int, n, alpha float64) (share, ofAll float64) {
	if e.Profile == even && e.Vary == (variances{}) {
		return 1, 1
	}
	a := e.lookAt(t)
	common := &a.ofAll[max(0, step)]
	if common.alpha != alpha {
		common.alpha, common.share = alpha, a.share(&e.Profile, step, math.Inf(1), alpha)
	}
	return a.share(&e.Sources[i].Calendar.Own, step, n, alpha), common.share
}

// share returns what a profile has in n epochs, as [Estimates.Share] has it.
func (a *around) share(of *profile, step int, n, alpha float64) (share float64) {
	w, left := 1-alpha, n // (1 − α)αᵏ at the beginning of an hour, and epochs of n that are left there
	fall := 1.            // αᵐ of an hour of m epochs
	var sum, base float64
	for _, run := range a.hours[max(0, step)] {
		if w <= negligibleShare*(1-alpha) || left <= 0 {
			break
		}
		m := len(run.parts)
		if !run.repeats {
			sum, base, fall = 0, 0, 1
			for _, part := range run.parts {
				sum += fall * float64(of[part])
				base += fall
				fall *= alpha
			}
		}
		switch day := float64(of[run.hour] * of[run.day]); {
		case left >= float64(m):
			share += w * (day*sum - base)
		default:
			for k, v := 0, w; float64(k) < left; k++ {
				if rest := left - float64(k); rest < 1 { // a part of an epoch
					v *= (1 - math.Pow(alpha, rest)) / (1 - alpha)
				}
				share += v * (day*float64(of[run.parts[k]]) - 1)
				v *= alpha
			}
		}
		left -= float64(m)
		w *= fall
	}
	return 1 + share/(1-math.Pow(alpha, n))
}

// Between returns what source i publishes, over its mean, in the n epochs that follow epoch
// t, or, for n below 0, in those up to it. Whole weeks have the mean.
func (e *Estimates) Between(i, t int, n float64) float64 {
	if n == 0 || e.Profile == even && e.Vary == (variances{}) {
		return 1
	}
	own := &e.Sources[i].Calendar.Own
	from, length := e.clock.start+float64(t)*e.clock.length, n*e.clock.length // seconds
	if length < 0 {
		from, length = from+length, -length
	}
	rest := inWeek(length)
	sum := length - rest
	from = inWeek(from)
	for left := rest; left > 0; {
		hour := int(from / 3600)
		take := min(float64(hour+1)*3600-from, left)
		share := own[hour%hours] * own[hours+(hour/hours+thursday)%days]
		sum += float64(share) * e.ofHour(own, from-float64(hour)*3600, take)
		left -= take
		if from += take; from >= week {
			from = 0
		}
	}
	return sum / length
}

// inWeek returns how far seconds are into a week.
func inWeek(seconds float64) float64 {
	rest := seconds - week*math.Floor(seconds/week)
	if rest < 0 { // the quotient was rounded to the next week
		return 0
	}
	return min(rest, math.Nextafter(week, 0))
}

// ofHour returns how many seconds of the mean of an hour a profile has in some of its
// seconds.
func (e *Estimates) ofHour(own *profile, from, take float64) (sum float64) {
	const long = 3600. / parts
	if e.clock.length >= 3600 || take == 3600 {
		return take
	}
	for part := min(int(from/long), parts-1); part < parts && take > 0; part++ {
		end := float64(part+1) * long
		n := min(end-from, take)
		sum += n * float64(own[hours+days+part])
		from, take = end, take-n
	}
	return sum
}
