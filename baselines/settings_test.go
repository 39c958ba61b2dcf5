package baselines

import (
	"math"
	"testing"

	"ephemera/baselines/index"
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
	refuse(NewQWhittle(terms, but(DefaultQWhittle(), func(s *QWhittle) { s.Ages = 1 }), nil))
	refuse(NewQWhittle(terms, but(DefaultQWhittle(), func(s *QWhittle) { s.Explore = 2 }), nil))
	refuse(NewSalmut(terms, but(DefaultSalmut(), func(s *Salmut) { s.Dual = math.NaN() }), nil))
	refuse(NewRelaxedControl(env.Paper(1), RelaxedOptions{First: -1}))
}

// What a caller does wrong panics.
func TestMistakesPanic(t *testing.T) {
	broken := env.Paper(1)
	broken.Budget = 9
	cases := []struct {
		name string
		call func()
	}{
		{"a negative budget", func() { NewSelector([]float64{1}, -1) }},
		{"a cost of 0", func() { NewSelector([]float64{1, 0}, 1) }},
		{"a key too few", func() { NewSelector([]float64{1, 1}, 1).Top(nil, []float64{1}) }},
		{"a relaxed optimum", func() { index.Relax(broken) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			c.call()
		})
	}
}
