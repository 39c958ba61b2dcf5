package baselines

import (
	"math"
	"testing"

	"ephemera/env"
)

// Settings that are out of their range are errors.
func TestBadSettings(t *testing.T) {
	terms := hourly(1, 1, 1)
	refuse := func(p any, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%T is made", p)
		}
	}
	for _, change := range []func(*QWhittle){
		func(s *QWhittle) { s.Ages = 1 }, func(s *QWhittle) { s.Fast = 2 },
		func(s *QWhittle) { s.Slow = -1 }, func(s *QWhittle) { s.Explore = 2 },
	} {
		refuse(NewQWhittle(terms, but(DefaultQWhittle(), change), nil))
	}
	for _, change := range []func(*Salmut){
		func(s *Salmut) { s.Ages = 1 }, func(s *Salmut) { s.Kappa = -1 }, func(s *Salmut) { s.Critic = -1 },
		func(s *Salmut) { s.Actor = -1 }, func(s *Salmut) { s.Dual = math.NaN() },
	} {
		refuse(NewSalmut(terms, but(DefaultSalmut(), change), nil))
	}
	for _, change := range []func(*Adaptive){
		func(s *Adaptive) { s.Min = -1 }, func(s *Adaptive) { s.Min, s.Max = 3, 2 }, func(s *Adaptive) { s.Min = math.NaN() },
	} {
		refuse(NewNutch(terms, but(DefaultNutch(), change), false))
		refuse(NewStormCrawler(terms, but(DefaultStormCrawler(), change), false))
	}
	refuse(NewEntryFrequency(terms, but(DefaultEntryFrequency(), func(s *EntryFrequency) { s.Min = 30 }), false))
	refuse(NewRelaxedControl(env.Paper(1), but(DefaultRelaxed(), func(s *RelaxedOptions) { s.Power = .5 })))
}
