package paper_test

import (
	"fmt"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner/paper"
)

func ExampleNew() {
	in := env.Paper(1)
	var set paper.Settings
	if err := set.SetReading("crawled"); err != nil {
		fmt.Println(err)
		return
	}
	set.Act = "budget"
	p, err := paper.New(in, set, stream.New(1, stream.Policy))
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := env.NewMean(in, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 1000 {
		crawls, err := w.Step(p.Select(nil, &w.View().Model))
		if err != nil {
			fmt.Println(err)
			return
		}
		p.Update(crawls, &w.View().Model)
	}
	fmt.Printf("η = %.1f per epoch\n", p.Critic().Average())
	fmt.Println("deployed:", p.Frozen().Select(nil, &w.View().Model))
	// Output:
	// η = 147.7 per epoch
	// deployed: [1]
}
