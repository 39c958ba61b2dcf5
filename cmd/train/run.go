package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"ephemera/cmd/internal/cli"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/files"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// config is what config.toml holds: all that a run depends on.
type config struct {
	Algorithm string            `toml:"algorithm"`
	Knowledge env.Level         `toml:"knowledge"`
	Steps     int               `toml:"steps"`
	Seed      uint64            `toml:"seed"`
	Settings  any               `toml:"settings"`
	World     experiments.World `toml:"world"`
	Instance  env.Instance      `toml:"instance"`
}

const (
	configFile     = "config.toml"
	resultFile     = "result.json"
	metricsFile    = "metrics.csv"
	thresholdsFile = "thresholds.csv"
	curvesFile     = "curves.csv"
	crawlsFile     = "crawls.csv"
)

// metricRows is the number of rows of metrics.csv.
const metricRows = 200

// compared are the policies beside the learner.
var compared = []string{"whittle", "greedy", "myopic", "round-robin", "best-source"}

// goOn says how an interrupted training is gone on with.
func goOn(path string) string { return fmt.Sprintf("train -resume %s goes on with it", path) }

// begin has the training keep its checkpoints in -out, if that is named, and go on
// from one that is there of the same configuration.
func (c *command) begin() error {
	if c.out == "" {
		return nil
	}
	c.keepStates()
	saved, err := learner.Load(c.out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && saved.Config != c.text {
		return nil
	}
	if err == nil {
		c.training.From, err = checkpoint(saved)
	}
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	return nil
}

// checkpoint is where a saved learner's training stands.
func checkpoint(saved *learner.Saved) (*experiments.Checkpoint, error) {
	at := &experiments.Checkpoint{}
	if err := json.Unmarshal(saved.Run, at); err != nil {
		return nil, err
	}
	at.Learner = saved.State
	return at, nil
}

// due reports whether a checkpoint is to be written, so long after the one before,
// which took that time: every ten seconds, and great ones less often, so that they
// take at most a tenth of the time.
func due(since, took time.Duration) bool { return since >= max(10*time.Second, 9*took) }

// keepStates has the training write checkpoints.
func (c *command) keepStates() {
	t := &c.training
	t.Rows = metricRows
	began := time.Now() // the last checkpoint
	ended := began
	t.Save = func(at *experiments.Checkpoint) error {
		run, err := json.Marshal(at)
		if err != nil {
			return err
		}
		data, err := (&learner.Saved{Config: c.text, Start: at.Start, Length: at.Length, State: at.Learner, Run: run}).Encode()
		if err != nil {
			return err
		}
		err = files.Put(c.out, files.File{Name: learner.StateFile, Data: data})
		ended = time.Now()
		return err
	}
	t.Due = func(epoch int) bool {
		if c.checkpoint > 0 {
			return epoch%c.checkpoint == 0
		}
		now := time.Now()
		if !due(now.Sub(ended), ended.Sub(began)) {
			return false
		}
		began = now
		return true
	}
}

// asked settles the training of the flags.
func (c *command) asked(ctx context.Context) error {
	level := c.algo.Level()
	e, err := c.algo.Learner(level)
	if err != nil {
		return err
	}
	conf := config{Algorithm: e.Name, Knowledge: level, Steps: c.length(c.steps), Seed: c.seed, Settings: c.algo.Keys()}
	if conf.World, conf.Instance, err = c.scene.Settings(c.flags, level); err != nil {
		return err
	}
	if err := c.settle(ctx, conf); err != nil {
		return cli.WrongFlag(err)
	}
	t := &c.training // what was left to defaults is written down
	conf.Settings, conf.Instance, conf.Steps = t.Settings, t.Scene.Instance, t.Epochs
	if t.Scene.Recording != nil {
		conf.World.SHA256 = experiments.Checksum(t.Scene.Recording)
	}
	text, err := toml.Marshal(conf)
	c.text = string(text)
	return errors.Join(err, c.begin())
}

// length returns how many epochs a run has, 0 for all of a recording, if -steps
// does not say.
func (c *command) length(steps int) int {
	switch {
	case c.flags.Given("steps"):
		return c.steps
	case c.scene.Trace() != "":
		return 0
	}
	return steps
}

// settle settles the training of a configuration.
func (c *command) settle(ctx context.Context, conf config) error {
	e, err := experiments.FindLearner(conf.Algorithm, conf.Knowledge)
	if err != nil {
		return err
	}
	keys, _ := conf.Settings.(map[string]any)
	settings, err := e.Configure(conf.Knowledge, keys)
	if err != nil {
		return err
	}
	scene, err := conf.World.Open(ctx, conf.Instance, conf.Knowledge)
	c.training = experiments.Training{Scene: scene, Learner: e, Settings: settings, Level: conf.Knowledge, Epochs: scene.Limit(conf.Steps), Seed: conf.Seed}
	return err
}

// read settles the training that the text of a config.toml describes; name is
// what errors call it.
func (c *command) read(ctx context.Context, name, text string) error {
	var conf config
	if err := toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(&conf); err != nil {
		if unknown := new(toml.StrictMissingError); errors.As(err, &unknown) {
			line, column := unknown.Errors[0].Position()
			err = fmt.Errorf("%d:%d: unknown key %q; allowed are those that train -out writes", line, column, strings.Join(unknown.Errors[0].Key(), "."))
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	if trace := c.scene.Trace(); trace != "" && conf.World.Trace != "" {
		conf.World.Trace = trace
	}
	err := conf.Instance.Validate()
	if err == nil {
		err = c.settle(ctx, conf)
	}
	if err == nil && (conf.Steps < 1 || conf.Steps != c.training.Epochs) {
		err = fmt.Errorf("steps is %d; allowed are 1 to %d epochs", conf.Steps, c.training.Scene.Limit(max(conf.Steps, 1)))
	}
	if err != nil {
		return fmt.Errorf("%s: %v", name, err) // not a usage error
	}
	c.text = text
	return nil
}

// repeated settles the training of -config.
func (c *command) repeated(ctx context.Context) error {
	text, err := os.ReadFile(c.config)
	if err != nil {
		return fmt.Errorf("-config: %w", err)
	}
	if err := c.read(ctx, c.config, string(text)); err != nil {
		return err
	}
	return c.begin()
}

// resumed settles the training of -resume, from where it stands.
func (c *command) resumed(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("-resume: %w", err)
		}
	}()
	c.out = c.resume
	saved, err := learner.Load(c.resume)
	if err != nil {
		return err
	}
	if err := c.read(ctx, filepath.Join(c.resume, learner.StateFile), saved.Config); err != nil {
		return err
	}
	c.keepStates()
	c.training.From, err = checkpoint(saved)
	return err
}

// saved settles the run of -policy, in the world of the flags or else in that in
// which it was learned.
func (c *command) saved(ctx context.Context) error {
	saved, err := learner.Load(c.policy)
	if err != nil {
		return fmt.Errorf("-policy: %w", err)
	}
	t := &c.training
	if slices.ContainsFunc(cli.WorldFlags, c.flags.Given) {
		t.Scene, err = c.scene.Open(ctx, c.flags, saved.Level())
		t.Seed, t.Epochs = c.seed, c.length(c.steps)
	} else {
		if err = c.read(ctx, c.policy, saved.Config); err != nil {
			err = fmt.Errorf("-policy: %w", err)
		}
		t.Epochs = c.length(t.Epochs)
	}
	if c.flags.Given("seed") {
		t.Seed = c.seed
	}
	t.Learner, t.Settings, t.Level = experiments.SavedEntry(saved.Algorithm(), saved), nil, saved.Level()
	return err
}

// finish writes the results, if -out names a directory, and
// returns what is printed. Not all of them are there where a figure was not
// finite.
func (c *command) finish(t *experiments.Trained, whole bool) (*result.Report, error) {
	in := c.training.Scene.Instance
	var thresholds *result.Table
	if whole {
		thresholds = experiments.Thresholds(t.Trainee, in)
	}
	rep := c.report(t, thresholds)
	if c.out == "" {
		return rep, nil
	}
	var out cli.Results
	out.Add(configFile, []byte(c.text), nil)
	if len(t.Report.Results) > 0 { // else the learner failed
		out.Print(resultFile, rep, result.JSON)
		if rep.Timing.StepsPerSecond > 0 { // else nothing was left to run
			out.Timing(rep.Timing)
		}
	}
	metrics, curves, crawls := t.Tables(in)
	for name, table := range map[string]*result.Table{metricsFile: metrics, curvesFile: curves, crawlsFile: crawls, thresholdsFile: thresholds} {
		if table != nil {
			out.Print(name, table, result.CSV)
		}
	}
	if err := out.Put(c.out); err != nil {
		return nil, fmt.Errorf("-out: %w", err)
	}
	return rep, nil
}

// shownSources is the number of sources up to which the thresholds are printed
// below the results. Of more a line says where they are.
const shownSources = 12

// report returns what is printed.
func (c *command) report(t *experiments.Trained, thresholds *result.Table) *result.Report {
	rep, l := &t.Report, t.Trainee
	line := fmt.Sprintf("%s on %s, knowledge %s, budget %v, %d steps, seed %d", rep.Algorithm, rep.Instance, rep.Knowledge, rep.Budget, rep.Steps, rep.Seed)
	if l != nil {
		line += ", " + result.Count(l.Fallbacks(), "Tikhonov fallback")
	}
	rep.Notes = []string{line + rep.BoundNote() + ".", experiments.Sentence(rep)}
	if note := experiments.PriceNote(l, c.training.Scene, c.training.Level); note != "" {
		rep.Notes = append(rep.Notes, note)
	}
	switch {
	case thresholds == nil:
	case len(thresholds.Rows) <= shownSources:
		rep.More = thresholds
	case c.out == "":
		rep.Notes = append(rep.Notes, fmt.Sprintf("%d sources: with -out DIR, %s has the thresholds of each.", len(thresholds.Rows), thresholdsFile))
	default:
		rep.Notes = append(rep.Notes, fmt.Sprintf("%d sources: %s has the thresholds of each.", len(thresholds.Rows), filepath.Join(c.out, thresholdsFile)))
	}
	return rep
}
