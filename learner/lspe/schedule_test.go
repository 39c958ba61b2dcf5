package lspe

import (
	"slices"
	"testing"

	"ephemera/env"
)

// TestNoneKeptAsleep: sources that are due but worth no crawl, because each takes the whole
// budget, keep none asleep that is worth most.
func TestNoneKeptAsleep(t *testing.T) {
	p := &Policy{epoch: -1, price: 1, schedule: newSchedule(env.Terms{Costs: []float64{2, 2, 2, 1, 1}, Budget: 2})}
	for i := range 5 {
		p.src = append(p.src, Waiting{Reach: 1, Slope: 1, ID: int32(i)})
	}
	p.src[3].Slope = 100 // crawled at each epoch
	p.src[4].Slope, p.src[4].Reach = 1000, 2
	o := &env.Online{Last: slices.Repeat([]int{-1}, 5)}
	crawls := 0
	for ; o.Epoch < 100; o.Epoch++ {
		for _, i := range p.Select(nil, o) {
			if o.Last[i] = o.Epoch; i == 4 {
				crawls++
			}
		}
	}
	if crawls < 45 {
		t.Errorf("the best source, due every second epoch, was crawled %d times in 100; want at least 45", crawls)
	}
}
