// Sweep runs a configuration: every cell under every seed, on all cores. Each
// run that is done is a file at once; the same command goes on where an earlier
// one ended.
//
//	go run ./cmd/sweep
//	go run ./cmd/sweep -list experiments/configs/stepsizes.toml
//	go run ./cmd/sweep experiments/configs/kappa.toml -set learner.gamma=0.1 -out results/gamma
//	go run ./cmd/sweep experiments/configs/scale.toml -shard 0/8
package main

import (
	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/sweep"
)

func main() { cli.Main("sweep", sweep.Run) }
