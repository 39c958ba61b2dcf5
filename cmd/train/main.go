// Train trains a learner on an instance or on a recording, and compares what
// it earns, while it learns and after, with exact Whittle and simple policies.
//
//	go run ./cmd/train -steps 10000
//	go run ./cmd/train -instance lognormal:50 -budget 10
//	go run ./cmd/train -trace posts.csv.gz -epoch 1h -decay 0.175 -budget 5
//
// Results go to stdout, progress to stderr. It exits with 0 when all went
// well, 2 when it was called wrongly, 1 when something else failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments"
)

const about = `Train trains a learner that decides which sources to crawl, and compares what
it earns with exact Whittle and simple policies in the same world. Without a
flag: Table I of the papers, budget 1, 10 000 steps.`

func main() { cli.Main("train", run) }

// command is a call of train.
type command struct {
	flags                  *cli.Flags
	scene                  cli.Scene
	output                 cli.Output
	algo                   cli.Algorithm
	steps, checkpoint      int
	seed                   uint64
	out, prof              string
	config, resume, policy string

	training experiments.Training // that is asked for
	text     string               // of config.toml
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("train", about)
	c := &command{flags: f}
	c.scene.Define(f)
	c.algo.Define(f)
	f.Group("Run", func() {
		f.Count(&c.steps, "steps", 10000, 1, "`epochs` of training and of each comparison; on a recording at most, and by default, all of its measured part")
		f.Uint64Var(&c.seed, "seed", 1, "`number` from which every random draw of the run is derived")
	})
	f.Group("Runs before", func() {
		f.StringVar(&c.resume, "resume", "", "`directory` of -out in which a run was interrupted: goes on with it")
		f.StringVar(&c.config, "config", "", "`file` config.toml of a run: repeats it")
		f.StringVar(&c.policy, "policy", "", "`directory` of -out of a run: runs what was learned there, which learns no more, in the world of that run or of the flags")
	})
	c.output.Define(f, func() {
		f.StringVar(&c.out, "out", "", "`directory` of the results, config.toml, state.json and six more files; created if missing")
		f.Count(&c.checkpoint, "checkpoint", 0, 0, "`epochs` between two checkpoints in -out; 0 for one every ten seconds")
		f.StringVar(&c.prof, "cpuprofile", "", "`file` to write a CPU profile of the run to, for go tool pprof")
	})
	if done, err := f.ParseAll(args, false, stdout); done || err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	show, clear := c.output.Progress(stderr, "epochs")
	c.training.Progress = show
	stop, err := startProfile(c.prof)
	if err != nil {
		return fmt.Errorf("-cpuprofile: %w", err)
	}
	trained, err := c.training.Run(ctx)
	clear()
	if c.out != "" {
		err = cli.GoOn(err, goOn(c.out))
	}
	if trained == nil {
		return errors.Join(err, stop())
	}
	report, failed := c.finish(trained, err == nil)
	if err := errors.Join(err, failed, stop()); err != nil {
		return err
	}
	return report.Write(stdout, c.output.Format())
}

// prepare refuses flags that do not go together, and settles the training that
// the others ask for.
func (c *command) prepare(ctx context.Context) error {
	if c.flags.Given("checkpoint") && c.out == "" && c.resume == "" {
		return cli.Usagef("-checkpoint needs -out")
	}
	settle := c.asked
	for _, before := range []struct {
		named, why string
		allowed    []string
		settle     func(context.Context) error
	}{
		{c.policy, "-policy runs what was learned", append(cli.WorldFlags, "policy", "steps", "seed"), c.saved},
		{c.config, "-config repeats a run as it was", []string{"config", "trace", "out", "checkpoint"}, c.repeated},
		{c.resume, "-resume goes on with the run as it is", []string{"resume", "trace", "checkpoint"}, c.resumed},
	} {
		if before.named == "" {
			continue
		}
		if err := c.flags.Only(before.why, append(before.allowed, "cpuprofile", "format", "progress")...); err != nil {
			return err
		}
		settle = before.settle
	}
	err := settle(ctx)
	for _, name := range compared {
		e, unknown := experiments.Find(name)
		c.training.Compare, err = append(c.training.Compare, e), errors.Join(err, unknown)
	}
	return err
}

// startProfile writes a CPU profile to the file until stop is called; without a
// name it does nothing.
func startProfile(name string) (stop func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
