package forecast_test

import (
	"encoding/json"
	"fmt"
	"math"

	"ephemera/env"
	"ephemera/learner/forecast"
)

// A crawler asks the learner at each epoch which sources to crawl, and tells it
// what the crawls brought back. The learner knows nothing beforehand. Its state
// can be stored and taken up again.
func ExampleLearner() {
	// Three feeds, one crawl per hour; the first decision is at midnight.
	terms := env.Terms{
		Names: []string{"news", "blog", "forum"}, Costs: []float64{1, 1, 1}, Budget: 1,
		Start: 1_700_006_400, Length: 3600,
	}
	l, err := forecast.New(terms, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	view := env.Online{Last: []int{-1, -1, -1}}
	crawls := make([]int, 3)
	for range 1000 {
		var found []env.Crawled
		for _, i := range l.Select(nil, &view) {
			crawls[i]++
			found = append(found, fetch(i, view.Age(i)))
			view.Last[i] = view.Epoch
		}
		view.Epoch++
		l.Update(found, &view)
	}
	fmt.Println("crawls of news, blog and forum:", crawls)

	state, err := json.Marshal(l.State())
	if err != nil {
		fmt.Println(err)
	}
	again, _ := forecast.New(terms, nil)
	var st forecast.State
	if err = json.Unmarshal(state, &st); err == nil {
		err = again.SetState(st)
	}
	fmt.Println("the same price after a restart:", again.Price() == l.Price(), err)
	// Output:
	// crawls of news, blog and forum: [738 207 55]
	// the same price after a restart: true <nil>
}

// fetch stands for a crawl: here the news have an item every half hour, the
// blog one of twenty times the interest every ten hours and the forum hardly
// anything; interest halves in four hours.
func fetch(i, age int) env.Crawled {
	c := env.Crawled{Source: i, Age: age}
	gap, interest := []float64{.5, 10, 50}[i], []float64{1, 20, 1}[i]
	for a := gap / 2; a < float64(age); a += gap {
		it := env.Item{Age: a, Interest: interest * math.Exp2(-a/4)}
		c.Items = append([]env.Item{it}, c.Items...) // oldest first
		c.Interest += it.Interest
	}
	return c
}
