package index

import (
	"math"

	"ephemera/env"
)

// Foresight returns the Lagrangian upper bound on what a policy earns that keeps the budget
// at each of so many epochs, in interest per epoch, where all that sources publish is known
// before, and the price at which it is reached, in interest per budget unit: min over λ ≥ 0 of
//
//	λM + 1/T Σᵢ max (Σ H − λCᵢ · crawls)   over all sets of epochs at which source i is crawled
//
// where H is what a crawl finds. It is the bound of TCNS, section VII, with a known future in
// place of the harvest curves. No policy without foresight can reach it. Decay is per epoch;
// arrivals are those of [env.Recording.Arrivals], of each source, and those from the last of
// the epochs on do not count.
//
// Any price gives an upper bound, so that the search below ends where a bound is within 10⁻⁹
// of the least.
func Foresight(
	arrivals [][]env.Arrival, decay float64, costs []float64, budget float64, epochs int,
) (bound, price float64) {
	f := foresight{arrivals, decay, costs, budget, float64(epochs), nil}
	lo := f.dual(0)
	if lo.slope >= 0 { // the budget pays for all crawls that find something
		return lo.value, 0
	}
	hi := f.dual(f.dearest() * (1 + 1e-9))
	for {
		best := lo
		if hi.value < lo.value {
			best = hi
		}
		// The tangents at lo and hi meet at or below the least value:
		//
		//	g(lo) + g′(lo) (λ − lo) = g(hi) + g′(hi) (λ − hi)
		at := (hi.value - hi.slope*hi.price - lo.value + lo.slope*lo.price) / (lo.slope - hi.slope)
		least := lo.value + lo.slope*(at-lo.price)
		if !(best.value-least > 1e-9*best.value && at > lo.price && at < hi.price) { // or no number
			return best.value, best.price
		}
		if next := f.dual(at); next.slope < 0 {
			lo = next
		} else {
			hi = next
		}
	}
}

// foresight is the relaxed problem of a known future.
type foresight struct {
	arrivals [][]env.Arrival
	decay    float64 // c, per epoch
	costs    []float64
	budget   float64
	epochs   float64   // T
	open     []crawled // room for best
}

// tangent is the dual g(λ) at a price, convex in it, and its slope there.
type tangent struct{ price, value, slope float64 }

// crawled is a crawl of one source after which another may come.
type crawled struct {
	epoch  int
	earned float64 // B, interest less charges, of it and the best crawls before it
	all    float64 // A, what there would be at its epoch without any crawl
	crawls int
}

// dual returns g at a price:
//
//	g(λ) = λM + 1/T Σᵢ Bᵢ(λ),   g′(λ) = M − 1/T Σᵢ Cᵢ · crawls
//
// A source of which a single crawl is above the budget is never crawled.
func (f *foresight) dual(price float64) tangent {
	g := tangent{price, price * f.budget, f.budget}
	for i, arrivals := range f.arrivals {
		if cost := f.costs[i]; env.Fits(cost, f.budget) {
			best := f.best(arrivals, price*cost)
			g.value += best.earned / f.epochs
			g.slope -= cost * float64(best.crawls) / f.epochs
		}
	}
	return g
}

// dearest returns a price at which no crawl is worth it: the most that waits per budget unit.
func (f *foresight) dearest() (price float64) {
	for i, arrivals := range f.arrivals {
		var all float64
		for k, a := range arrivals {
			all = f.faded(all, arrivals[max(0, k-1)].Epoch, a.Epoch) + a.Interest
			price = math.Max(price, all/f.costs[i])
		}
	}
	return price
}

// faded returns what interest of one epoch is worth at a later one.
func (f *foresight) faded(interest float64, from, to int) float64 {
	return interest * math.Exp(-f.decay*float64(to-from))
}

// best returns the last of the crawls of a source that earn the most beyond their charge.
//
// A crawl right after a publication finds no less than a later one before the next, so that
// only epochs with arrivals count. With A, what there would be without any crawl, a crawl at t
// after one at t′ finds
//
//	H(t′,t) = A(t) − e^(−c(t−t′)) A(t′)
//	B(t) = A(t) − λC + max over t′ < t of (B(t′) − e^(−c(t−t′)) A(t′)),   or 0 for no crawl before
//
// As A(t′) e^(ct′) never falls, a later t′ that is ahead stays ahead, and gets there only if its B is
// greater. So the open ones are kept in the order in which they get ahead, each passed once.
func (f *foresight) best(arrivals []env.Arrival, charge float64) crawled {
	open, first, now := append(f.open[:0], crawled{}), 0, crawled{}
	worth := func(from crawled) float64 { return from.earned - f.faded(from.all, from.epoch, now.epoch) }
	// ahead says when a late one gets ahead of an early one, by the share of present interest that
	// is left then; a greater share is sooner:
	//
	//	(B − B′)/(A − A′),   A and A′ as faded by now, of the late and the early one
	ahead := func(early, late crawled) float64 {
		more := f.faded(late.all, late.epoch, now.epoch) - f.faded(early.all, early.epoch, now.epoch)
		return (late.earned - early.earned) / math.Max(more, 0)
	}
	for _, a := range arrivals {
		if a.Epoch >= int(f.epochs) {
			break
		}
		now.all = f.faded(now.all, now.epoch, a.Epoch) + a.Interest
		now.epoch = a.Epoch
		for first+1 < len(open) && worth(open[first+1]) >= worth(open[first]) {
			first++
		}
		now.earned, now.crawls = now.all-charge+worth(open[first]), open[first].crawls+1
		if now.earned <= open[len(open)-1].earned {
			continue
		}
		// Who gets ahead of the last no later than that does of the one before takes its place.
		for n := len(open); n > first+1 && ahead(open[n-1], now) >= ahead(open[n-2], open[n-1]); n-- {
			open = open[:n-1]
		}
		open = append(open, now)
	}
	f.open = open
	return open[len(open)-1]
}
