// Package train is the command train.
package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/pelletier/go-toml/v2"

	"ephemera/cmd/internal/cli"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/files"
	"ephemera/experiments/result"
	"ephemera/learner"
)

const about = `Train trains a learner that decides which sources to crawl, and compares what
it earns with exact Whittle and simple policies in the same world. Without a
flag: Table I of the papers, budget 1, 10 000 steps. With -out the same command
runs what an earlier one left to do.`

// compared are the policies beside the learner.
var compared = []string{"whittle", "greedy", "myopic", "round-robin", "best-source"}

// command is a call of train.
type command struct {
	flags  *cli.Flags
	runs   cli.Runs
	format result.Format
	batch  experiments.Batch
	args   []string

	engine experiments.Engine
	run    *experiments.Resolved // of the learner
	level  env.Level
}

// Run is the command.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("train", about)
	c := &command{flags: f, args: args}
	c.runs.Define(f)
	cli.DefineFormat(f, &c.format)
	f.StringVar(&c.batch.Dir, "out", "", "`directory` that is made for the learner, the runs and their results")
	cli.DefineBatch(f, &c.batch)
	if _, done, err := f.ParseAll(args, 0, stdout); done || err != nil {
		return err
	}
	if err := cli.CheckShard(c.batch); err != nil {
		return err
	}
	if err := c.resolve(ctx); err != nil {
		return err
	}
	show, clear := cli.Progress(stderr, "epochs")
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

// resolve settles the run that the flags ask for, and keeps its configuration.
func (c *command) resolve(ctx context.Context) error {
	e, level, err := c.runs.Algorithm()
	if err != nil {
		return err
	}
	c.level = level
	asked := c.runs.Of(c.flags, e.Name, level)
	maps.Copy(asked.Learner, c.runs.Settings)
	c.run, err = c.engine.Resolve(ctx, asked)
	if err != nil || c.batch.Dir == "" {
		return cli.WrongSetting(err)
	}
	c.batch.Saved = filepath.Join(c.batch.Dir, learner.StateFile)
	text, err := toml.Marshal(c.run.Run)
	if err == nil {
		err = files.Put(filepath.Join(c.batch.Dir, "config.toml"), text)
	}
	if err == nil {
		err = cli.PutCommand(c.batch.Dir, "train", c.args)
	}
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	return nil
}

// perform runs what is missing of the learner and the policies beside it.
func (c *command) perform(ctx context.Context, show func(done, total int)) (*experiments.Performed[experiments.Record], error) {
	runs := []experiments.Run{c.run.Run}
	for _, name := range compared {
		r := c.run.Run
		r.Learner = map[string]any{"algorithm": name + "@" + string(c.level)}
		runs = append(runs, r)
	}
	var played atomic.Int64
	c.batch.Played = func(epochs int) {
		show(int(played.Add(int64(epochs))), (len(runs)+1)*c.run.Steps) // the learner twice
	}
	done, err := c.engine.PerformAll(ctx, runs, c.batch)
	if err == nil && done.Errors[0] != nil {
		err = cli.WrongSetting(done.Errors[0])
	}
	return done, cli.GoOn(err, c.batch.Dir)
}
