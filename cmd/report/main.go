// Report turns what sweep, train and bench keep into pictures: report.html,
// which needs nothing else and no network, and each figure as SVG in plots/.
//
//	go run ./cmd/report results/kappa
package main

import (
	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/report"
)

func main() { cli.Main("report", report.Run) }
