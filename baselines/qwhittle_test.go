package baselines

import (
	"math"
	"testing"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
)

// teachQ lets Q-learning watch one source that is crawled with probability .4,
// at the mean dynamics or, with noise, with exponential harvests of that mean.
// Ages beyond the last count as that.
func teachQ(s env.Source, ages, epochs int, noise bool) *qWhittle {
	terms := env.Terms{Costs: []float64{s.Cost}, Budget: s.Cost}
	l := newQ(terms, func(s *QWhittle) { s.Ages = ages }, stream.New(1, stream.Policy))
	r := stream.New(1, stream.Test)
	o := env.Online{Last: []int{-1}}
	for e := range epochs {
		var got []env.Crawled
		if r.Float64() < .4 {
			x := s.MeanState(min(o.Age(0), ages))
			if noise {
				x *= r.ExpFloat64()
			}
			got = append(got, env.Crawled{Source: 0, Age: o.Age(0), Interest: x})
			o.Last[0] = e
		}
		o.Epoch++
		l.Update(got, &o)
	}
	return l
}

// The learned indices converge to the Whittle indices:
// Avrachenkov and Borkar (2022), on one source with few ages, where all state
// and action pairs are visited often.
func TestQLearnsTheWhittleIndex(t *testing.T) {
	s := env.NewSource("", 1, .5, 1)
	s.Cost = 2
	const ages = 6
	// At the last age to rest is never to crawl again, which earns 0.
	want := []float64{ages - 1: s.MeanState(ages) / s.Cost}
	for k := range ages - 1 {
		want[k] = index.WhittleAtAge(s, k+1)
	}
	l := teachQ(s, ages, 60000, false)
	for k := 1; k <= ages; k++ {
		if got := l.index(0, k); math.Abs(got/want[k-1]-1) > .002 {
			t.Errorf("learned index of age %d is %v, want %v", k, got, want[k-1])
		}
	}
	if l.index(0, 3*ages) != l.index(0, ages) {
		t.Error("an age beyond the last has another index than the last")
	}
	l = teachQ(s, ages, 1000000, true)
	for k := 1; k <= ages; k++ {
		if got := l.index(0, k); math.Abs(got/want[k-1]-1) > .25 {
			t.Errorf("learned index of age %d from noisy harvests is %v, want %v", k, got, want[k-1])
		}
	}
}

// index returns the learned index of source i at an age.
func (l *qWhittle) index(i, age int) float64 {
	return l.source[i].lambda[min(age, l.s.Ages)-1]
}

func newQ(t env.Terms, change func(s *QWhittle), r *stream.Rand) *qWhittle {
	return must(NewQWhittle(t, but(DefaultQWhittle(), change), r)).(*qWhittle)
}
