package baselines

import (
	"ephemera/baselines/index"
	"ephemera/env"
)

// NewEvenSchedule returns the schedule that is settled beforehand: it crawls source i
// as evenly as the budget lets it with the frequency f of the relaxed optimum
// ([index.Relax]), after Lefortier et al., CIKM 2013. At each epoch those sources come
// first whose age is the greatest part of their interval 1/f, whether it has passed or
// not. Gaps in whole epochs that do not alternate can move the frequencies. A source of
// frequency 0 is never crawled.
func NewEvenSchedule(in env.Instance) env.Policy[env.Model] {
	frequency := index.Relax(in).Frequency
	return NewByIndex(in.Terms(), func(key []float64, o *env.Model) {
		for i, f := range frequency {
			key[i] = negInf
			if f > 0 {
				key[i] = f * float64(o.Age(i))
			}
		}
	})
}
