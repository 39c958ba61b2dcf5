package native

import (
	"errors"
	"fmt"
	"math"
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

// takeActions settles the crawls of worlds from number lo up to hi.
func (w *Worlds) takeActions(h *hand, lo, hi int) error {
	n := w.n
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
		var err error
		switch w.form {
		case scores32:
			err = best(w, h, k, action[float32](w, k, n))
		case scores64:
			err = best(w, h, k, action[float64](w, k, n))
		case set:
			err = w.named(h, k, action[int8](w, k, n))
		case one:
			i := action[int64](w, k, 1)[0]
			if i < 0 || i >= int64(n) {
				err = fmt.Errorf("action is source %d; allowed are 0 to %d", i, n-1)
				break
			}
			w.to.crawl[k*w.about.Most], w.to.crawls[k] = int(i), 1
		}
		if err != nil {
			return w.of(k, err)
		}
	}
	return nil
}

// best crawls by decreasing score within the budget, equal scores by number.
func best[F float32 | float64](w *Worlds, h *hand, k int, score []F) error {
	for i, y := range score {
		if y != y {
			return fmt.Errorf("the score of source %d is NaN", i)
		}
		h.key[i] = float64(y)
	}
	w.top(h, k)
	return nil
}

// named crawls the sources that are named, as far as the budget goes those that
// have waited longest.
func (w *Worlds) named(h *hand, k int, set []int8) error {
	t := &w.at[k].terms
	var cost float64
	for i, b := range set {
		switch b {
		case 0:
			h.key[i] = math.Inf(-1)
		case 1:
			h.key[i] = float64(w.does.age(k, i))
			cost += t.Costs[i]
		default:
			return fmt.Errorf("action %d of source %d; allowed are 0 and 1", b, i)
		}
	}
	if !w.set.Truncate && !env.Fits(cost, t.Budget) {
		return fmt.Errorf("the set costs %v; allowed is the budget, %v", cost, t.Budget)
	}
	w.top(h, k)
	return nil
}

// top crawls by decreasing key within the budget.
func (w *Worlds) top(h *hand, k int) {
	top, first := h.top, k*w.about.Most
	if w.site == nil {
		t := &w.at[k].terms
		top = baselines.NewSelector(t.Costs, t.Budget)
	}
	w.to.crawls[k] = len(top.Top(w.to.crawl[first:first], h.key))
}
