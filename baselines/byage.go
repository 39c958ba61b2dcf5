package baselines

import (
	"ephemera/baselines/calendar"
	"ephemera/env"
)

// byAge is a policy whose index is a function of the age alone, computed for
// every source at every epoch.
type byAge struct {
	sel    *Selector
	rank   calendar.Ranking
	p      []calendar.Params
	key    []float64
	packed bool                     // the crawls of an epoch are chosen by Pack
	worth  func(i, age int) float64 // for Pack; nil stands for the index
	ages   int                      // ages of the table
	seen   []float64                // the indices at ages 1 to ages of source 0, then of source 1, …
}

// fromCalendar is the same policy without touching every source.
type fromCalendar struct{ *calendar.Calendar }

// Select implements env.Policy.
func (p fromCalendar) Select(dst []int, o *env.Model) []int {
	return p.Calendar.Select(dst, &o.Online)
}

var (
	_ env.Policy[env.Model] = (*byAge)(nil)
	_ env.Policy[env.Model] = fromCalendar{}
)

// NewByAge returns the policy that crawls by decreasing index, where the index
// of source i is a function at of its age that does not change and does not fall
// as the age grows. Among many sources of which few are crawled it looks at few,
// with the same choices; where what it chose is not crawled, it looks at all again.
func NewByAge(t env.Terms, at func(i, age int) float64) env.Policy[env.Model] {
	f := calendar.Func{Index: at}
	return newByAge(t, f, f.Of)
}

// NewPackedByAge is NewByAge with the crawls of an epoch chosen by
// [Selector.Pack]; worth, of source i at an age, is what Pack takes. fall is by
// how much the index of a source may fall by rounding; nil says that it is any
// function of the age, and then all sources are looked at.
func NewPackedByAge(t env.Terms, at, worth func(i, age int) float64, fall func(i int) float64) env.Policy[env.Model] {
	f := calendar.Func{Index: at, Fall: fall}
	if fall != nil && equal(t.Costs) {
		return newByAge(t, f, f.Of)
	}
	s := newScan(t, f, f.Of)
	s.packed, s.worth = true, worth
	return s
}

func newByAge(t env.Terms, rank calendar.Ranking, of func(i int) calendar.Params) env.Policy[env.Model] {
	if fewAreCrawled(t) {
		return fromCalendar{calendar.New(t.Costs, t.Budget, rank, of)}
	}
	return newScan(t, rank, of)
}

// fewAreCrawled reports whether the calendar is faster than a scan, see
// BenchmarkByAge: a crawl costs the calendar as much as some ten sources cost
// the scan, and more where memory is far.
func fewAreCrawled(t env.Terms) bool { return len(t.Costs) >= 128 && t.Round() >= 20 }

// tableRoom is the most numbers that a table holds, half a megabyte.
const tableRoom = 1 << 16

func newScan(t env.Terms, rank calendar.Ranking, of func(i int) calendar.Params) *byAge {
	n := len(t.Costs)
	s := &byAge{sel: NewSelector(t.Costs, t.Budget), rank: rank, p: make([]calendar.Params, n), key: make([]float64, n)}
	s.ages = min(64, tableRoom/max(1, n))
	s.seen = make([]float64, 0, n*s.ages)
	for i := range s.p {
		p := of(i)
		s.p[i] = p
		for age := 1; age <= s.ages; age++ {
			s.seen = append(s.seen, rank.At(&p, age))
		}
	}
	return s
}

// Select implements env.Policy.
func (s *byAge) Select(dst []int, o *env.Model) []int {
	for i := range s.key {
		if age := o.Age(i); age <= s.ages {
			s.key[i] = s.seen[i*s.ages+age-1]
		} else {
			s.key[i] = s.rank.At(&s.p[i], age)
		}
	}
	switch {
	case !s.packed:
		return s.sel.Top(dst, s.key)
	case s.worth == nil:
		return s.sel.Pack(dst, s.key, nil)
	}
	return s.sel.Pack(dst, s.key, func(i int) float64 { return s.worth(i, o.Age(i)) })
}
