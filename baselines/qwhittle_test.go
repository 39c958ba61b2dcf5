package baselines

import (
	"math"
	"slices"
	"testing"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
)

// teachQ lets Q-learning watch one source that is crawled with probability .4,
// at the mean dynamics or, with noise, with exponential harvests of that mean.
// Ages beyond the last count as that.
func teachQ(s env.Source, ages, epochs int, noise bool) *qWhittle {
	l := newQ(env.Terms{Costs: []float64{s.Cost}, Budget: s.Cost}, func(s *QWhittle) { s.Ages = ages }, stream.New(1, stream.Policy))
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

// truncated returns the Whittle index of each age when ages beyond the last
// count as that: the price at which crawl and rest are worth the same there,
// where the best of the others is taken by enumeration of the thresholds.
func truncated(s env.Source, ages int) []float64 {
	index := make([]float64, ages)
	for k := 1; k <= ages; k++ {
		// Crawling at k from age 1 on earns (x(k) − λC)/k per epoch; waiting
		// for one more age must earn the same, and at the last age resting is
		// never to crawl again, which earns 0.
		x := s.MeanState(k)
		if k == ages {
			index[k-1] = x / s.Cost
			continue
		}
		y := s.MeanState(k + 1)
		index[k-1] = ((float64(k+1))*x - float64(k)*y) / s.Cost
	}
	return index
}

// The learned indices converge to the Whittle indices:
// Avrachenkov and Borkar (2022), on one source with few ages, where all state
// and action pairs are visited often.
func TestQLearnsTheWhittleIndex(t *testing.T) {
	s := env.NewSource("", 1, .5, 1)
	s.Cost = 2
	const ages = 6
	want := truncated(s, ages)
	for k := 1; k < ages; k++ {
		if exact := index.WhittleAtAge(s, k); math.Abs(want[k-1]-exact) > 1e-12 {
			t.Fatalf("truncation at %d ages moves the index of age %d from %v to %v", ages, k, exact, want[k-1])
		}
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

func TestQStaysWithinWhatAnIndexCanBe(t *testing.T) {
	in := env.Paper(1)
	w := must(env.NewMean(in, false))
	l := newQ(in.Terms(), func(*QWhittle) {}, stream.New(2, stream.Policy))
	for range 20000 {
		got := must(w.Step(l.Select(nil, &w.View().Online)))
		l.Update(got, &w.View().Online)
	}
	for i, s := range in.Sources {
		for k := 1; k <= l.s.Ages; k++ {
			if g := l.index(i, k); !(g >= 0 && g <= s.Ceiling()) {
				t.Errorf("source %d, age %d: index %v; allowed is 0 to %v", i, k, g, s.Ceiling())
			}
		}
		for age, q := range l.source[i].q {
			for _, v := range slices.Concat(q[0], q[1]) {
				if math.Abs(v) > 1e5 || math.IsNaN(v) {
					t.Fatalf("source %d, age %d: Q-value %v", i, age+1, v)
				}
			}
		}
	}
}

func newQ(t env.Terms, change func(s *QWhittle), r *stream.Rand) *qWhittle {
	return must(NewQWhittle(t, but(DefaultQWhittle(), change), r)).(*qWhittle)
}
