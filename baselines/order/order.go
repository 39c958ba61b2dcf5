// Package order puts sources in the order of the selection: higher key first,
// and of equal keys the lower number. The scan and the calendar share it.
package order

// Item is a source with its key, the index.
type Item struct {
	Key float64
	ID  int32
}

// Before is the strict order of the selection.
func Before(a, b Item) bool { return a.Key > b.Key || a.Key == b.Key && a.ID < b.ID }

// First moves the first n in the order to the front, by quickselect.
func First(v []Item, n int) {
	lo, hi := 0, len(v)-1
	for lo < hi && n > lo && n <= hi {
		// Median of three, moved to the front as the pivot.
		mid := lo + (hi-lo)/2
		if Before(v[mid], v[lo]) {
			v[mid], v[lo] = v[lo], v[mid]
		}
		if Before(v[hi], v[lo]) {
			v[hi], v[lo] = v[lo], v[hi]
		}
		if Before(v[hi], v[mid]) {
			v[hi], v[mid] = v[mid], v[hi]
		}
		p := v[mid]
		i, j := lo, hi
		for i <= j {
			for Before(v[i], p) {
				i++
			}
			for Before(p, v[j]) {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i+1:
			lo = i
		default:
			return
		}
	}
}

// Heapify makes v a heap with the first in the order at its root.
func Heapify(v []Item) {
	for i := len(v)/2 - 1; i >= 0; i-- {
		sift(v, i)
	}
}

// Pop takes the root out of a heap.
func Pop(v []Item) []Item {
	n := len(v) - 1
	v[0] = v[n]
	sift(v[:n], 0)
	return v[:n]
}

func sift(v []Item, i int) {
	for {
		c := 2*i + 1
		if c >= len(v) {
			return
		}
		if c+1 < len(v) && Before(v[c+1], v[c]) {
			c++
		}
		if !Before(v[c], v[i]) {
			return
		}
		v[i], v[c] = v[c], v[i]
		i = c
	}
}
