// Package train is the command train.
package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/pelletier/go-toml/v2"

	"ephemera/cmd/internal/cli"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/files"
	"ephemera/learner"
)

const about = `Train trains a learner that decides which sources to crawl, and compares what
it earns with exact Whittle and simple policies in the same world. Without a
flag: Table I of the papers, budget 1, 10 000 steps. With -out the same command
goes on where an earlier one was interrupted.`

const (
	configFile     = "config.toml"
	resultFile     = "result.json"
	metricsFile    = "metrics.csv"
	thresholdsFile = "thresholds.csv"
	curvesFile     = "curves.csv"
	crawlsFile     = "crawls.csv"
)

// compared are the policies beside the learner.
var compared = []string{"whittle", "greedy", "myopic", "round-robin", "best-source"}

// command is a call of train.
type command struct {
	flags  *cli.Flags
	runs   cli.Runs
	output cli.Output
	batch  experiments.Batch
	config string

	engine experiments.Engine
	run    experiments.Run // of the learner, resolved
	scene  experiments.Scene
	level  env.Level
}

// Run is the command.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("train", about)
	c := &command{flags: f}
	c.runs.Define(f)
	f.Group("Run", func() {
		c.runs.DefineSteps(f, "`epochs` of training and of each comparison; on a recording at most, and by default, all of its measured part", "`number` from which every random draw of the run is derived")
		f.StringVar(&c.config, "config", "", "`file` config.toml of an earlier run: repeats it")
	})
	c.output.Define(f, func() {
		f.StringVar(&c.batch.Dir, "out", "", "`directory` of the results; created if missing")
		f.Count(&c.batch.Checkpoint, "checkpoint", 0, 0, "`epochs` between two checkpoints in -out; 0 for one every ten seconds")
	})
	readBatch := cli.DefineBatch(f, &c.batch)
	if done, err := f.ParseAll(args, false, stdout); done || err != nil {
		return err
	}
	asked, err := c.asked()
	if err == nil {
		err = readBatch()
	}
	if err == nil {
		err = c.resolve(ctx, asked)
	}
	if err != nil {
		return err
	}
	show, clear := c.output.Progress(stderr, "epochs")
	done, err := c.perform(ctx, show)
	clear()
	if err != nil {
		return err
	}
	if slices.Contains(done.Records, nil) && errors.Join(done.Errors...) == nil {
		cli.SayShard(stderr, "train", c.batch.Shard)
		return nil
	}
	return c.tell(done, stdout)
}

// asked returns the run that the flags ask for.
func (c *command) asked() (r experiments.Run, err error) {
	switch {
	case c.config != "":
		if err := c.flags.Only("-config repeats a run as it was", "config", "out", "checkpoint", "workers", "shard", "format", "progress"); err != nil {
			return r, err
		}
		text, err := os.ReadFile(c.config)
		if err != nil {
			return r, fmt.Errorf("-config: %w", err)
		}
		return experiments.ParseRun(c.config, text)
	case c.flags.Given("checkpoint") && c.batch.Dir == "":
		return r, cli.Usagef("-checkpoint needs -out")
	}
	e, level, err := c.runs.Learner()
	if err != nil {
		return r, err
	}
	r = c.runs.Run(c.flags, e.Name, level)
	return r, c.runs.Configure(level, []*experiments.Entry{e}, []experiments.Run{r})
}

// wrongSetting says where a setting that is wrong comes from.
func (c *command) wrongSetting(err error) error {
	if err != nil && c.config != "" {
		return fmt.Errorf("%s: %v", c.config, err) // no mistake in the flags
	}
	return cli.WrongFlag(err)
}

// resolve settles the run and keeps its configuration.
func (c *command) resolve(ctx context.Context, asked experiments.Run) (err error) {
	if c.run, err = c.engine.Resolve(ctx, asked); err == nil {
		c.level = c.run.Knowledge()
		c.scene, err = c.engine.Scene(ctx, c.run)
	}
	if err != nil || c.batch.Dir == "" {
		return c.wrongSetting(err)
	}
	text, err := toml.Marshal(c.run)
	if err == nil {
		err = files.Put(filepath.Join(c.batch.Dir, configFile), text)
	}
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	c.batch.Saved, c.batch.Crawls = filepath.Join(c.batch.Dir, learner.StateFile), true
	return nil
}

// perform runs what is missing of the learner and the policies beside it.
func (c *command) perform(ctx context.Context, show func(done, total int)) (*experiments.Performed, error) {
	runs := []experiments.Run{c.run}
	for _, name := range compared {
		r := c.run
		r.Learner = map[string]any{"algorithm": name + "@" + string(c.level)}
		runs = append(runs, r)
	}
	var played atomic.Int64
	c.batch.Played = func(epochs int) {
		show(int(played.Add(int64(epochs))), (len(runs)+1)*c.run.Steps) // the learner twice
	}
	done, err := c.engine.PerformAll(ctx, runs, c.batch)
	if err != nil && c.batch.Dir != "" {
		err = cli.GoOn(err, "the same command goes on with it")
	}
	if err == nil && done.Errors[0] != nil {
		err = c.wrongSetting(done.Errors[0])
	}
	return done, err
}
