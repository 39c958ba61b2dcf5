// Package train is the command train.
package train

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"

	"github.com/pelletier/go-toml/v2"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments"
	"ephemera/experiments/files"
	"ephemera/learner"
)

const about = `Train trains a learner that decides which sources to crawl, and compares what
it earns with exact Whittle and simple policies in the same world. Without a
flag: Table I of the papers, budget 1, 10 000 steps. With -out the same command
runs what an earlier one left to do.`

// compared are the learner and the policies beside it, in the order of the table.
var compared = []string{"learned", "whittle", "greedy", "myopic", "round-robin", "best-source"}

// command is a call of train.
type command struct {
	*cli.Comparison
	run *experiments.Resolved // of the learner
}

// Run is the command.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c := &command{Comparison: cli.NewComparison("train", about, "`directory` that is made for the learner, the runs and their results")}
	if done, err := c.Parse(args, stdout); done || err != nil {
		return err
	}
	contenders, err := c.Choose(ctx, compared)
	if err != nil {
		return err
	}
	for k := range contenders {
		contenders[k].Optional = k > 0
	}
	if c.run, err = c.Engine.Resolve(ctx, contenders[0].Run); err != nil {
		return err
	}
	if dir := c.Batch.Dir; dir != "" {
		c.Batch.Saved = filepath.Join(dir, learner.StateFile)
		text, err := toml.Marshal(c.run.Run)
		if err == nil {
			err = files.Put(filepath.Join(dir, "config.toml"), text)
		}
		if err != nil {
			return fmt.Errorf("-out: %w", err)
		}
	}
	show, clear := cli.Progress(stderr, "epochs")
	var played atomic.Int64
	c.Batch.Played = func(epochs int) {
		show(int(played.Add(int64(epochs))), (len(contenders)+1)*c.run.Steps) // the learner twice
	}
	done, left, err := c.Perform(ctx, contenders, stderr)
	clear()
	if err != nil || done == nil {
		return err
	}
	return c.tell(done, left, stdout)
}
