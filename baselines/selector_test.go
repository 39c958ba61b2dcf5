package baselines

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"ephemera/env"
)

// topSlow sorts everything and fills the budget.
func topSlow(costs []float64, budget float64, key []float64) []int {
	var order []int
	for i, k := range key {
		if !math.IsNaN(k) && !math.IsInf(k, -1) {
			order = append(order, i)
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return key[order[a]] > key[order[b]] })
	var got []int
	left := budget
	for _, i := range order {
		if env.Fits(costs[i], left) {
			got = append(got, i)
			left -= costs[i]
		}
	}
	return got
}

func TestSelectorAgainstSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		// Few distinct keys, so that most of them tie.
		keys := rapid.OneOf(
			rapid.Map(rapid.IntRange(0, 4), func(k int) float64 { return float64(k) }),
			rapid.Float64Range(-3, 3),
			rapid.SampledFrom([]float64{math.NaN(), math.Inf(-1), math.Inf(1), 0, math.Copysign(0, -1)}),
		)
		costs := make([]float64, n)
		one := rapid.SampledFrom([]float64{0.1, 1, 3}).Draw(t, "cost")
		mixed := rapid.Bool().Draw(t, "mixed")
		var total float64
		for i := range costs {
			costs[i] = one
			if mixed {
				costs[i] = rapid.SampledFrom([]float64{0.1, 0.3, 1, 2.5}).Draw(t, "cost")
			}
			total += costs[i]
		}
		budget := rapid.OneOf(
			rapid.Float64Range(0, total*1.1),
			rapid.Map(rapid.IntRange(0, n), func(k int) float64 { return float64(k) * one }),
		).Draw(t, "budget")
		sel := NewSelector(costs, budget)
		prefix := []int{-7}
		for range 3 { // the scratch space is used again
			key := rapid.SliceOfN(keys, n, n).Draw(t, "keys")
			want := topSlow(costs, budget, key)
			before := slices.Clone(key)
			got := sel.Top(slices.Clone(prefix), key)
			if got[0] != -7 {
				t.Fatalf("Top overwrote dst: %v", got)
			}
			got = got[1:]
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("costs %v, budget %v, keys %v: chose %v, want %v", costs, budget, key, got, want)
			}
			for i := range key {
				if math.Float64bits(key[i]) != math.Float64bits(before[i]) {
					t.Fatalf("key %d changed", i)
				}
			}
		}
	})
}

func BenchmarkSelector(b *testing.B) {
	for _, part := range []int{5, 1000} {
		b.Run(fmt.Sprintf("1 in %d", part), func(b *testing.B) {
			const n = 100_000
			costs, key, dst := make([]float64, n), make([]float64, n), make([]int, 0, n)
			for i := range costs {
				costs[i], key[i] = 1, math.Sin(float64(i)*1.7)
			}
			sel := NewSelector(costs, float64(n/part))
			for b.Loop() {
				dst = sel.Top(dst[:0], key)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/source")
		})
	}
}

// A pack is within the budget and leaves no room for what it passed over, is worth
// no less than Top, and among few sources the most of all sets; where costs are
// equal it is Top.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 24).Draw(t, "n")
		cost := rapid.OneOf(rapid.Float64Range(.3, 3), rapid.SampledFrom([]float64{.5, 1, 1.5}))
		costs := rapid.SliceOfN(cost, n, n).Draw(t, "costs")
		if rapid.Bool().Draw(t, "equal") {
			for i := range costs {
				costs[i] = costs[0]
			}
		}
		budget := rapid.Float64Range(0, 8).Draw(t, "budget")
		sel := NewSelector(costs, budget)
		for range 2 { // the scratch space is used again
			odd := rapid.SampledFrom([]float64{1, math.NaN(), math.Inf(-1), 1e300})
			key := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-2, 4), odd), n, n).Draw(t, "keys")
			got, top := sel.pack([]int{-7}, sel.candidates(key))[1:], sel.Top(nil, key)
			var cost float64
			in := make([]bool, n)
			for _, i := range got {
				if in[i] || !(key[i] > negInf) {
					t.Fatalf("chose %v of keys %v", got, key)
				}
				in[i] = true
				cost += costs[i]
			}
			if !env.Fits(cost, budget) {
				t.Fatalf("costs %v, budget %v: %v costs %v", costs, budget, got, cost)
			}
			for i, k := range key {
				if k > negInf && !in[i] && env.Fits(costs[i], budget-cost-1e-9) {
					t.Fatalf("costs %v, budget %v: %v has room for %d", costs, budget, got, i)
				}
			}
			worth := func(set []int) (v float64) {
				for _, i := range set {
					v += costs[i] * max(0, key[i])
				}
				return v
			}
			least := worth(top)
			if n <= 12 && len(top) <= reopened {
				for set := range 1 << n {
					var some []int
					left := budget - 1e-9
					for i := range n {
						if set>>i&1 != 0 && key[i] > negInf {
							some = append(some, i)
							left -= costs[i]
						}
					}
					if left >= 0 {
						least = max(least, worth(some))
					}
				}
			}
			if v := worth(got); v < least*(1-1.1e-3)-1e-12 {
				t.Fatalf("costs %v, budget %v, keys %v: %v is worth %v; %v can be had",
					costs, budget, key, got, v, least)
			}
			if sel.equal && !slices.Equal(got, top) {
				t.Fatalf("equal costs: %v; Top %v", got, top)
			}
		}
	})
}

// A first visit, a key of +Inf, stays whatever else would fill the budget.
func TestPackFirstVisits(t *testing.T) {
	sel := NewSelector([]float64{2, 3, 1, 1, 1}, 3)
	if got := sel.pack(nil, sel.candidates([]float64{math.Inf(1), 9, 8, 7, 6})); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("chose %v; want 0 and 2", got)
	}
}
