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
	"ephemera/experiments/files"
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
	dir                    *files.Dir
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
		f.StringVar(&c.out, "out", "", "`directory` to write config.toml, metrics.csv, state.json, result.json, thresholds.csv and timing.json to; created if missing")
		f.Count(&c.checkpoint, "checkpoint", 0, 0, "`epochs` between two checkpoints in -out; 0 for one every ten seconds")
		f.StringVar(&c.prof, "cpuprofile", "", "`file` to write a CPU profile of the run to, for go tool pprof")
	})
	if done, err := f.ParseAll(args, false, stdout); done || err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	show, clear := c.output.Progress(stderr, "train")
	defer func() { c.dir.Close() }()
	r, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	r.training.Progress = show
	stop, err := startProfile(c.prof)
	if err != nil {
		return fmt.Errorf("-cpuprofile: %w", err)
	}
	err = r.run(ctx, c.dir)
	clear()
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	return r.report(c.dir).Write(stdout, c.output.Format())
}

// check refuses flags that do not go together.
func (c *command) check() error {
	f := c.flags
	switch {
	case c.resume != "":
		return f.Only("-resume goes on with the run as it is", "resume", "trace", "checkpoint", "cpuprofile", "format", "progress")
	case f.Given("checkpoint") && c.out == "":
		return cli.Usagef("-checkpoint needs -out")
	case c.config != "":
		return f.Only("-config repeats a run as it was", "config", "trace", "out", "checkpoint", "cpuprofile", "format", "progress")
	case c.policy != "":
		return f.Only("-policy runs what was learned", append(cli.WorldFlags, "policy", "steps", "seed", "cpuprofile", "format", "progress")...)
	}
	return nil
}

// prepare returns the run that the flags ask for.
func (c *command) prepare(ctx context.Context) (*trainRun, error) {
	switch {
	case c.resume != "":
		return c.resumed(ctx)
	case c.config != "":
		return c.repeated(ctx)
	case c.policy != "":
		return c.saved(ctx)
	}
	level, err := c.algo.Level()
	if err != nil {
		return nil, err
	}
	e, err := c.algo.Learner(level)
	if err != nil {
		return nil, err
	}
	settings, err := c.algo.Configure(level, e)
	if err != nil {
		return nil, err
	}
	scene, err := c.scene.Open(ctx, c.flags, level)
	if err != nil {
		return nil, err
	}
	r := &trainRun{training: experiments.Training{Scene: scene, Learner: e, Settings: settings[0], Level: level, Epochs: c.length(scene, c.steps), Seed: c.seed}}
	if c.out == "" {
		return r, nil
	}
	err = r.describe(c.scene.World(level))
	if err != nil {
		return nil, err
	}
	return r, c.open(r, c.out)
}

// length returns how many epochs a run has if -steps does not say.
func (c *command) length(scene experiments.Scene, steps int) int {
	if c.flags.Given("steps") {
		steps = c.steps
	} else if scene.Epochs > 0 {
		steps = 0
	}
	return scene.Limit(steps)
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
