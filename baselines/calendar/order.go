package calendar

// candidate is a source with its index at this epoch.
type candidate struct {
	key float64
	id  int32
}

// before is the strict order of the selection: higher index first, then lower
// number.
func before(a, b candidate) bool { return a.key > b.key || a.key == b.key && a.id < b.id }

// first moves the first n in the order to the front, by quickselect.
func first(v []candidate, n int) {
	for n > 0 && n < len(v) {
		if len(v) <= 12 {
			sortFew(v)
			return
		}
		p := pivot(v)
		i, j := 0, len(v)-1
		for i <= j {
			for before(v[i], p) {
				i++
			}
			for before(p, v[j]) {
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
			v = v[:j+1]
		case n >= i+1:
			v, n = v[i:], n-i
		default:
			return
		}
	}
}

// pivot returns the median of three, and of three medians where there are many.
func pivot(v []candidate) candidate {
	n := len(v)
	if n < 128 {
		return median(v[0], v[n/2], v[n-1])
	}
	s := n / 8
	return median(median(v[0], v[s], v[2*s]), median(v[3*s], v[4*s], v[5*s]), median(v[6*s], v[7*s], v[n-1]))
}

func median(a, b, c candidate) candidate {
	if before(b, a) {
		a, b = b, a
	}
	if before(c, a) {
		return a
	}
	if before(c, b) {
		return c
	}
	return b
}

func sortFew(v []candidate) {
	for i := 1; i < len(v); i++ {
		x, j := v[i], i
		for ; j > 0 && before(x, v[j-1]); j-- {
			v[j] = v[j-1]
		}
		v[j] = x
	}
}

// heapify makes v a heap with the first in the order at its root.
func heapify(v []candidate) {
	for i := len(v)/2 - 1; i >= 0; i-- {
		sift(v, i)
	}
}

// pop takes the root out.
func pop(v []candidate) []candidate {
	n := len(v) - 1
	v[0] = v[n]
	sift(v[:n], 0)
	return v[:n]
}

func sift(v []candidate, i int) {
	if i >= len(v) {
		return
	}
	x := v[i]
	for {
		c := 2*i + 1
		if c >= len(v) {
			break
		}
		if c+1 < len(v) && before(v[c+1], v[c]) {
			c++
		}
		if !before(v[c], x) {
			break
		}
		v[i] = v[c]
		i = c
	}
	v[i] = x
}
