package calendar

import (
	"math"
	"testing"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
)

// TCNS, Remark below Theorem 1: on the states that a source passes through,
// the index is (1/C)[s((1−α)x − u) + x].
func TestWhittleIsTheRemark(t *testing.T) {
	r := stream.New(1, stream.Test)
	for range 20_000 {
		s := env.NewSource("", math.Exp(r.NormFloat64()), math.Exp(2*r.NormFloat64()-3), math.Exp(3*r.NormFloat64()))
		s.Cost = math.Exp(r.NormFloat64())
		age := 1 + r.Intn(1+r.Intn(2000))
		p := Whittle{}.Of(s)
		got, want := Whittle{}.At(&p, age), index.WhittleAtAge(s, age)
		// Near age 0 the formula is the difference of two numbers near cs.
		tol := 1e-12 + 1e-15/(s.Decay*float64(age))
		if !(math.Abs(got-want) <= tol*want) {
			t.Fatalf("%+v, age %d: index %v, want %v", s, age, got, want)
		}
		if got, want := (Mean{}).At(&p, age), s.MeanState(age)/s.Cost; !(math.Abs(got-want) <= 1e-12*want) {
			t.Fatalf("%+v, age %d: mean %v, want %v", s, age, got, want)
		}
	}
}

// FirstAge is never late, and early by an epoch at most where the level is not
// within rounding of the limit and the decay is not extremely slow.
func TestFirstAge(t *testing.T) {
	r := stream.New(2, stream.Test)
	var exact, plain float64
	const cases = 200_000
	for range cases {
		p := Params{math.Exp(5 * r.NormFloat64()), math.Exp(3*r.NormFloat64() - 4), 0}
		p[loss] = -math.Expm1(-p[decay])
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
			ratio = Whittle{}.At(&p, 1+r.Intn(50)) / p[top] * (1 + float64(r.Intn(3)-1)*1e-16)
		}
		level := ratio * p[top]
		for _, ix := range []Index{Whittle{}, Mean{}} {
			got := ix.FirstAge(&p, level)
			if got < 1 || got > Never {
				t.Fatalf("%T %v, level %v: age %d", ix, p, level, got)
			}
			for back := 1; back < min(got, 5); back++ {
				if age := got - back; ix.At(&p, age) >= level {
					t.Fatalf("%T %v, level %v: first age %d, but the index at %d is %v", ix, p, level, got, age, ix.At(&p, age))
				}
			}
			want := slowFirstAge(ix, &p, level)
			if got > want {
				t.Fatalf("%T %v, level %v: first age %d is late; it is %d", ix, p, level, got, want)
			}
			if kind == 0 {
				plain++
				if got == want {
					exact++
				}
			}
			if ratio < 1-1e-6 && p[decay] > 1e-6 && got < want-1 {
				t.Fatalf("%T %v, level %v: first age %d is early; it is %d", ix, p, level, got, want)
			}
		}
	}
	if exact < 0.99*plain {
		t.Errorf("FirstAge is exact in %v of %v plain cases; want nearly all", exact, plain)
	}
}

// slowFirstAge finds the first age by doubling and bisection.
func slowFirstAge(ix Index, p *Params, level float64) int {
	lo, hi := 0, 1
	for !(ix.At(p, hi) >= level) {
		if hi >= 1<<40 {
			return Never
		}
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; ix.At(p, mid) >= level {
			hi = mid
		} else {
			lo = mid
		}
	}
	return min(hi, Never)
}

func TestFirstAgeAtTheEnds(t *testing.T) {
	p := Whittle{}.Of(env.NewSource("", 1, 0.1, 1))
	zero := Whittle{}.Of(env.NewSource("", 0, 0.1, 1))
	for _, ix := range []Index{Whittle{}, Mean{}} {
		for _, c := range []struct {
			p     *Params
			level float64
			want  int
		}{
			{&p, 0, 1}, {&p, -5, 1}, {&p, bottom, 1}, {&p, 1.1 * p[top], Never}, {&p, math.Inf(1), Never},
			{&zero, 0, 1}, {&zero, 1e-300, Never},
		} {
			if got := ix.FirstAge(c.p, c.level); got != c.want {
				t.Errorf("%T %v, level %v: first age %d, want %d", ix, *c.p, c.level, got, c.want)
			}
		}
	}
	f := Func(func(i, age int) float64 { return float64(i * age) })
	q := f.Of(3)
	for level, want := range map[float64]int{-1: 1, 3: 1, 4: 2, 6: 2, 300: 100} {
		if got := f.FirstAge(&q, level); got != want {
			t.Errorf("3 age, level %v: first age %d, want %d", level, got, want)
		}
	}
	if q = f.Of(0); f.FirstAge(&q, 1) != Never {
		t.Error("an index that stays 0 reaches 1")
	}
}

func TestTables(t *testing.T) {
	r := stream.New(3, stream.Test)
	for range 100_000 {
		q := 20 * r.Float64()
		if r.Intn(2) == 0 {
			q = math.Exp(-12 * r.Float64())
		}
		z := lambert(q)
		// The residual of z − log(1+z) = q²/2, as an error of z.
		if err := (z - math.Log1p(z) - q*q/2) * (1 + z) / z; !(math.Abs(err) <= lambertErr*(1+z)/2+1e-16/z) {
			t.Fatalf("q = %v: z = %v is off by %v", q, z, err)
		}
		x := r.Float64()
		if r.Intn(2) == 0 {
			x = 1 - math.Exp(-27*r.Float64())
		}
		if x > 0 && !(math.Abs(logLess(x)-math.Log1p(-x)) <= 1e-12) {
			t.Fatalf("log(1 − %v) = %v, want %v", x, logLess(x), math.Log1p(-x))
		}
	}
}
