package lspe

import (
	"math"
	"testing"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
)

func world(budget float64, sources ...[4]float64) env.Instance {
	in := env.Instance{Budget: budget}
	for _, s := range sources {
		v := env.NewSource("", s[0], s[1], s[2])
		v.Cost = s[3]
		in.Sources = append(in.Sources, v)
	}
	return in
}

// TestHardWorlds: worlds in which an earlier form of the learner was bad.
func TestHardWorlds(t *testing.T) {
	// A source dearer than the budget, the richest of all.
	dear := world(1, [4]float64{10, .5, 1, 1}, [4]float64{1, .5, 1, 1}, [4]float64{100, .05, 5, 2})
	// Budget that no crawl can use.
	idle := world(2.9, [4]float64{1.8, .54, 1, 1}, [4]float64{7.7, 1.8, 1, 1}, [4]float64{91, 1.6, 1, 1})
	paper := env.Paper(3.9)
	// Few crawls of very different worth fit at once, and most of what fits
	// beside them is worth nothing.
	knapsack := world(3, [4]float64{20, 1, 1e4, 1.6}, [4]float64{20, 5, 1e3, 1.5}, [4]float64{20, .1, 100, 1.4},
		[4]float64{20, 9, .1, .4}, [4]float64{20, .4, 1e-4, .3}, [4]float64{20, 1, 1, .8})
	for name, in := range map[string]env.Instance{"dear": dear, "idle": idle, "Table I, 3.9": paper, "knapsack": knapsack} {
		const steps = 3000
		learned, learning, l := ratios(t, in, 1, steps, steps, nil)
		if !(learned >= .995 && learning >= .97) {
			t.Errorf("%s: learned earns %.4f of Whittle, learning %.4f; want .995 and .97; price %v", name, learned, learning, l.Price())
		}
	}
}

// TestPriceSeesSelector: the price is that of what the selector can spend. A
// budget of 2.9 pays for two crawls of cost 1, and the price is that of a
// budget of 2. Where some sources are next to worthless the price still comes
// to where it belongs within 3000 epochs.
func TestPriceSeesSelector(t *testing.T) {
	price := func(in env.Instance) float64 {
		l := newModel(in, nil, stream.New(1, stream.Policy))
		earn(t, in, l, 3000)
		return l.Price()
	}
	in := world(2.9, [4]float64{1.8, .54, 1, 1}, [4]float64{7.7, 1.8, 1, 1}, [4]float64{91, 1.6, 1, 1})
	got := price(in)
	in.Budget = 2
	if want := price(in); math.Abs(got/want-1) > .1 {
		t.Errorf("price %v with a budget of 2.9; want that of 2, %v", got, want)
	}
	in = world(9, [4]float64{1e4, .8, 1, 1.8}, [4]float64{500, 6, 1, 2}, [4]float64{70, .09, 1, .9}, [4]float64{5, 3, 1, 1.3},
		[4]float64{2, 9, 1, 2.4}, [4]float64{1.4, 1, 1, 2}, [4]float64{1e-4, .4, 1, .3}, [4]float64{1e-4, 1e-3, 1, .8}, [4]float64{1e-3, .1, 1, 1.8})
	_, want := index.Bound(in)
	if got := price(in); got < want/2 || got > 2*want {
		t.Errorf("price %v beside worthless sources; the price of the relaxed optimum is %v", got, want)
	}
}
