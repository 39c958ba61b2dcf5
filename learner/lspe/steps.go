package lspe

import "ephemera/learner/critic"

// keptSteps is how many steps are kept. Sources that are crawled more often compute a power, of some 60 ns,
// at each crawl: they are few where crawls are many.
const keptSteps = 2048

// steps are step sizes of which the first are kept.
type steps struct {
	critic.Steps
	kept []float64 // of the count 1 on
}

func newSteps(of critic.Steps) steps {
	s := steps{of, make([]float64, keptSteps)}
	for k := range s.kept {
		s.kept[k] = of.At(k + 1)
	}
	return s
}

// at returns the step of count n, 1 or more.
func (s *steps) at(n int) float64 {
	if 0 < n && n <= len(s.kept) {
		return s.kept[n-1]
	}
	return s.At(n)
}
