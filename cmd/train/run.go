package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"ephemera/cmd/internal/cli"
	"ephemera/env"
	"ephemera/env/strict"
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

// kept are the files of -out.
var kept = []string{configFile, metricsFile, learner.StateFile, resultFile, thresholdsFile, curvesFile, crawlsFile, cli.TimingFile}

// metricRows is the number of rows of metrics.csv.
const metricRows = 200

// compared are the policies beside the learner.
var compared = []string{"whittle", "greedy", "myopic", "round-robin", "best-source"}

// open opens the directory of a training that has not begun, if one is named.
func (c *command) open() error {
	dir, err := cli.OpenDir(c.out)
	if dir == nil {
		return err
	}
	c.dir = dir
	_, begun := os.Stat(dir.Path(learner.StateFile))
	_, ended := os.Stat(dir.Path(resultFile))
	if begun == nil && errors.Is(ended, fs.ErrNotExist) {
		return fmt.Errorf("-out: %s holds a run that was interrupted; %s", c.out, goOn(c.out))
	}
	if err := dir.Fresh(kept...); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	c.keepStates()
	return nil
}

func goOn(path string) string { return fmt.Sprintf("train -resume %s goes on with it", path) }

// quick is the size of a checkpoint up to which an interruption waits while it
// is written, bytes.
const quick = 16 << 20

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
	size := 0 // of it, bytes
	t.Save = func(at *experiments.Checkpoint) error {
		// Without a checkpoint there is nothing to go on with.
		cli.Hold(size <= quick)
		defer cli.Hold(false)
		run, err := json.Marshal(at)
		if err != nil {
			return err
		}
		data, err := (&learner.Saved{Config: c.text, Start: at.Start, Length: at.Length, State: at.Learner, Run: run}).Encode()
		if err != nil {
			return err
		}
		cli.Hold(size == 0 || len(data) <= quick)
		if err := c.dir.Put(files.File{Name: learner.StateFile, Data: data}); err != nil {
			return err
		}
		cli.Resume(goOn(c.out))
		size, ended = len(data), time.Now()
		return nil
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

// read settles the training that the text of a config.toml describes; name is
// what errors call it.
func (c *command) read(ctx context.Context, name, text string) error {
	var conf config
	if err := strict.Decode([]byte(text), &conf); err != nil {
		return tomlError(name, err)
	}
	var settings any
	var scene experiments.Scene
	e, err := experiments.FindLearner(conf.Algorithm, conf.Knowledge)
	if err == nil {
		keys, _ := conf.Settings.(map[string]any)
		settings, err = e.Configure(conf.Knowledge, keys)
	}
	if err == nil {
		err = conf.Instance.Validate()
	}
	if err == nil {
		scene, err = cli.Reopen(ctx, conf.World, conf.Instance, conf.Knowledge, c.scene.Trace())
	}
	if err == nil && (conf.Steps < 1 || conf.Steps != scene.Limit(conf.Steps)) {
		err = fmt.Errorf("steps is %d; allowed are 1 to %d epochs", conf.Steps, scene.Limit(max(conf.Steps, 1)))
	}
	if err != nil {
		return fmt.Errorf("%s: %v", name, err) // not a usage error
	}
	c.training = experiments.Training{Scene: scene, Learner: e, Settings: settings, Level: conf.Knowledge, Epochs: conf.Steps, Seed: conf.Seed}
	c.text = text
	return nil
}

// tomlError is one line with the place.
func tomlError(name string, err error) error {
	var unknown *strict.UnknownError
	var dec *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("%s:%d:%d: %w; allowed are those that train -out writes", name, unknown.Line, unknown.Column, err)
	case errors.As(err, &dec):
		line, column := dec.Position()
		what, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "toml: "), " into struct field")
		return fmt.Errorf("%s:%d:%d: %s: %s", name, line, column, strings.Join(dec.Key(), "."), what)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// maxConfig is the greatest size of a config.toml, bytes.
const maxConfig = 1 << 30

// repeated settles the training of -config.
func (c *command) repeated(ctx context.Context) error {
	text, err := env.ReadFile(c.config, maxConfig)
	if err != nil {
		return fmt.Errorf("-config: %w", err)
	}
	if err := c.read(ctx, c.config, string(text)); err != nil {
		return err
	}
	return c.open()
}

// resumed settles the training of -resume, from where it stands.
func (c *command) resumed(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("-resume: %w", err)
		}
	}()
	c.out = c.resume
	if _, err := os.Stat(c.resume); err != nil {
		return err
	}
	if c.dir, err = files.Open(c.resume); err != nil {
		return err
	}
	saved, err := learner.Load(c.resume)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds no run: %w", c.resume, err)
	}
	if err != nil {
		return err
	}
	path := c.dir.Path(learner.StateFile)
	if err := c.read(ctx, path, saved.Config); err != nil {
		return err
	}
	at := &experiments.Checkpoint{}
	if err := json.Unmarshal(saved.Run, at); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	at.Learner = saved.State
	c.keepStates()
	cli.Resume(goOn(c.out))
	c.training.From = at
	_, err = os.Stat(c.dir.Path(resultFile))
	c.done = err == nil
	return nil
}

// saved settles the run of -policy, in the world of the flags or else in that in
// which it was learned.
func (c *command) saved(ctx context.Context) error {
	saved, err := learner.Load(c.policy)
	if err != nil {
		return fmt.Errorf("-policy: %w", err)
	}
	if slices.ContainsFunc(cli.WorldFlags, c.flags.Given) {
		c.training.Scene, err = c.scene.Open(ctx, c.flags, saved.Level())
		c.training.Epochs, c.training.Seed = c.length(c.training.Scene, c.steps), c.seed
	} else if err = c.read(ctx, c.policy, saved.Config); err != nil {
		err = fmt.Errorf("-policy: %w", err)
	} else if c.flags.Given("steps") {
		c.training.Epochs = c.training.Scene.Limit(c.steps)
	}
	if c.flags.Given("seed") {
		c.training.Seed = c.seed
	}
	c.training.Learner, c.training.Settings, c.training.Level = experiments.SavedEntry(saved.Algorithm(), saved), nil, saved.Level()
	return err
}

// keep writes the results, if there is a directory that has none yet.
func (c *command) keep(t *experiments.Trained) error {
	if c.dir == nil || c.done {
		return nil
	}
	var out cli.Results
	out.Add(configFile, []byte(c.text), nil)
	if len(t.Report.Results) > 0 { // else the learner failed
		out.Print(resultFile, &t.Report, result.JSON)
		out.Timing(t.Report.Timing)
	}
	metrics, curves, crawls := t.Tables(c.training.Scene.Instance)
	for name, table := range map[string]*result.Table{metricsFile: metrics, curvesFile: curves, crawlsFile: crawls, thresholdsFile: c.thresholds} {
		if table != nil {
			out.Print(name, table, result.CSV)
		}
	}
	if err := out.Put(c.dir); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	return nil
}

// shownSources is the number of sources up to which the thresholds are printed
// below the results. Of more a line says where they are.
const shownSources = 12

// report returns what is printed.
func (c *command) report(t *experiments.Trained) *result.Report {
	rep, l := &t.Report, t.Trainee
	line := fmt.Sprintf("%s on %s, knowledge %s, budget %v, %d steps, seed %d", rep.Algorithm, rep.Instance, rep.Knowledge, rep.Budget, rep.Steps, rep.Seed)
	if l != nil {
		line += ", " + result.Count(l.Fallbacks(), "Tikhonov fallback")
	}
	rep.Notes = []string{line + rep.BoundNote() + ".", experiments.Sentence(rep)}
	if note := experiments.PriceNote(l, c.training.Scene, c.training.Level); note != "" {
		rep.Notes = append(rep.Notes, note)
	}
	switch tab := c.thresholds; {
	case tab == nil:
	case len(tab.Rows) <= shownSources:
		rep.More = tab
	case c.dir == nil:
		rep.Notes = append(rep.Notes, fmt.Sprintf("%d sources: with -out DIR, %s has the thresholds of each.", len(tab.Rows), thresholdsFile))
	default:
		rep.Notes = append(rep.Notes, fmt.Sprintf("%d sources: %s has the thresholds of each.", len(tab.Rows), c.dir.Path(thresholdsFile)))
	}
	return rep
}
