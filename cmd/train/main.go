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
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/pelletier/go-toml/v2"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments"
	"ephemera/experiments/files"
	"ephemera/experiments/result"
)

const about = `Train trains a learner that decides which sources to crawl, and compares what
it earns with exact Whittle and simple policies in the same world. Without a
flag: Table I of the papers, budget 1, 10 000 steps.`

// shownSources is the number of sources up to which the thresholds are printed
// below the results. Of more a line says where they are.
const shownSources = 12

// compared are the policies beside the learner.
var compared = []string{"whittle", "greedy", "myopic", "round-robin", "best-source"}

func main() { cli.Main("train", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("train", about)
	var (
		scene  cli.Scene
		output cli.Output
		steps  int
		seed   uint64
		algo   cli.Algorithm
		out    string
		prof   string
	)
	scene.Define(f)
	algo.Define(f)
	f.Group("Run", func() {
		f.IntVar(&steps, "steps", 10000, "`epochs` of training and of each comparison; on a recording at most, and by default, all of its measured part")
		f.Uint64Var(&seed, "seed", 1, "`number` from which every random draw of the run is derived")
	})
	output.Define(f, func() {
		f.StringVar(&out, "out", "", "`directory` to write config.toml, metrics.csv, state.json, result.json, thresholds.csv and timing.json to; created if missing")
		f.StringVar(&prof, "cpuprofile", "", "`file` to write a CPU profile of the run to, for go tool pprof")
	})
	if done, err := f.ParseAll(args, false, stdout); done || err != nil {
		return err
	}
	format, err := output.Format()
	if err != nil {
		return err
	}
	if steps < 1 {
		return cli.Usagef("-steps is %d; allowed is 1 or more", steps)
	}
	if f.Given("out") && out == "" {
		return cli.Usagef("-out is empty; allowed is the name of a directory")
	}
	level, err := algo.Level()
	if err != nil {
		return err
	}
	learner, err := algo.Learner(level)
	if err != nil {
		return err
	}
	settings, err := algo.Configure(level, learner)
	if err != nil {
		return err
	}
	sc, err := scene.Open(ctx, f, level)
	if err != nil {
		return err
	}
	if sc.Epochs > 0 && (!f.Given("steps") || steps > sc.Epochs) {
		steps = sc.Epochs
	}
	show, clear, err := output.Progress(stderr, "train")
	if err != nil {
		return err
	}
	dir, err := cli.OpenDir(out, "config.toml", "metrics.csv", "state.json", "result.json", "thresholds.csv", cli.TimingFile)
	if err != nil {
		return err
	}
	defer dir.Close()
	rows := 0
	if dir != nil {
		rows = 200
	}

	training := experiments.Training{
		Scene: sc, Learner: learner, Settings: settings[0], Level: level,
		Epochs: steps, Seed: seed, Rows: rows, Progress: show,
	}
	for _, name := range compared {
		e, err := experiments.Find(name)
		if err != nil {
			return err
		}
		training.Compare = append(training.Compare, e)
	}
	stop, err := startProfile(prof)
	if err != nil {
		return fmt.Errorf("-cpuprofile: %w", err)
	}
	trained, err := training.Run(ctx)
	clear()
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	r := &trained.Report
	r.Notes = notes(r, trained.Trainee.Fallbacks())
	if note := experiments.PriceNote(trained.Trainee, sc, level); note != "" {
		r.Notes = append(r.Notes, note)
	}
	thresholds := experiments.Thresholds(trained.Trainee, sc.Instance)
	switch {
	case thresholds == nil:
	case len(thresholds.Rows) <= shownSources:
		r.More = thresholds
	case out == "":
		r.Notes = append(r.Notes, fmt.Sprintf("%d sources: with -out DIR, thresholds.csv has the thresholds of each.", len(thresholds.Rows)))
	default:
		r.Notes = append(r.Notes, fmt.Sprintf("%d sources: %s has the thresholds of each.", len(thresholds.Rows), filepath.Join(out, "thresholds.csv")))
	}
	if dir != nil {
		if err := keep(dir, scene.Used(level), training, trained, thresholds); err != nil {
			return fmt.Errorf("-out: %w", err)
		}
	}
	return r.Write(stdout, format)
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

// notes are the lines below the table.
func notes(r *result.Report, fallbacks int) []string {
	line := fmt.Sprintf("%s on %s, knowledge %s, budget %v, %d steps, seed %d, %s", r.Algorithm, r.Instance, r.Knowledge, r.Budget, r.Steps, r.Seed, result.Count(fallbacks, "Tikhonov fallback"))
	if r.Bound != nil {
		line += fmt.Sprintf("; no policy that keeps the budget earns more than %s per epoch", result.Figure(*r.Bound))
	}
	return []string{line + ".", experiments.Sentence(r)}
}

// keep writes what -out keeps; world is what the flags settled beyond the
// instance.
func keep(dir *files.Dir, world map[string]any, t experiments.Training, trained *experiments.Trained, thresholds *result.Table) error {
	sources := make([]map[string]any, len(t.Scene.Instance.Sources))
	for i, s := range t.Scene.Instance.Sources {
		sources[i] = map[string]any{"name": s.Name, "rate": s.Rate, "decay": s.Decay, "interest": s.Interest, "window": s.Window, "cost": s.Cost}
	}
	config, err := toml.Marshal(map[string]any{
		"algorithm": t.Learner.Name,
		"knowledge": string(t.Level),
		"steps":     t.Epochs,
		"seed":      t.Seed,
		"settings":  t.Settings,
		"world":     world,
		"instance":  map[string]any{"id": t.Scene.Instance.ID, "budget": t.Scene.Instance.Budget, "source": sources},
	})
	if err != nil {
		return err
	}
	var metrics bytes.Buffer
	w := csv.NewWriter(&metrics)
	_ = w.Write(trained.Header) // a bytes.Buffer takes everything
	for _, row := range trained.Metrics {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = result.Exact(v)
		}
		_ = w.Write(cells)
	}
	w.Flush()
	state, err := json.MarshalIndent(trained.Trainee.State(), "", "  ")
	if err != nil {
		return fmt.Errorf("state of the learner: %w", err)
	}
	var report bytes.Buffer
	if err := trained.Report.Write(&report, result.JSON); err != nil {
		return err
	}
	timing, err := cli.Timing(trained.Report.Timing)
	if err != nil {
		return err
	}
	all := []files.File{{Name: "config.toml", Data: config}, {Name: "metrics.csv", Data: metrics.Bytes()}, {Name: "state.json", Data: append(state, '\n')}, {Name: "result.json", Data: report.Bytes()}, timing}
	if thresholds != nil {
		var b bytes.Buffer
		if err := thresholds.Write(&b, result.CSV); err != nil {
			return err
		}
		all = append(all, files.File{Name: "thresholds.csv", Data: b.Bytes()})
	}
	return dir.Put(all...)
}
