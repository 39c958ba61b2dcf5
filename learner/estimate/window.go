package estimate

import "math"

// bin holds the crawls at about one age.
type bin struct {
	N, Age float64 // crawls, Σ age
	Items  float64 // what they found
}

func (b *bin) age() float64 { return b.Age / b.N }

// binOf returns the number of the bin of an age: one for each age up to 16,
// eight for each doubling above.
func binOf(age float64) int {
	if age <= 16 {
		return max(0, int(math.Ceil(age))-1)
	}
	return 15 + int(math.Ceil(8*math.Log2(age/16)))
}

// addCrawl takes in a crawl; keep is what is left of the weight of those before.
func (s *source) addCrawl(age, items, keep float64) {
	k := binOf(age)
	for len(s.Crawls) <= k {
		s.Crawls = append(s.Crawls, bin{})
	}
	for j, b := range s.Crawls {
		s.Crawls[j] = bin{keep * b.N, keep * b.Age, keep * b.Items}
	}
	b := &s.Crawls[k]
	b.N++
	b.Age += age
	b.Items += items
}

// unlikely is −ln of the chance below which something is not put down to chance.
const unlikely = 12

// findWindow reports whether the window M of the source has changed. Beyond it
// no crawl finds an item, however long it waited. Without a window, n items that
// were published at any time within the E + E′ epochs before their crawls are
// all found in the E epochs that are younger than the oldest of them, A, with
// the chance (E/(E + E′))ⁿ. The oldest of n that are spread evenly over M has
// the mean age A = Mn/(n+1).
func (s *source) findWindow() bool {
	var n, within, beyond float64
	for _, b := range s.Crawls {
		if b.Items > 0 {
			n += b.Items
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
func (s *source) visible(window float64) (epochs float64) {
	for _, b := range s.Crawls {
		if b.N > 0 {
			epochs += b.N * min(b.age(), window)
		}
	}
	return epochs
}
