package calendar

import (
	"math"
	"slices"
	"testing"

	"ephemera/env"
)

// With sizes as they are in use, the calendar chooses what scan and sort
// chooses, through jumps of the budget by factors of four.
func TestChoosesAtUsualSizes(t *testing.T) {
	for name, in := range map[string]env.Instance{
		"lognormal": env.Lognormal(5000, 50, 1), "wide": env.Wide(5000, 50, 1), "mixed": env.Mixed(5000, 80, 1),
		"slow": {Sources: families["slow"](5000), Budget: 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			terms := in.Terms()
			o := &obvious{rank: Whittle{}, costs: terms.Costs}
			for _, s := range in.Sources {
				o.p = append(o.p, Whittle{}.Of(s))
				o.view.Last = append(o.view.Last, -1)
			}
			c := New(terms.Costs, in.Budget, Whittle{}, func(i int) Params { return o.p[i] })
			var got []int
			var fell, rose int
			floor := math.Inf(1)
			for epoch := range 400 {
				o.budget = in.Budget * []float64{1, 4, 0.25}[epoch/100%3]
				c.budget = o.budget
				want := o.choose()
				got = c.Select(got[:0], &o.view)
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("epoch %d: crawled %v; scan and sort crawls %v", epoch, got, want)
				}
				o.crawl(got)
				switch now := c.classes[0].floor; {
				case now < floor:
					fell++
				case now > floor:
					rose++
				}
				floor = c.classes[0].floor
			}
			if err := c.check(); err != nil {
				t.Error(err)
			}
			if fell == 0 || rose == 0 {
				t.Errorf("the floor fell %d times and rose %d times; the test wants both", fell, rose)
			}
		})
	}
}

// The work of an epoch grows with the crawls, not with the sources.
func TestWorkPerEpoch(t *testing.T) {
	const k, epochs = 50, 300
	for _, family := range []string{"lognormal", "slow"} {
		for _, n := range []int{10_000, 30_000, 100_000} {
			var rank counted
			s := newService(family, n, k)
			epoch := s.run(s.calendar(&rank))
			for range 200 {
				epoch()
			}
			rank = counted{}
			for range epochs {
				epoch()
			}
			at, first := float64(rank.at)/(epochs*k), float64(rank.first)/(epochs*k)
			t.Logf("%s, N = %d: %.2f evaluations of the index and %.2f of its inverse per crawl", family, n, at, first)
			if at > 5 || first > 5 {
				t.Errorf("%s, N = %d: %.2f evaluations of the index and %.2f of its inverse per crawl; want at most 5 of each", family, n, at, first)
			}
		}
	}
}

func TestAllocatesNothing(t *testing.T) {
	for family, k := range map[string]int{"slow": 50, "mixed": 50} {
		s := newService(family, 20_000, k)
		epoch := s.run(s.calendar(Whittle{}))
		for range 1000 {
			epoch()
		}
		if got := testing.AllocsPerRun(500, epoch); got != 0 {
			t.Errorf("%s: %v allocations per epoch; want none", family, got)
		}
	}
}

// At this size the fixed scratch space counts for 10 bytes per source.
func TestMemory(t *testing.T) {
	const n = 100_000
	for _, family := range []string{"slow", "mixed"} {
		s := newService(family, n, 100)
		c := s.calendar(Whittle{})
		epoch := s.run(c)
		for range 1000 {
			epoch()
		}
		per := float64(c.size()) / n
		t.Logf("%s: %.1f bytes per source", family, per)
		if per > 58 {
			t.Errorf("%s: %.1f bytes per source; want at most 58 at this size", family, per)
		}
	}
}

func TestCallerMistakesPanic(t *testing.T) {
	of := func(int) Params { return Whittle{}.Of(env.NewSource("", 1, 1, 1)) }
	fresh := func(costs ...float64) *Calendar { return New(costs, 1, Whittle{}, of) }
	for name, f := range map[string]func(){
		"no cost":       func() { fresh(0) },
		"infinite cost": func() { fresh(math.Inf(1)) },
		"budget":        func() { New([]float64{1}, math.NaN(), Whittle{}, of) },
		"too few":       func() { fresh(1, 2).Select(nil, &env.Online{Last: []int{-1}}) },
		"future crawl":  func() { fresh(1, 2).Select(nil, &env.Online{Epoch: 3, Last: []int{3, 0}}) },
		"epoch":         func() { fresh(1, 2).Select(nil, &env.Online{Epoch: -1, Last: []int{-2, -2}}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
	if got := fresh().Select(nil, &env.Online{}); len(got) != 0 {
		t.Errorf("a calendar without sources chose %v", got)
	}
}
