// Train trains a learner on an instance or on a recording, and compares what
// it earns, while it learns and after, with exact Whittle and simple policies.
//
//	go run ./cmd/train -steps 10000
//	go run ./cmd/train -instance lognormal:50 -budget 10
//	go run ./cmd/train -trace posts.csv.gz -epoch 1h -decay 0.175 -budget 5
package main

import (
	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/train"
)

func main() { cli.Main("train", train.Run) }
