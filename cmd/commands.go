// Package cmd holds the commands as one, for programs with policies, learners,
// worlds, families or feature maps of their own.
package cmd

import (
	"fmt"
	"os"
	"runtime/debug"

	"ephemera/cmd/internal/bench"
	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/report"
	"ephemera/cmd/internal/sweep"
	"ephemera/cmd/internal/train"
)

// Main is the main function of a program whose first argument is train, bench,
// sweep or report, and whose others are those of that command. What the program
// registered before is known to all of them: by [ephemera/learner.Register],
// [ephemera/experiments.Register], [ephemera/experiments.RegisterWorld],
// [ephemera/env.RegisterFamily] and [ephemera/features.Register].
func Main() {
	commands := map[string]cli.Command{"train": train.Run, "bench": bench.Run, "sweep": sweep.Run, "report": report.Run}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "the first argument is a command: train, bench, sweep or report")
		os.Exit(cli.Usage)
	}
	name := os.Args[1]
	info, _ := debug.ReadBuildInfo()
	cli.Caller = cli.Program(os.Args[0], info) + " "
	os.Args = os.Args[1:]
	cli.Main(name, commands[name])
}
