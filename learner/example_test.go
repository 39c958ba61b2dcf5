package learner_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/learner"
)

// What train saved is run by another program.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	run := filepath.Join(dir, "run")
	train := exec.Command("go", "run", "ephemera/cmd/train", "-instance", "lognormal:20", "-budget", "3", "-out", run)
	if err := train.Run(); err != nil {
		panic(err)
	}

	saved, err := learner.Load(run)
	if err != nil {
		panic(err)
	}
	world, err := env.NewPoisson(saved.Instance(), 1, env.PoissonOptions{})
	if err != nil {
		panic(err)
	}
	policy, err := saved.Policy(world.Terms())
	if err != nil {
		panic(err)
	}
	got, err := experiments.Loop(world, policy, 1000, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s with knowledge %s crawls %.2f sources per epoch\n", saved.Algorithm(), saved.Level(), got.Crawls)
	// Output: lspe with knowledge online crawls 3.00 sources per epoch
}
