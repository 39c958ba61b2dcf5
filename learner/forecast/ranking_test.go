package forecast

import (
	"math"
	"slices"
	"testing"

	"ephemera/env"
)

// TestDue: when a source that the index does not ask for is revisited. One that
// is well known waits for three horizons, after which what was seen of it counts
// for little; one of which little is known, or that may keep hours, for a day,
// and for twice as long after each revisit in vain.
func TestDue(t *testing.T) {
	const never = 10_000
	for _, c := range []struct {
		name          string
		horizon       float64
		length, doubt float64
		vain          float64
		want          int // age
	}{
		{"well known", 100, 0, .1, 1, 300},
		{"well known, in vain", 100, 0, .1, 2, 300},
		{"well known, nothing forgotten", 0, 0, .1, 1, never},
		{"doubtful", 100, 0, .8, 1, 24},
		{"doubtful, in vain", 100, 0, .8, 2, 48},
		{"doubtful, often in vain", 100, 0, .8, 64, 300},
		{"doubtful, nothing forgotten", 0, 0, .8, 64, 24 * 64},
		{"dated", 100, 3600, .1, 1, 24},
		{"dated, in vain", 100, 3600, .1, 2, 48},
	} {
		set := DefaultSettings()
		set.Horizon = c.horizon
		r := newRanking(env.Terms{Costs: []float64{1, 1}, Budget: 1, Length: c.length}, &set)
		r.Know(0, Source{Inflow: 1, Decay: 1, Doubt: c.doubt})
		r.Vain[0] = c.vain
		age := 1
		for ; age < never; age++ {
			r.Credit = patience // does not wait for a low price
			if r.due(1, &env.Online{Epoch: age, Last: []int{0, age - 1}}) {
				break
			}
		}
		if age != c.want || age < never && (r.Who != 0 || !math.IsInf(r.key[0], 1)) {
			t.Errorf("%s: source %d is due at age %d; want 0 at %d", c.name, r.Who, age, c.want)
		}
	}
}

// TestFirstVisitsOfAll: beside a source that the index always prefers, all others
// have their first visits, two where epochs have hours.
func TestFirstVisitsOfAll(t *testing.T) {
	const n = 50
	for _, c := range []struct {
		length float64
		want   int
	}{{0, 1}, {3600, 2}} {
		terms := env.Terms{Costs: slices.Repeat([]float64{1}, n), Budget: 1, Length: c.length}
		r := newRanking(terms, &Settings{})
		o := &env.Model{Online: env.Online{Last: slices.Repeat([]int{-1}, n)}, Mean: make([]float64, n)}
		for i := range n {
			r.Know(i, Source{Inflow: 1, Decay: 1})
			o.Mean[i] = .5
		}
		r.Know(0, Source{Inflow: 1e6, Decay: 1})
		o.Mean[0] = .5e6
		for ; o.Epoch < 2*n/firstShare+8; o.Epoch++ {
			for _, i := range r.Select(nil, o) {
				o.Last[i] = o.Epoch
				r.Update([]env.Crawled{{Source: i}}, o)
			}
		}
		for i, v := range r.Visits[1:] {
			if v != c.want {
				t.Errorf("epochs of %v s: source %d has %d visits; want %d", c.length, i+1, v, c.want)
			}
		}
	}
}

// TestBadSettings: a setting that is out of its range is an error of both
// constructors.
func TestBadSettings(t *testing.T) {
	for name, spoil := range map[string]func(s *Settings){
		"optimism": func(s *Settings) { s.Optimism = 11 },
		"revisit":  func(s *Settings) { s.Revisit = 2 },
		"horizon":  func(s *Settings) { s.Horizon = -1 },
		"decay":    func(s *Settings) { s.Decay = math.NaN() },
		"profile":  func(s *Settings) { s.Profile = "weekly" },
	} {
		s := DefaultSettings()
		spoil(&s)
		if l, err := New(env.Paper(1).Terms(), &s); err == nil || l != nil {
			t.Errorf("%s: taken", name)
		}
	}
	s := DefaultActorSettings()
	s.Optimism = -1
	if _, err := NewActor(env.Paper(1).Terms(), &s, nil); err == nil {
		t.Error("optimism of the actor: taken")
	}
}
