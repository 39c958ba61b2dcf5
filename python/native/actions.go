package native

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"ephemera/baselines"
	"ephemera/env"
)

// Forms of actions.
const (
	scores32 = iota // K × n, float32
	scores64        // K × n, float64
	set             // K × n, 0 or 1, int8
	one             // K, numbers of sources, int64
)

// action returns the n figures that are the action of world k.
func action[T any](w *Worlds, k, n int) []T {
	return unsafe.Slice((*T)(w.actions), (k+1)*n)[k*n:]
}

// takeActions settles the crawls of worlds from number lo up to hi: by decreasing key
// within the budget, equal keys by number.
func (w *Worlds) takeActions(h *hand, lo, hi int) error {
	chosen := w.form == scores32 && w.single && greatest != nil
	if chosen && greatest(w, lo, hi) == 0 {
		return nil
	}
	for k := lo; k < hi; k++ {
		if chosen && w.to.crawls[k] >= 0 {
			continue
		}
		w.clear(k)
		if w.over[k] != 0 {
			if !w.set.Autoreset {
				return w.of(k, errors.New("step after the end of the episode; reset first"))
			}
			continue
		}
		if err := w.rank(h.key, k); err != nil {
			return w.of(k, err)
		}
		top, first := h.top, k*w.about.Most
		if w.site == nil {
			t := &w.at[k].terms
			top = baselines.NewSelector(t.Costs, t.Budget)
		}
		w.to.crawls[k] = len(top.Top(w.to.crawl[first:first], h.key))
	}
	return nil
}

// rank writes the keys by which world k crawls its sources: their scores, or of those
// that are named the epochs that they have waited.
func (w *Worlds) rank(key []float64, k int) error {
	n := len(key)
	switch w.form {
	case scores32:
		for i, y := range action[float32](w, k, n) {
			key[i] = float64(y)
		}
	case scores64:
		copy(key, action[float64](w, k, n))
	case set:
		return w.rankNamed(key, k, action[int8](w, k, n))
	case one:
		i := action[int64](w, k, 1)[0]
		if i < 0 || i >= int64(n) {
			return fmt.Errorf("action is source %d; allowed are 0 to %d", i, n-1)
		}
		for j := range key {
			key[j] = math.Inf(-1)
		}
		key[i] = 0
	}
	if i := slices.IndexFunc(key, math.IsNaN); i >= 0 {
		return fmt.Errorf("the score of source %d is NaN", i)
	}
	return nil
}

// rankNamed is rank of the sources that are named, together within the budget unless
// what is above it is cut off.
func (w *Worlds) rankNamed(key []float64, k int, set []int8) error {
	t := &w.at[k].terms
	var cost float64
	for i, b := range set {
		switch b {
		case 0:
			key[i] = math.Inf(-1)
		case 1:
			key[i] = float64(w.does.age(k, i))
			cost += t.Costs[i]
		default:
			return fmt.Errorf("action %d of source %d; allowed are 0 and 1", b, i)
		}
	}
	if !w.set.Truncate && !env.Fits(cost, t.Budget) {
		return fmt.Errorf("the set costs %v; allowed is the budget, %v", cost, t.Budget)
	}
	return nil
}
