package report

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/files"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
)

// Files of train and bench.
const (
	resultFile  = "result.json" // tells their results from those of a sweep
	configFile  = "config.toml" // of train
	commandFile = "command.txt" // repeats what they did
)

// readResult makes the page of what train or bench kept.
func readResult(ctx context.Context, dir string) (*Page, error) {
	r, err := files.ReadJSON[result.Report](filepath.Join(dir, resultFile))
	if err != nil {
		return nil, err
	}
	of, err := experiments.ReadRuns(dir)
	if err != nil {
		return nil, err
	}
	p := &Page{Title: fmt.Sprintf("%s, budget %v", r.Instance, r.Budget)}
	for name, to := range map[string]*string{commandFile: &p.Command, configFile: &p.Config} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		*to = strings.TrimSpace(string(text))
	}
	var groups []group
	var contenders []experiments.Contender
	for k, row := range r.Results {
		name := strings.TrimSuffix(row.Policy, "/learned")
		c, g := experiments.Contender{Name: name, Learns: name != row.Policy, Records: of[name]}, group{name: name, style: k, records: of[name]}
		if g.records == nil {
			continue
		}
		if name == "learned" {
			c.Name, c.Learns = "", true
			g.name, _, _ = strings.Cut(r.Algorithm, "+")
		}
		g.over = slices.ContainsFunc(g.records, func(rec *experiments.Record) bool { return rec.Learning.Over > 0 })
		contenders, groups = append(contenders, c), append(groups, g)
	}
	compared := experiments.Compare(contenders, env.Level(r.Knowledge), r.Seeds, r.Seed)
	p.Notes, p.Sections = compared.Notes, []Section{rewards(r), learning(groups)}
	for _, g := range groups {
		if rec := g.records[0]; r.Seeds == 1 && g.name == r.Algorithm {
			run, err := new(experiments.Engine).Resolve(ctx, rec.Run)
			if err != nil {
				return nil, err
			}
			p.Sections = append(p.Sections, drawTraining(run.Scene.Instance, rec)...)
		}
	}
	return p, nil
}

// rewards are those of the policies and, where runs were compared, their
// differences to Whittle's. A policy's place is its style.
func rewards(r *result.Report) Section {
	var names []string
	for _, row := range r.Results {
		names = append(names, result.Marked(row.Policy, row.Over > 0))
	}
	title := fmt.Sprintf("%s, budget %v", r.Instance, r.Budget)
	if slices.ContainsFunc(r.Results, func(row result.Row) bool { return row.Over > 0 }) {
		title += " (* breaks the budget)"
	}
	reward := Dots(plot.New("policies", title, "interest per epoch", ""), names, func(k int) (value, lo, hi float64, style int) {
		row := &r.Results[k]
		return row.Reward, result.OrNaN(row.Lo), result.OrNaN(row.Hi), k
	})
	if r.Bound != nil {
		reward.Series = append(reward.Series, plot.Guide("bound that no policy exceeds", *r.Bound, -.6, *r.Bound, float64(len(names))-.4))
	}
	diff := Dots(plot.New("difference", "Reward less that of Whittle under the same seeds", "interest per epoch", ""), names, func(k int) (value, lo, hi float64, style int) {
		row := &r.Results[k]
		return result.OrNaN(row.Diff), result.OrNaN(row.DiffLo), result.OrNaN(row.DiffHi), k
	})
	s := Section{Title: "Policies", Table: r.Table(), Figures: []plot.Figure{reward, diff}}
	if r.Seeds > 1 {
		s.Notes = []string{"Means with 95 % intervals."}
	}
	return s
}
