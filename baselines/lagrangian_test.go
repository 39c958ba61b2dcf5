package baselines

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
)

func TestLagrangianKeepsTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := envtest.DrawInstance(t, 1, 8, true, true)
		w := must(env.NewMean(in, false))
		p := NewLagrangian(in)
		for range 50 {
			if _, err := w.Step(p.Select(nil, &w.View().Model)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestLagrangianPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := envtest.DrawInstance(t, 2, 8, rapid.Bool().Draw(t, "costs"), true)
		price := index.Relax(in).Price
		costs := in.Terms().Costs
		p, w := NewLagrangian(in), mean(t, in, false)
		key := make([]float64, len(costs))
		single := make([]index.Lagrange, len(costs))
		for i, s := range in.Sources {
			single[i] = index.NewLagrange(s, price)
		}
		for range 30 {
			o := &w.View().Model
			for i := range key {
				key[i] = single[i].AtAge(o.Age(i))
			}
			got := p.Select(nil, o)
			// Indices that differ in their last bits may change places, so that
			// the indices are compared, not the sources.
			want := topSlow(costs, in.Budget, key)
			var a, b float64
			for _, i := range got {
				a += key[i]
			}
			for _, i := range want {
				b += key[i]
			}
			if math.Abs(a-b) > 1e-9*(1+price)*float64(len(key)) {
				t.Fatalf("crawls %v, want %v by %v", got, want, key)
			}
			if _, err := w.Step(got); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestLagrangianOnTableI(t *testing.T) {
	for _, m := range []float64{1, 2, 3} {
		in := env.Paper(m)
		envtest.Near(t, "reward over 1000 epochs", run(t, in, NewLagrangian(in), 1000), run(t, in, NewWhittle(in), 1000), 1e-12)
		envtest.Near(t, "reward in the long run", longRun(t, in, NewLagrangian(in), 7000, 7000), longRun(t, in, NewWhittle(in), 7000, 7000), 1e-12)
	}
}
