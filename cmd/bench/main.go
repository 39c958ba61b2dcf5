// Bench compares policies: what each earns in the same worlds, with intervals,
// against exact Whittle and against the bound that no policy exceeds.
//
//	go run ./cmd/bench
//	go run ./cmd/bench -random 50,10,30
//	go run ./cmd/bench -trace posts.csv.gz -epoch 1h -decay 0.175 -budget 5
//	go run ./cmd/bench -preset papers
package main

import (
	"ephemera/cmd/internal/bench"
	"ephemera/cmd/internal/cli"
)

func main() { cli.Main("bench", bench.Run) }
