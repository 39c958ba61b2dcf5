package critic_test

import (
	"fmt"
	"strings"

	"ephemera/learner/critic"
)

func ExampleParseSteps() {
	s, err := critic.ParseSteps("0.5/ceil(n/1000)^2/3")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s)
	fmt.Println(s.At(1), s.At(1000), s.At(8000))
	_, err = critic.ParseSteps("1/n^x")
	fmt.Println(strings.NewReplacer("; ", ";\n", "power, c,", "power,\nc,").Replace(err.Error()))
	// Output:
	// 0.5/ceil(n/1000)^2/3
	// 0.5 0.5 0.125
	// step "1/n^x" is not understood;
	// allowed are c/(n+shift)^power, c/ceil((n+shift)/block)^power,
	// c,block,power and a constant, in which shift and power may be left out
}
