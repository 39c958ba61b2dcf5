package lspe

import (
	"math"
	"slices"
	"testing"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// power draws from lo to hi, all powers alike.
func power(r *stream.Rand, lo, hi float64) float64 { return lo * math.Pow(hi/lo, r.Float64()) }

// anything returns a learner of random sources that has learned anything.
func anything(r *stream.Rand, set *Settings) *Learner {
	in := env.Instance{ID: "any", Budget: power(r, 1, 8)}
	for range 10 {
		s := env.NewSource("", power(r, 1e-3, 1e5), power(r, 1e-4, 10), power(r, .1, 10))
		s.Cost = power(r, .3, 3) * in.Budget / 2
		in.Sources = append(in.Sources, s)
	}
	l := newModel(in, set, stream.New(2, stream.Policy))
	l.price = power(r, 1e-3, 3) * l.unit
	l.scale = power(r, 1e-3, 3) * l.unit
	for i := range l.src {
		s := &l.src[i]
		s.lnTheta = r.Float64() * math.Log(l.most)
		s.reach()
		s.slope, s.toll = power(r, 1e-3, 3)*s.peak/s.Theta, power(r, 1e-3, 3)*l.costs[i]/s.Theta
	}
	return l
}

// P is within a factor of two of what crawls at Θ earn, and is that where Θ is 1
// or crawls at Θ do not pay.
func TestProfitBounds(t *testing.T) {
	r := stream.New(3, stream.Test)
	var low, high int
	for range 300 {
		l := anything(r, nil)
		for i := range l.src {
			s := &l.src[i]
			profit, at := l.profit(i)
			raw := s.slope - l.price*s.toll
			want := max(0, (s.peak-l.price*l.costs[i])/s.Theta)
			if !near(at, want, 1e-12) {
				t.Fatalf("crawls at Θ earn %v; want %v", at, want)
			}
			switch {
			case s.Theta == 1 || at == 0:
				raw = at
			case raw < at/2:
				raw, low = at/2, low+1
			case raw > 2*at:
				raw, high = 2*at, high+1
			}
			if !near(profit, raw, 1e-12) {
				t.Fatalf("P is %v; want %v, with %v at Θ = %v", profit, raw, at, s.Theta)
			}
		}
	}
	if low < 20 || high < 20 {
		t.Errorf("%d cases below and %d above the bounds; want 20 of each", low, high)
	}
}

// The frozen learner's key does not fall as a source waits, whatever threshold,
// price and r it has learned, where the margin counts for half or more.
func TestKeyRises(t *testing.T) {
	envtest.Alone(t)
	r := stream.New(1, stream.Test)
	for trial := range 300 {
		set := DefaultSettings()
		set.MarginShare, set.MarginCap, set.IndexCap = .5+.5*float64(trial%3)/2, power(r, .3, 3), power(r, .3, 5)
		l := anything(r, &set)
		f := l.Frozen()
		for i := range l.src {
			high, age := math.Inf(-1), 0
			for a := 1.0; a < 1e7; a = max(a+1, math.Floor(a*1.02)) {
				key := f.key(i, int(a))
				if key < high-f.fall(i) {
					t.Fatalf("trial %d, source %d: key %v at age %v, %v at %d; Θ is %v, most %v", trial, i, key, a, high, age, l.src[i].Theta, l.most)
				}
				if key > high {
					high, age = key, int(a)
				}
			}
		}
	}
}

// By age, with and without looking at all sources, the frozen learner chooses
// what it chooses by the states.
func TestFrozenByAge(t *testing.T) {
	envtest.Alone(t)
	for _, in := range []env.Instance{env.Paper(2), env.Lognormal(3000, 20, 2), env.Wide(2000, 30, 2), env.Mixed(50, 5, 1)} {
		l := newModel(in, nil, stream.New(1, stream.Policy))
		earn(t, in, l, 500)
		f := l.Frozen()
		byAge, scan := f.ByAge(), baselines.NewPackedByAge(in.Terms(), f.key, f.worth, nil)
		w := must(env.NewMean(in, false))
		var apart int
		for epoch := range 500 {
			want, got, seen := scan.Select(nil, &w.View().Model), byAge.Select(nil, &w.View().Model), f.Select(nil, &w.View().Model)
			for _, v := range [][]int{want, got, seen} {
				slices.Sort(v)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s, epoch %d: crawls %v; all sources looked at, %v", in.ID, epoch, got, want)
			}
			if !slices.Equal(got, seen) {
				apart++ // states and ages round apart
			}
			if _, err := w.Step(got); err != nil {
				t.Fatal(err)
			}
		}
		if apart > 5 {
			t.Errorf("%s: by age and by state %d of 500 epochs differ", in.ID, apart)
		}
	}
}
