package calendar

import (
	"math"
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// FirstAge is never late, and early by an epoch at most where the level is not
// within rounding of the limit and the decay is not extremely slow.
func TestFirstAge(t *testing.T) {
	r := stream.New(2, stream.Test)
	var exact, plain float64
	const cases = 200_000
	for range cases {
		p := Params{top: math.Exp(5 * r.NormFloat64()), decay: math.Exp(3*r.NormFloat64() - 4)}
		p[loss] = -math.Expm1(-p[decay])
		ix := Whittle{}
		var ratio float64
		kind := r.Intn(4)
		switch kind {
		case 0:
			ratio = r.Float64()
		case 1: // low levels
			ratio = math.Exp(-30 * r.Float64())
		case 2: // levels near the limit
			ratio = 1 - math.Exp(-40*r.Float64())
		case 3: // levels that are reached exactly, or just not
			ratio = ix.At(&p, 1+r.Intn(50)) / p[top] * (1 + float64(r.Intn(3)-1)*1e-16)
		}
		level := ratio * p[top]
		{
			got := ix.FirstAge(&p, level)
			if got < 1 || got > Never {
				t.Fatalf("%v, level %v: age %d", p, level, got)
			}
			for back := 1; back < min(got, 5); back++ {
				if age := got - back; ix.At(&p, age) >= level {
					t.Fatalf("%v, level %v: first age %d, but the index at %d is %v", p, level, got, age, ix.At(&p, age))
				}
			}
			want := slowFirstAge(&p, level)
			if got > want {
				t.Fatalf("%v, level %v: first age %d is late; it is %d", p, level, got, want)
			}
			if kind == 0 {
				plain++
				if got == want {
					exact++
				}
			}
			if ratio < 1-1e-6 && p[decay] > 1e-6 && got < want-1 {
				t.Fatalf("%v, level %v: first age %d is early; it is %d", p, level, got, want)
			}
		}
	}
	if exact < 0.99*plain {
		t.Errorf("FirstAge is exact in %v of %v plain cases; want nearly all", exact, plain)
	}
}

// slowFirstAge finds the first age by doubling and bisection.
func slowFirstAge(p *Params, level float64) int {
	lo, hi := 0, 1
	for !((Whittle{}).At(p, hi) >= level) {
		if hi >= min(1<<40, math.MaxInt/4) {
			return Never
		}
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; (Whittle{}).At(p, mid) >= level {
			hi = mid
		} else {
			lo = mid
		}
	}
	return min(hi, Never)
}

func TestFirstAgeAtTheEnds(t *testing.T) {
	rich, empty := Whittle{}.Of(env.NewSource("", 1, 0.1, 1)), Whittle{}.Of(env.NewSource("", 0, 0.1, 1))
	for _, c := range []struct {
		p     Params
		level float64
		want  int
	}{
		{rich, 0, 1}, {rich, -5, 1}, {rich, bottom, 1}, {rich, 1.1 * rich[top], Never}, {rich, math.Inf(1), Never},
		{empty, 0, 1}, {empty, 1e-300, Never},
	} {
		if got := (Whittle{}).FirstAge(&c.p, c.level); got != c.want {
			t.Errorf("%v, level %v: first age %d, want %d", c.p, c.level, got, c.want)
		}
	}
	f := Func{Index: func(i, age int) float64 { return float64(i * age) }}
	p := f.Of(3)
	for level, want := range map[float64]int{-1: 1, 3: 1, 4: 2, 6: 2, 300: 100} {
		if got := f.FirstAge(&p, level); got != want {
			t.Errorf("3 age, level %v: first age %d, want %d", level, got, want)
		}
	}
	f.Fall = func(int) float64 { return 5 }
	if got := f.FirstAge(&p, 11); got != 2 {
		t.Errorf("an index that falls by up to 5: first age of 11 is %d, want 2", got)
	}
	f.Fall = nil
	if p = f.Of(0); f.FirstAge(&p, 1) != Never {
		t.Error("an index that stays 0 reaches 1")
	}
}
