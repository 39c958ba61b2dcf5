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
	"path/filepath"
	"slices"
	"strings"
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

func main() { cli.Main("train", run) }

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
	flags                  *cli.Flags
	runs                   cli.Runs
	output                 cli.Output
	batch                  experiments.Batch
	config, resume, policy string

	engine    experiments.Engine
	run       experiments.Run // of the learner, resolved
	scene     experiments.Scene
	level     env.Level
	algorithm string // by its name alone
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("train", about)
	c := &command{flags: f}
	c.runs.Define(f)
	f.Group("Run", func() {
		c.runs.DefineSteps(f, "`epochs` of training and of each comparison; on a recording at most, and by default, all of its measured part", "`number` from which every random draw of the run is derived")
	})
	f.Group("Runs before", func() {
		f.StringVar(&c.resume, "resume", "", "`directory` of -out in which a run was interrupted: goes on with it")
		f.StringVar(&c.config, "config", "", "`file` config.toml of a run: repeats it")
		f.StringVar(&c.policy, "policy", "", "`directory` of -out of a run: runs what was learned there, which learns no more, in the world of that run or of the flags")
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
		fmt.Fprintf(stderr, "train: shard %d/%d is done; the others have runs left\n", c.batch.Shard.Index, c.batch.Shard.Count)
		return nil
	}
	return c.tell(done, stdout)
}

// asked returns the run that the flags ask for.
func (c *command) asked() (r experiments.Run, err error) {
	given := func(why string, allowed ...string) error {
		return c.flags.Only(why, append(allowed, "workers", "shard", "format", "progress")...)
	}
	switch {
	case c.resume != "":
		c.batch.Dir = c.resume
		if err := given("-resume goes on with the run as it is", "resume", "checkpoint"); err != nil {
			return r, err
		}
		return readConfig(filepath.Join(c.resume, configFile))
	case c.config != "":
		if err := given("-config repeats a run as it was", "config", "out", "checkpoint"); err != nil {
			return r, err
		}
		return readConfig(c.config)
	case c.policy != "":
		if err := given("-policy runs what was learned", append(cli.WorldFlags, "policy", "steps", "seed")...); err != nil {
			return r, err
		}
		return c.saved()
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

// readConfig reads a config.toml.
func readConfig(path string) (r experiments.Run, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		r, err = experiments.ParseRun(text)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %v", path, err) // no mistake in the flags
	}
	return r, nil
}

// saved returns the run of what was learned in the directory of -policy, in the
// world of the flags or else in that in which it was learned.
func (c *command) saved() (r experiments.Run, err error) {
	learned, err := learner.Load(c.policy)
	if err != nil {
		return r, fmt.Errorf("-policy: %w", err)
	}
	c.algorithm = learned.Algorithm()
	ofFlags := c.runs.Run(c.flags, experiments.SavedPrefix+c.policy, learned.Level())
	if slices.ContainsFunc(cli.WorldFlags, c.flags.Given) {
		return ofFlags, nil
	}
	r, err = readConfig(filepath.Join(c.policy, configFile))
	if c.flags.Given("seed") {
		r.Seed = ofFlags.Seed
	}
	if c.flags.Given("steps") {
		r.Steps = ofFlags.Steps
	}
	r.Learner = ofFlags.Learner
	return r, err
}

// resolve settles the run and keeps its configuration.
func (c *command) resolve(ctx context.Context, asked experiments.Run) (err error) {
	if c.run, err = c.engine.Resolve(ctx, asked); err == nil {
		c.level = c.run.Knowledge()
		c.scene, err = c.engine.Scene(ctx, c.run)
	}
	if c.algorithm == "" { // else it is what was learned before
		c.algorithm, _, _ = strings.Cut(c.run.Algorithm(), "@")
	}
	if err != nil || c.batch.Dir == "" {
		return c.wrongSetting(err)
	}
	text, err := toml.Marshal(c.run)
	if err == nil {
		err = files.Put(c.batch.Dir, files.File{Name: configFile, Data: text})
	}
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	c.batch.Saved, c.batch.Crawls = filepath.Join(c.batch.Dir, learner.StateFile), true
	return nil
}

// wrongSetting says where a setting that is wrong comes from.
func (c *command) wrongSetting(err error) error {
	for _, file := range []string{c.config, c.resume} {
		if err != nil && file != "" {
			return fmt.Errorf("%s: %v", file, err)
		}
	}
	return cli.WrongFlag(err)
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
		err = cli.GoOn(err, fmt.Sprintf("train -resume %s goes on with it", cli.Quote(c.batch.Dir)))
	}
	if err == nil && done.Errors[0] != nil {
		err = c.wrongSetting(done.Errors[0])
	}
	return done, err
}
