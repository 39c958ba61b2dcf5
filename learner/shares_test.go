package learner_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ephemera/env"
	"ephemera/learner"
	"ephemera/learner/forecast"
)

var full = flag.Bool("full", false, "print the table of budgets over several learners")

// TestShares: budgets by number of sources, and by price, add up to the whole, and none is below
// the least.
func TestShares(t *testing.T) {
	even := []learner.Part{{1, 2, 1}, {1, 2, 1}, {2, 4, 1}}
	prices := []learner.Part{{1, 4, 1}, {1, 4, 4}, {0, 0, 9}}
	for _, tt := range []struct {
		name          string
		parts         []learner.Part
		budget, least float64
		byPrice       bool
		want          string
	}{
		{"by number", even, 12, 0, false, "[3 3 6]"},
		{"equal prices", even, 12, 0, true, "[3 3 6]"},
		{"none", nil, 12, 0, true, "[]"},
		{"no price yet", []learner.Part{{1, 4, 0}, {3, 4, 0}}, 8, 0, true, "[2 6]"},
		{"new ones", []learner.Part{{1, 0, 0}, {3, 0, 0}}, 8, 0, true, "[2 6]"},
		{"a square root", prices, 9, 0, true, "[3 6 0]"},                                           // of 1 to 4
		{"at most twice", []learner.Part{{1, 99, 0}, {1, 1, 1}}, 5, 0, true, "[4.80583 0.194175]"}, // 99/2 to 2
		{"least", []learner.Part{{1, 99, 1}, {1, 1, 1}}, 10, 2, true, "[8 2]"},
		{"too little for the least", []learner.Part{{1, 99, 1}, {1, 1, 1}}, 1, 2, true, "[0.5 0.5]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := learner.Shares(tt.parts, tt.budget, tt.least, tt.byPrice)
			var text []string
			for _, m := range got {
				text = append(text, fmt.Sprintf("%.6g", m))
			}
			if got := fmt.Sprint("[", strings.Join(text, " "), "]"); got != tt.want {
				t.Errorf("the shares are %s, want %s", got, tt.want)
			}
		})
	}
}

// dearest is what a crawl costs at most.
const dearest = 8

// Sources of TestSharesEarn publish a fiftieth of what those of lognormal do; unequal crawls cost
// .1 to 8, logarithms normal with the deviation 1.5.
func manySources(n int, seed uint64, unequal bool) []env.Source {
	sources := env.Lognormal(n, 1, seed).Sources
	r := rand.New(rand.NewPCG(seed, 77))
	for i := range sources {
		sources[i].Rate /= 50
		if cost := math.Exp(1.5 * r.NormFloat64()); unequal {
			sources[i].Cost = min(dearest, max(.1, cost))
		}
	}
	return sources
}

// earned plays learners of parts of the sources, each with its share of the budget, and returns
// what they earn in the last half of the epochs.
// What is left of a share stays for the next epochs. Shares are by number if price is nil, else by
// what it returns of a part's price.
func earned(
	t testing.TB, sources []env.Source, parts int, budget float64, seed uint64, epochs int,
	price func(own float64) float64,
) float64 {
	type part struct {
		*forecast.Learner
		sources []env.Source
		world   env.World
		limits  env.Limits
		left    float64
	}
	var all []*part
	shares := make([]learner.Part, parts)
	for k := range parts {
		own := sources[k*len(sources)/parts : (k+1)*len(sources)/parts]
		in := env.Instance{ID: "part", Budget: budget / float64(parts), Sources: own}
		w, err := env.NewPoisson(in, seed+uint64(k)<<32, env.PoissonOptions{Items: true, NoMean: true, Overrun: true})
		if err != nil {
			t.Fatal(err)
		}
		l, err := forecast.New(in.Terms(), nil)
		if err != nil {
			t.Fatal(err)
		}
		p := &part{Learner: l, sources: own, world: w}
		p.limits = env.Limits{NotBefore: make([]int, len(own)), Group: make([]int32, len(own))}
		all = append(all, p)
		shares[k] = learner.Part{Sources: len(own), Budget: in.Budget}
	}
	var total float64
	var crawl []int
	for epoch := range epochs {
		if epoch%10 == 9 && price != nil {
			for k, p := range all {
				shares[k].Price = price(p.Price())
			}
			for k, m := range learner.Shares(shares, budget, 1, true) {
				shares[k].Budget = m
			}
		}
		for k, p := range all {
			p.left += shares[k].Budget
			p.limits.Budget = p.left
			view := p.world.View()
			view.Limits = &p.limits
			crawl = p.Select(crawl[:0], &view.Online)
			for _, i := range crawl {
				p.left -= p.sources[i].Cost
			}
			p.left = min(p.left, dearest) // no more than one crawl may wait for
			found, err := p.world.Step(crawl)
			if err != nil {
				t.Fatal(err)
			}
			p.Update(found, &p.world.View().Online)
			if epoch >= epochs/2 {
				for _, c := range found {
					total += c.Interest
				}
			}
		}
	}
	return total
}

func ownPrice(own float64) float64 { return own }

// TestSharesByNoise: it is the price that brings what shares by price earn. With lognormal noise in
// its place 64 parts of sorted sources earn less than with equal shares, and with its inverse least.
func TestSharesByNoise(t *testing.T) {
	if !*full {
		t.Skip("without -full")
	}
	const n, parts, budget, epochs = 3200, 64, 320, 600
	noise := rand.New(rand.NewPCG(5, 5))
	rules := []struct {
		name  string
		price func(float64) float64
	}{
		{"by price", ownPrice},
		{"equal", nil},
		{"by noise", func(float64) float64 { return math.Exp(noise.NormFloat64()) }},
		{"by the inverse of the price", func(own float64) float64 { return 1 / max(1e-9, own) }},
	}
	earns := make([]float64, len(rules))
	for _, seed := range []uint64{9001, 9002} {
		dealt := manySources(n, seed, false)
		sorted := slices.SortedFunc(slices.Values(dealt), func(a, b env.Source) int {
			return cmp.Compare(a.Gain()/a.Cost, b.Gain()/b.Cost)
		})
		whole := earned(t, dealt, 1, budget, seed, epochs, nil)
		for i, rule := range rules {
			earns[i] += earned(t, sorted, parts, budget, seed, epochs, rule.price) / whole / 2
		}
	}
	for i, rule := range rules {
		if t.Logf("%s: %.3f of one learner", rule.name, earns[i]); i > 0 && earns[i] >= earns[i-1] {
			t.Errorf("shares %s earn no less than %s", rule.name, rules[i-1].name)
		}
	}
}

// TestSharesEarn: learners of parts of the sources, each with a share of the budget, earn nearly
// what one learner with all of it does where sources are dealt out by chance; where each part has
// sources of a kind they do so only if their shares follow the price.
func TestSharesEarn(t *testing.T) {
	n, budget, epochs := 400, 40., 300
	counts, seeds := []int{4}, []uint64{1}
	if *full {
		n, budget, epochs = 3200, 320, 600
		counts, seeds = []int{4, 16, 64}, []uint64{9001, 9002}
	}
	for _, unequal := range []bool{false, true} {
		share := map[string]float64{}
		name := func(k int, sorted, byPrice bool) string {
			return fmt.Sprintf("%2d parts, sorted %-5v, by price %v", k, sorted, byPrice)
		}
		for _, seed := range seeds {
			dealt := manySources(n, seed, unequal) // by chance, as hashes deal keys
			sorted := slices.SortedFunc(slices.Values(dealt), func(a, b env.Source) int {
				return cmp.Compare(a.Gain()/a.Cost, b.Gain()/b.Cost)
			})
			whole := earned(t, dealt, 1, budget, seed, epochs, nil)
			for _, k := range counts {
				for _, price := range []func(float64) float64{nil, ownPrice} {
					share[name(k, false, price != nil)] += earned(t, dealt, k, budget, seed, epochs, price) / whole
					share[name(k, true, price != nil)] += earned(t, sorted, k, budget, seed, epochs, price) / whole
				}
			}
		}
		for _, k := range counts {
			for _, sorted := range []bool{false, true} {
				fixed, byPrice := name(k, sorted, false), name(k, sorted, true)
				share[fixed] /= float64(len(seeds))
				share[byPrice] /= float64(len(seeds))
				t.Logf("unequal costs %-5v, %2d parts, sorted %-5v: fixed %.3f, by price %.3f of one learner",
					unequal, k, sorted, share[fixed], share[byPrice])
				least := .97
				if k == 64 && unequal {
					least = .9 // a crawl may cost more than the share of an epoch
				}
				if sorted && share[fixed] > .85 {
					t.Errorf("parts of one kind each need no prices: %.3f", share[fixed])
				} else if !sorted && share[fixed] < least {
					t.Errorf("dealt parts earn %.3f with fixed shares, want %v", share[fixed], least)
				}
				if share[byPrice] < least {
					t.Errorf("with shares by price they earn %.3f, want %v", share[byPrice], least)
				}
			}
		}
	}
}
