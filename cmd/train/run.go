package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
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

// kept are the files of -out.
var kept = []string{configFile, metricsFile, learner.StateFile, resultFile, thresholdsFile, curvesFile, crawlsFile, cli.TimingFile}

// metricRows is the number of rows of metrics.csv.
const metricRows = 200

// compared are the policies beside the learner.
var compared = []string{"whittle", "greedy", "myopic", "round-robin", "best-source"}

// trainRun is a run of train.
type trainRun struct {
	training experiments.Training
	config   string // text of config.toml, where there is a directory
	done     bool   // the directory holds the results already

	trained    *experiments.Trained
	thresholds *result.Table
}

// describe writes down what the run depends on.
func (r *trainRun) describe(world experiments.World) error {
	t := &r.training
	text, err := toml.Marshal(config{t.Learner.Name, t.Level, t.Epochs, t.Seed, t.Settings, world, t.Scene.Instance})
	r.config = string(text)
	return err
}

// open opens the directory of a run that has not begun.
func (c *command) open(r *trainRun, path string) error {
	dir, err := files.Open(path)
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	c.dir = dir
	_, begun := os.Stat(dir.Path(learner.StateFile))
	_, ended := os.Stat(dir.Path(resultFile))
	if begun == nil && errors.Is(ended, fs.ErrNotExist) {
		return fmt.Errorf("-out: %s holds a run that was interrupted; %s", path, goOn(path))
	}
	if err := dir.Fresh(kept...); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	c.keepStates(r)
	return nil
}

func goOn(path string) string { return fmt.Sprintf("train -resume %s goes on with it", path) }

// keepStates has the run write checkpoints.
func (c *command) keepStates(r *trainRun) {
	r.training.Rows = metricRows
	release := func() {}
	r.training.Save = func(at *experiments.Checkpoint) error {
		run, err := json.Marshal(at)
		if err != nil {
			return err
		}
		data, err := (&learner.Saved{Config: r.config, Start: at.Start, Length: at.Length, State: at.Learner, Run: run}).Encode()
		if err != nil {
			return err
		}
		if err := c.dir.Put(files.File{Name: learner.StateFile, Data: data}); err != nil {
			return err
		}
		cli.Resume(goOn(c.out))
		if at.Sums.Epochs == r.training.Epochs {
			release()
		}
		return nil
	}
	const interval = 10 * time.Second
	last := time.Now()
	hold := sync.OnceFunc(func() { release = cli.Hold() })
	r.training.Due = func(epoch int) bool {
		hold() // from here on to the end of learning there is something to write
		if c.checkpoint > 0 {
			return epoch%c.checkpoint == 0
		}
		due := time.Since(last) >= interval
		if due {
			last = time.Now()
		}
		return due
	}
}

// fromConfig returns the run that a config.toml describes; name is what errors
// call it.
func (c *command) fromConfig(ctx context.Context, name, text string) (*trainRun, error) {
	var conf config
	if err := toml.NewDecoder(bytes.NewReader([]byte(text))).DisallowUnknownFields().Decode(&conf); err != nil {
		return nil, tomlError(name, err)
	}
	fail := func(err error) (*trainRun, error) { return nil, fmt.Errorf("%s: %v", name, err) } // not a usage error
	e, err := experiments.FindLearner(conf.Algorithm, conf.Knowledge)
	if err != nil {
		return fail(err)
	}
	keys, _ := conf.Settings.(map[string]any)
	settings, err := e.Configure(conf.Knowledge, keys)
	if err != nil {
		return fail(err)
	}
	trace := ""
	if c.flags.Given("trace") {
		trace = c.scene.Trace()
	}
	if err := conf.Instance.Validate(); err != nil {
		return fail(err)
	}
	scene, err := cli.Reopen(ctx, conf.World, conf.Instance, conf.Knowledge, trace)
	if err != nil {
		return fail(err)
	}
	if conf.Steps < 1 || conf.Steps != scene.Limit(conf.Steps) {
		return fail(fmt.Errorf("steps is %d; allowed are 1 to %d epochs", conf.Steps, scene.Limit(max(conf.Steps, 1))))
	}
	return &trainRun{
		training: experiments.Training{Scene: scene, Learner: e, Settings: settings, Level: conf.Knowledge, Epochs: conf.Steps, Seed: conf.Seed},
		config:   text,
	}, nil
}

// tomlError is one line with the place.
func tomlError(name string, err error) error {
	var strict *toml.StrictMissingError
	var dec *toml.DecodeError
	switch {
	case errors.As(err, &strict) && len(strict.Errors) > 0:
		line, column := strict.Errors[0].Position()
		return fmt.Errorf("%s:%d:%d: unknown key %q", name, line, column, strict.Errors[0].Key())
	case errors.As(err, &dec):
		line, column := dec.Position()
		return fmt.Errorf("%s:%d:%d: %w", name, line, column, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// maxConfig is the greatest size of a config.toml, bytes.
const maxConfig = 1 << 30

// repeated returns the run of -config.
func (c *command) repeated(ctx context.Context) (*trainRun, error) {
	text, err := env.ReadFile(c.config, maxConfig)
	if err != nil {
		return nil, fmt.Errorf("-config: %w", err)
	}
	r, err := c.fromConfig(ctx, c.config, string(text))
	if err != nil || c.out == "" {
		return r, err
	}
	return r, c.open(r, c.out)
}

// resumed returns the run of -resume, from where it stands.
func (c *command) resumed(ctx context.Context) (*trainRun, error) {
	c.out = c.resume
	if _, err := os.Stat(c.resume); err != nil {
		return nil, fmt.Errorf("-resume: %w", err)
	}
	dir, err := files.Open(c.resume)
	if err != nil {
		return nil, fmt.Errorf("-resume: %w", err)
	}
	c.dir = dir
	saved, err := learner.Load(c.resume)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s holds no run: %w", c.resume, err)
	}
	if err != nil {
		return nil, fmt.Errorf("-resume: %w", err)
	}
	r, err := c.fromConfig(ctx, dir.Path(learner.StateFile), saved.Config)
	if err != nil {
		return nil, fmt.Errorf("-resume: %w", err)
	}
	at := &experiments.Checkpoint{}
	if err := json.Unmarshal(saved.Run, at); err != nil {
		return nil, fmt.Errorf("-resume: %s: %w", dir.Path(learner.StateFile), err)
	}
	at.Learner = saved.State
	c.keepStates(r)
	r.training.From = at
	_, err = os.Stat(dir.Path(resultFile))
	r.done = err == nil
	return r, nil
}

// saved returns the run of -policy.
func (c *command) saved(ctx context.Context) (*trainRun, error) {
	saved, err := learner.Load(c.policy)
	if err != nil {
		return nil, fmt.Errorf("-policy: %w", err)
	}
	own, err := c.fromConfig(ctx, c.policy, saved.Config)
	worlds := false
	for _, name := range cli.WorldFlags {
		worlds = worlds || c.flags.Given(name)
	}
	scene, steps := experiments.Scene{}, c.steps
	if !worlds {
		if err != nil {
			return nil, fmt.Errorf("-policy: %w", err)
		}
		scene, steps = own.training.Scene, own.training.Epochs
		if !c.flags.Given("seed") {
			c.seed = own.training.Seed
		}
		if c.flags.Given("steps") {
			steps = scene.Limit(c.steps)
		}
	} else {
		if scene, err = c.scene.Open(ctx, c.flags, saved.Level()); err != nil {
			return nil, err
		}
		steps = c.length(scene, steps)
	}
	return &trainRun{training: experiments.Training{
		Scene: scene, Learner: experiments.SavedEntry(saved.Algorithm(), saved), Level: saved.Level(), Epochs: steps, Seed: c.seed,
	}}, nil
}

// run runs it and writes the files.
func (r *trainRun) run(ctx context.Context, dir *files.Dir) error {
	for _, name := range compared {
		e, err := experiments.Find(name)
		if err != nil {
			return err
		}
		r.training.Compare = append(r.training.Compare, e)
	}
	var failed error
	if r.trained, failed = r.training.Run(ctx); r.trained == nil {
		return failed
	}
	if r.trained.Trainee != nil && failed == nil {
		r.thresholds = experiments.Thresholds(r.trained.Trainee, r.training.Scene.Instance)
	}
	if dir != nil && !r.done {
		if err := r.keep(dir); err != nil {
			return errors.Join(failed, fmt.Errorf("-out: %w", err))
		}
	}
	return failed
}

// keep writes the results.
func (r *trainRun) keep(dir *files.Dir) error {
	metrics := &result.Table{Header: r.trained.Header}
	for _, row := range r.trained.Metrics {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = result.Exact(v)
		}
		metrics.Add(cells...)
	}
	all := []files.File{{Name: configFile, Data: []byte(r.config)}}
	add := func(f files.File, err error) error {
		all = append(all, f)
		return err
	}
	var failed error
	if rep := &r.trained.Report; len(rep.Results) > 0 { // else the learner failed
		failed = errors.Join(
			add(cli.File(resultFile, func(w io.Writer) error { return rep.Write(w, result.JSON) })),
			add(cli.Timing(rep.Timing)))
	}
	curves, crawls := r.trained.Trace.Tables(r.training.Scene.Instance)
	for name, t := range map[string]*result.Table{metricsFile: metrics, curvesFile: curves, crawlsFile: crawls, thresholdsFile: r.thresholds} {
		if t != nil {
			failed = errors.Join(failed, add(cli.File(name, func(w io.Writer) error { return t.Write(w, result.CSV) })))
		}
	}
	if failed != nil {
		return failed
	}
	return dir.Put(all...)
}

// shownSources is the number of sources up to which the thresholds are printed
// below the results. Of more a line says where they are.
const shownSources = 12

// report returns what is printed.
func (r *trainRun) report(dir *files.Dir) *result.Report {
	rep, l := &r.trained.Report, r.trained.Trainee
	line := fmt.Sprintf("%s on %s, knowledge %s, budget %v, %d steps, seed %d", rep.Algorithm, rep.Instance, rep.Knowledge, rep.Budget, rep.Steps, rep.Seed)
	if l != nil {
		line += ", " + result.Count(l.Fallbacks(), "Tikhonov fallback")
	}
	if rep.Bound != nil {
		line += fmt.Sprintf("; no policy that keeps the budget earns more than %s per epoch", result.Figure(*rep.Bound))
	}
	rep.Notes = []string{line + ".", experiments.Sentence(rep)}
	if l == nil {
		return rep
	}
	if note := experiments.PriceNote(l, r.training.Scene, r.training.Level); note != "" {
		rep.Notes = append(rep.Notes, note)
	}
	switch tab := r.thresholds; {
	case tab == nil:
	case len(tab.Rows) <= shownSources:
		rep.More = tab
	case dir == nil:
		rep.Notes = append(rep.Notes, fmt.Sprintf("%d sources: with -out DIR, thresholds.csv has the thresholds of each.", len(tab.Rows)))
	default:
		rep.Notes = append(rep.Notes, fmt.Sprintf("%d sources: %s has the thresholds of each.", len(tab.Rows), dir.Path(thresholdsFile)))
	}
	return rep
}
