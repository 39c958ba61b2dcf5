package learner_test

import (
	"fmt"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner"
)

func ExampleParseSteps() {
	s, err := learner.ParseSteps("0.5,1000,2/3")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s)
	fmt.Println(s.At(1), s.At(1000), s.At(8000))
	_, err = learner.ParseSteps("1/n^x")
	fmt.Println(err)
	// Output:
	// 0.5/ceil(n/1000)^2/3
	// 0.5 0.5 0.125
	// step "1/n^x" is not understood; allowed are c/(n+shift)^power, c/ceil((n+shift)/block)^power, c,block,power and a constant, in which shift and power may be left out
}

func ExampleNewPaper() {
	in := env.Paper(1)
	set := learner.DefaultPaperSettings()
	set.Act = "budget"
	p, err := learner.NewPaper(in, set, stream.New(1, stream.Policy))
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
	fmt.Println("deployed:", p.Policy(nil).Select(nil, &w.View().Model))
	// Output:
	// η = 147.7 per epoch
	// deployed: [1]
}
