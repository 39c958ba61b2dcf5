package estimate

import "math"

// unlikely is −ln of the chance below which the oldest item being so young is
// put down to a window.
const unlikely = 12

// findWindow reports whether the window M of the source has changed. Beyond it
// no crawl finds an item, however long it waited. Without a window, n items that
// were published at any time within the E + E′ epochs before their crawls are
// all found in the E epochs that are younger than the oldest of them, A, with
// the chance (E/(E + E′))ⁿ. The oldest of n that are spread evenly over M has
// the mean age A = Mn/(n+1).
func (s *source) findWindow() bool {
	var n, within, beyond float64
	for k := range s.Harvest.Bins {
		if b := &s.Harvest.Bins[k]; b.Sum > 0 { // found items
			n += b.Sum
			within += b.N * min(b.age(), s.Oldest)
			beyond += b.N * max(0, b.age()-s.Oldest)
		}
	}
	old := s.Window
	s.Window = 0
	if n*math.Log1p(beyond/within) > unlikely {
		s.Window = s.Oldest * (1 + 1/n)
	}
	return s.Window != old
}

// reach returns the window, +Inf for none.
func (s *source) reach() float64 {
	if s.Window == 0 {
		return math.Inf(1)
	}
	return s.Window
}

// visible returns Σ min(s, M) over the crawls at ages s.
func (h *harvests) visible(window float64) (epochs float64) {
	for k := range h.Bins {
		if b := &h.Bins[k]; b.N > 0 {
			epochs += b.N * min(b.age(), window)
		}
	}
	return epochs
}
