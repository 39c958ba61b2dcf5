// Show draws an instance: the Whittle index of every source with the price and
// the learned thresholds on it, what waits at the sources and when they are
// crawled under a policy, the price over time, and what an extra crawl per
// epoch is worth. It writes one page, and each figure as SVG and PNG.
//
//	go run ./cmd/show
//	go run ./cmd/show -instance lognormal:50 -budget 10
//	go run ./cmd/show -policy whittle -budget 2
//
// The table of what was written goes to stdout, progress to stderr. It exits
// with 0 when all went well, 2 when it was called wrongly, 1 when something
// else failed.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"ephemera/baselines/index"
	"ephemera/cmd/internal/cli"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/plot"
	"ephemera/experiments/report"
	"ephemera/experiments/result"
	"ephemera/learner"
)

const about = `Show draws an instance under a policy: index curves with price and thresholds,
content and crawls over time, the price over time, and what an extra crawl per
epoch is worth. Without a flag: Table I of the papers under what the default
learner learns in 10 000 epochs.`

func main() { cli.Main("show", run) }

// shown is a run as it is drawn.
type shown struct {
	scene   experiments.Scene
	relaxed index.Relaxed // with the budget kept on average only
	entry   *experiments.Entry
	level   env.Level
	trainee learner.Learner // nil where nothing learns

	epochs   int
	reward   float64
	names    []string
	prices   plot.Series // of a budget unit, while it learned
	states   [][]float64 // before each of the first decisions
	count    []float64   // crawls of each source over the whole run
	crawled  [][]float64 // epochs of the crawls of each source, of those that are drawn
	clearing plot.Series // the lowest index that was crawled in each of these
}

// firstEpochs is over how many epochs content is drawn: as TCNS draws it.
const firstEpochs = 40

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("show", about)
	var (
		scene              cli.Scene
		output             cli.Output
		policy, out, level string
		steps, epochs      int
		seed               uint64
	)
	scene.Define(f)
	f.Group("Policy", func() {
		f.StringVar(&policy, "policy", experiments.Learners()[0].Name, "`name` of a learner or policy, as in the table of bench; of a learner, what it has learned is drawn")
		f.Choice(&level, "knowledge", "", "`level`: model, observed or online; default the first at which the policy works", cli.Levels...)
		f.Count(&steps, "steps", 10000, 1, "`epochs` of the run, and of learning before it")
		f.Count(&epochs, "epochs", 100, 1, "`count` of the last epochs that are drawn")
		f.Uint64Var(&seed, "seed", 1, "`number` from which every random draw is derived")
	})
	output.Define(f, func() {
		f.StringVar(&out, "out", filepath.Join("results", "show"), "`directory` to write report.html and plots/ to; created if missing, its report replaced")
	})
	if done, err := f.ParseAll(args, false, stdout); done || err != nil {
		return err
	}
	entry, err := experiments.Find(policy)
	if err != nil {
		return cli.Usagef("-policy: %w", err)
	}
	s := &shown{entry: entry, level: env.Level(cmp.Or(level, string(entry.FirstLevel())))}
	if s.scene, err = scene.Open(ctx, f, s.level); err != nil {
		return err
	}
	if why := entry.WhyNot(s.scene, s.level); why != "" {
		return cli.Usagef("-policy is %q: %s", policy, why)
	}
	show, clear := output.Progress(stderr, "epochs")
	err = s.play(ctx, steps, epochs, seed, show)
	clear()
	if err != nil {
		return err
	}
	page := s.page()
	page.Command = cli.Quote(append([]string{"go", "run", "./cmd/show"}, args...)...)
	if err := os.MkdirAll(out, 0o777); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	if _, err := page.Write(out); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	return s.write(stdout, output.Format(), out, page)
}

// write prints what was written.
func (s *shown) write(w io.Writer, format result.Format, out string, page *report.Page) error {
	type row struct {
		File  string `json:"file"`
		Shows string `json:"shows"`
	}
	rows := []row{{filepath.Join(out, "report.html"), "all figures on one page"}}
	for _, section := range page.Sections {
		for _, f := range section.Figures {
			rows = append(rows, row{filepath.Join(out, "plots", f.Name+".{svg,png}"), f.Title})
		}
	}
	if format == result.JSON {
		return result.WriteJSON(w, map[string]any{
			"instance": s.scene.Instance.ID, "budget": s.scene.Instance.Budget, "policy": s.entry.Name,
			"knowledge": s.level, "steps": s.epochs, "reward": s.reward, "files": rows,
		})
	}
	t := result.Table{Header: []string{"file", "shows"}, Left: map[int]bool{1: true}}
	for _, r := range rows {
		t.Add(r.File, r.Shows)
	}
	return t.Write(w, format)
}

// play runs the policy, or has the learner learn and runs what it has learned,
// and keeps what is drawn.
func (s *shown) play(ctx context.Context, steps, epochs int, seed uint64, progress func(done, total int)) error {
	s.epochs = s.scene.Limit(steps)
	for i := range s.scene.Instance.Sources {
		s.names = append(s.names, experiments.SourceName(s.scene.Instance, i))
	}
	s.count, s.crawled = make([]float64, len(s.names)), make([][]float64, len(s.names))
	s.prices.Name, s.clearing.Name, s.clearing.Kind = "learned price", "lowest index that was crawled", plot.Steps
	done, total := 0, s.epochs
	if s.entry.Learns() {
		total *= 2
	}
	played, err := s.scene.Play(ctx, experiments.Play{Entry: s.entry, Level: s.level, Seed: seed, Epochs: s.epochs, Watch: func(r experiments.Running) experiments.Watcher {
		learning := s.entry.Learns() && !r.Again
		if !learning {
			s.look(r.World)
		}
		return func(n int, _ float64, crawls []env.Crawled) error {
			done++
			progress(done, total)
			if learning {
				s.learns(n, r.Trainee)
				return nil
			}
			if n < firstEpochs {
				s.look(r.World)
			}
			s.crawl(n, crawls, n >= s.epochs-epochs)
			return nil
		}
	}})
	if err != nil {
		return err
	}
	s.trainee, s.reward = played.Trainee, played.Learned.Reward
	return nil
}

// learns keeps the price that a learner has after an epoch.
func (s *shown) learns(n int, trainee learner.Learner) {
	p, ok := trainee.(experiments.Priced)
	if k, at := len(s.prices.X), float64(n+1); ok && (k == 0 || at > 1.02*s.prices.X[k-1]) {
		s.prices.Add(at, p.Price())
	}
}

// look keeps what waits at the sources.
func (s *shown) look(w env.World) {
	v := w.View()
	state := v.State
	if state == nil {
		state = v.Mean
	}
	s.states = append(s.states, slices.Clone(state))
}

// crawl keeps the crawls of an epoch, which may be one that is drawn.
func (s *shown) crawl(n int, crawls []env.Crawled, drawn bool) {
	lowest := math.NaN()
	for _, c := range crawls {
		s.count[c.Source]++
		if !drawn {
			continue
		}
		s.crawled[c.Source] = append(s.crawled[c.Source], float64(n))
		if at := index.WhittleAtAge(s.scene.Instance.Sources[c.Source], c.Age); !(at >= lowest) {
			lowest = at
		}
	}
	if drawn {
		s.clearing.Add(float64(n), lowest)
	}
}
