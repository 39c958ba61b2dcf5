package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// timedSources is the number of sources from which a decision takes longer than
// to look at the clock.
const timedSources = 100

// shownSources is the number of sources up to which the thresholds are printed
// below the results. Of more a line says where they are.
const shownSources = 12

// tell writes the results, if -out names a directory, and prints them.
func (c *command) tell(done *experiments.Performed, stdout io.Writer) error {
	first := done.Records[0]
	trainee, err := c.trainee(first)
	if err != nil {
		return err
	}
	var thresholds *result.Table
	if trainee != nil {
		thresholds = experiments.Thresholds(trainee, c.scene.Instance)
	}
	rep := c.report(done, trainee, thresholds)
	if c.batch.Dir != "" {
		var out cli.Results
		out.Print(resultFile, rep, result.JSON)
		if rep.Timing.StepsPerSecond > 0 { // else nothing was left to run
			out.Timing(rep.Timing)
		}
		out.Print(metricsFile, metrics(first), result.CSV)
		out.Print(curvesFile, curves(done.Records), result.CSV)
		out.Print(crawlsFile, c.crawls(first), result.CSV)
		if thresholds != nil {
			out.Print(thresholdsFile, thresholds, result.CSV)
		}
		if err := out.Put(c.batch.Dir); err != nil {
			return fmt.Errorf("-out: %w", err)
		}
	}
	return errors.Join(rep.Write(stdout, c.output.Format()), errors.Join(done.Errors...))
}

// trainee returns the learner as it ended, or nil of what was learned before.
func (c *command) trainee(first *experiments.Record) (learner.Learner, error) {
	if first.Trainee != nil || c.policy != "" {
		return first.Trainee, nil
	}
	saved, err := learner.Load(c.batch.Dir)
	if err != nil {
		return nil, err
	}
	return saved.Learner(saved.Terms())
}

// report returns what is printed.
func (c *command) report(done *experiments.Performed, trainee learner.Learner, thresholds *result.Table) *result.Report {
	first := done.Records[0]
	rep := &result.Report{
		Instance: first.Instance, Algorithm: c.algorithm, Knowledge: string(c.level), Budget: c.run.Instance.Budget,
		Steps: first.Learning.Epochs, Seeds: 1, Seed: c.run.Seed, Bound: first.Bound, Fitted: first.Fitted,
		Timing: &result.Timing{StepsPerSecond: first.StepsPerSecond, Decision: map[string]float64{}},
	}
	add := func(policy string, f experiments.Figures) {
		rep.Results = append(rep.Results, result.Row{Policy: policy, Reward: f.Reward, Crawls: f.Crawls, Over: f.Over, Overrun: f.Overrun})
		if len(c.scene.Instance.Sources) >= timedSources {
			rep.Timing.Decision[policy] = float64(f.Decision.Nanoseconds())
		}
	}
	if trainee != nil {
		add("learning", first.Learning)
	}
	add("learned", first.Learned)
	for k, name := range compared {
		if r := done.Records[k+1]; r != nil {
			add(name, r.Learned)
		}
	}
	rep.Complete()
	line := fmt.Sprintf("%s on %s, knowledge %s, budget %v, %d steps, seed %d", rep.Algorithm, rep.Instance, rep.Knowledge, rep.Budget, rep.Steps, rep.Seed)
	if trainee != nil {
		line += ", " + result.Count(first.Fallbacks, "Tikhonov fallback")
	}
	rep.Notes = []string{line + rep.BoundNote() + ".", experiments.Sentence(rep)}
	if note := experiments.PriceNote(trainee, c.scene, c.level); note != "" {
		rep.Notes = append(rep.Notes, note)
	}
	switch {
	case thresholds == nil:
	case len(thresholds.Rows) <= shownSources:
		rep.More = thresholds
	case c.batch.Dir == "":
		rep.Notes = append(rep.Notes, fmt.Sprintf("%d sources: with -out DIR, %s has the thresholds of each.", len(thresholds.Rows), thresholdsFile))
	default:
		rep.Notes = append(rep.Notes, fmt.Sprintf("%d sources: %s has the thresholds of each.", len(thresholds.Rows), filepath.Join(c.batch.Dir, thresholdsFile)))
	}
	return rep
}

// metrics are the learning curve with the learner's own figures.
func metrics(r *experiments.Record) *result.Table {
	t := &result.Table{Header: append([]string{"epoch", "reward", "crawls"}, r.Metrics...)}
	for _, p := range r.Curve {
		cells := []string{strconv.Itoa(p.Epoch), result.Exact(p.Reward), result.Exact(p.Crawls)}
		for _, v := range p.Own {
			cells = append(cells, result.Exact(v))
		}
		t.Add(cells...)
	}
	return t
}

// curves are those of the learner and of the policies beside it.
func curves(records []*experiments.Record) *result.Table {
	t := &result.Table{Header: []string{"policy", "epoch", "reward"}}
	for k, r := range records {
		name := "learning"
		if k > 0 {
			name = compared[k-1]
		}
		if r == nil {
			continue
		}
		for _, p := range r.Curve {
			t.Add(name, strconv.Itoa(p.Epoch), result.Exact(p.Reward))
		}
	}
	return t
}

// crawls are the last ones of what was learned.
func (c *command) crawls(r *experiments.Record) *result.Table {
	t := &result.Table{Header: []string{"epoch", "source"}}
	for _, x := range r.Crawls {
		t.Add(strconv.Itoa(x[0]), experiments.SourceName(c.scene.Instance, x[1]))
	}
	return t
}
