package index

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/envtest"
)

// objectives are laws of a source with an epoch of an hour, of rate 3, interest 2 and
// decay .4, and the index as docs/model.md has it for real ages.
var objectives = []struct {
	name  string
	index func(a float64) float64
}{
	{"interest:4h", func(a float64) float64 {
		c := math.Ln2 / 4
		return 6 / c * (1 - math.Exp(-c*a)*(1+c*a))
	}},
	{"delay", func(a float64) float64 { return 6 * a * a / 2 }},
	{"delay:0.5", func(a float64) float64 { return 6 * .5 * math.Pow(a, 1.5) / 1.5 }},
	{"delay:2", func(a float64) float64 { return 6 * 2 * math.Pow(a, 3) / 3 }},
	{"deadline:5h", func(a float64) float64 {
		if a < 5 {
			return 0
		}
		return 6 * 5
	}},
	{"freshness", func(a float64) float64 { return 2 / 3. * (1 - math.Exp(-3*a)*(1+3*a)) }},
}

// under returns a source under an objective.
func under(t rapid.TB, name string, s env.Source) env.Source {
	o, err := env.ParseObjective(name)
	if err != nil {
		t.Fatal(err)
	}
	return o.Of(s, 3.6e12)
}

// The formula of docs/model.md, W(a) = aC(a) − ∫C, is what the index in epochs tends to
// as epochs get short.
func TestIndexOfObjectives(t *testing.T) {
	const n = 20_000 // epochs in an hour
	for _, o := range objectives {
		t.Run(o.name, func(t *testing.T) {
			parsed, err := env.ParseObjective(o.name)
			if err != nil {
				t.Fatal(err)
			}
			s := env.NewSource("", 3./n, .4/n, 2)
			c := NewCurve(parsed.Of(s, 3.6e12/n))
			unit := 1. // an hour's delay to the power k, in epochs
			if c.Unbounded() {
				unit = math.Pow(n, c.Shape)
			}
			if o.name == "freshness" {
				unit = n // importance is per epoch
			}
			for _, age := range []float64{.1, .7, 2, 4.5, 5.5, 9} {
				got, want := c.Index(int(age*n))/unit, o.index(age)
				if math.Abs(got-want) > 1e-3*o.index(9) {
					t.Errorf("index at age %v is %v; want %v", age, got, want)
				}
			}
		})
	}
}

// Under each objective the Lagrangian index is what value iteration gives at any price,
// and 0 at the price that is Whittle's index.
func TestLagrangianOfObjectives(t *testing.T) {
	for _, o := range objectives {
		t.Run(o.name, func(t *testing.T) {
			s := under(t, o.name, env.Source{Rate: 3, Decay: .4, Interest: 2, Window: math.Inf(1), Cost: 1.5})
			c := NewCurve(s)
			h := make([]float64, 120)
			for k := range h {
				h[k] = c.At(k + 1)
			}
			for _, at := range []int{1, 2, 6, 11} {
				price := WhittleAtAge(s, at)
				l := NewLagrange(s, price)
				if v := l.AtAge(at); math.Abs(v) > 1e-9*size(c) {
					t.Errorf("at the price %v of age %d the Lagrangian index is %v; want 0", price, at, v)
				}
				price *= 1.07
				l = NewLagrange(s, price)
				for age, more := range worth(h, price*s.Cost, 0)[:30] {
					if got, want := l.AtAge(age+1), more/s.Cost; math.Abs(got-want) > 2e-6*size(c) {
						t.Errorf("price %v, age %d: Lagrangian index %v; value iteration gives %v",
							price, age+1, got, want)
					}
				}
			}
		})
	}
}

// Under each objective the inverse of the index is the least age that reaches a charge.
func TestInverseOfObjectives(t *testing.T) {
	for _, o := range objectives {
		t.Run(o.name, func(t *testing.T) {
			c := NewCurve(under(t, o.name, env.NewSource("", 3, .4, 2)))
			last := 0.
			for age := 1; age < 60; age++ {
				charge := c.Index(age)
				if charge < last*(1-1e-12)-1e-12 {
					t.Errorf("the index falls from %v to %v at age %d", last, charge, age)
				}
				if got := c.Age(charge, 1, Never); c.Index(got) < charge || got > 1 && c.Index(got-1) >= charge {
					t.Errorf("charge %v is reached at age %d, not first at %d", charge, age, got)
				}
				last = charge
			}
			if got := c.Age(1e12, 1, Never); (got == Never) == c.Unbounded() {
				t.Errorf("a charge of 10¹² is reached at age %d", got)
			}
		})
	}
}

// Under each objective, mixed ones too, plan and bound of the relaxed problem are each
// other's certificate: the plan earns the bound and keeps the budget, and the dual, which
// no plan exceeds, is nowhere less.
func TestRelaxOfObjectives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := envtest.DrawInstance(t, 1, 8, rapid.Bool().Draw(t, "costs"), false)
		for _, s := range in.Sources { // each can be crawled
			in.Budget = max(in.Budget, s.Cost)
		}
		one := rapid.Bool().Draw(t, "one objective")
		draw := func() string { return objectives[rapid.IntRange(0, len(objectives)-1).Draw(t, "objective")].name }
		name := draw()
		for i := range in.Sources {
			if !one {
				name = draw()
			}
			in.Sources[i] = under(t, name, in.Sources[i])
		}
		r := Relax(in)
		scale := 1 + math.Abs(r.Bound)
		if math.Abs(r.Reward-r.Bound) > 1e-8*scale || r.Cost > in.Budget*(1+1e-9) {
			t.Fatalf("%+v: the plan earns %v at cost %v; the bound is %v, the budget %v",
				in, r.Reward, r.Cost, r.Bound, in.Budget)
		}
		for range 5 {
			price := r.Price * rapid.Float64Range(0, 3).Draw(t, "price")
			dual := price * in.Budget
			for _, s := range in.Sources {
				c := NewCurve(s)
				best := c.Yield(Never, 0)
				for age := 1; age < 2000; age++ {
					best = max(best, c.Yield(age, price*s.Cost))
				}
				dual += best
			}
			if dual < r.Bound-1e-8*scale {
				t.Fatalf("%+v: at the price %v the dual is %v, below the bound %v at %v",
					in, price, dual, r.Bound, r.Price)
			}
		}
	})
}
