package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ephemera/experiments"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
)

// commandFile has the command that repeats what train or bench did.
const commandFile = "command.txt"

// parseResult reads a resultFile.
func parseResult(file string) (*result.Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &result.Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(r.Results) == 0 {
		return nil, fmt.Errorf("%s: there is no result", file)
	}
	return r, nil
}

// policies are the names of the rows. A policy's place there is its style.
func policies(r *result.Report) (names []string) {
	for _, row := range r.Results {
		names = append(names, row.Policy)
	}
	return names
}

// readResult makes the page of what train or bench kept.
func readResult(dir, at string) (*Page, error) {
	r, err := parseResult(filepath.Join(dir, resultFile))
	if err != nil {
		return nil, err
	}
	p := &Page{
		Title:    fmt.Sprintf("%s, budget %v", r.Instance, r.Budget),
		Answer:   experiments.Sentence(r),
		Notes:    []string{fmt.Sprintf("Knowledge %s, %s of %s.", r.Knowledge, result.Count(r.Seeds, "seed"), result.Count(r.Steps, "epoch"))},
		Sections: []Section{rewards(r)},
	}
	var results strings.Builder
	if err := r.Write(&results, result.Text); err != nil {
		return nil, err
	}
	p.Text = results.String()
	for name, to := range map[string]*string{commandFile: &p.Command, configFile: &p.Config} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		*to = strings.TrimSpace(string(text))
	}
	switch {
	case p.Config != "": // of train
		p.Command = "go run ./cmd/train -config " + at + "/config.toml"
	case p.Command != "":
		p.Command += " -out " + at
	}
	for _, section := range []func(string, *result.Report) (Section, error){readCurves, readCrawls, readThresholds} {
		s, err := section(dir, r)
		if errors.Is(err, fs.ErrNotExist) {
			continue // bench has none
		}
		if err != nil {
			return nil, err
		}
		p.Sections = append(p.Sections, s)
	}
	return p, nil
}

// rewards are those of the policies and, where runs were compared, their
// differences to Whittle's.
func rewards(r *result.Report) Section {
	reward := Dots(plot.New("policies", fmt.Sprintf("%s, budget %v", r.Instance, r.Budget), "interest per epoch", ""), policies(r), func(k int) (value, lo, hi float64, style int) {
		row := &r.Results[k]
		return row.Reward, orNaN(row.Lo), orNaN(row.Hi), k
	})
	if r.Bound != nil {
		reward.Series = append(reward.Series, plot.Guide("bound that no policy exceeds", *r.Bound, -.6, *r.Bound, float64(len(r.Results))-.4))
	}
	diff := Dots(plot.New("difference", "Reward less that of Whittle under the same seeds", "interest per epoch", ""), policies(r), func(k int) (value, lo, hi float64, style int) {
		row := &r.Results[k]
		return orNaN(row.Diff), orNaN(row.DiffLo), orNaN(row.DiffHi), k
	})
	s := Section{Title: "Policies", Table: r.Table(result.Text), Figures: []plot.Figure{reward, diff}}
	if r.Seeds > 1 {
		s.Notes = []string{"Means with 95 % intervals."}
	}
	return s
}

// readCurves draws the learning curves and the regret.
func readCurves(dir string, r *result.Report) (Section, error) {
	reward := plot.New("learning", "Reward over time", "epoch", "interest per epoch")
	reward.X.Log = true
	earned := map[string][]float64{} // since the first epoch, at each point
	_, err := rows(dir, "curves.csv", 3, func(row []string) error {
		v, err := numbers(row[1:])
		if err != nil {
			return err
		}
		s := reward.Of(row[0])
		last, sum := 0., 0.
		if k := len(s.X); k > 0 {
			last, sum = s.X[k-1], earned[s.Name][k-1]
		}
		if !(v[0] > last) {
			return fmt.Errorf("%v is no epoch after %v", v[0], last)
		}
		s.Add(v[0], v[1])
		earned[s.Name] = append(earned[s.Name], sum+v[1]*(v[0]-last))
		return nil
	})
	if err != nil {
		return Section{}, err
	}
	regret := plot.New("regret", "Regret against Whittle", "epoch", "interest lost so far")
	regret.X.Log, regret.Y.Log = true, true
	names := policies(r)
	var whittle plot.Values // its epochs
	for i := range reward.Series {
		s := &reward.Series[i]
		s.Style = slices.Index(names, s.Name)
		if s.Name == "whittle" {
			whittle = s.X
		}
	}
	for _, s := range reward.Series {
		if s.Name == "whittle" || !slices.Equal(s.X, whittle) {
			continue
		}
		s.Y = nil
		for k, all := range earned["whittle"] {
			lost := all - earned[s.Name][k]
			if math.Abs(lost) < 1e-9*all { // rounding
				lost = 0
			}
			s.Y = append(s.Y, lost)
		}
		regret.Series = append(regret.Series, s)
	}
	focus(&reward)
	return Section{
		Title:   "Learning",
		Notes:   []string{"Each point covers the epochs since the one before; the figure is scaled to those after the first hundredth. Regret is what Whittle has earned in the same world less what the policy has; a line has a gap where that is not above 0."},
		Figures: []plot.Figure{reward, regret},
	}, nil
}

// mostRows is how many sources a figure of crawls has.
const mostRows = 60

// readCrawls draws the raster of the last epochs.
func readCrawls(dir string, _ *result.Report) (Section, error) {
	of := map[string][]float64{} // epochs of each source's crawls
	last := 0
	_, err := rows(dir, "crawls.csv", 2, func(row []string) error {
		n, err := strconv.Atoi(row[0])
		if err != nil || n < last {
			return fmt.Errorf("%q is no epoch from %d on", row[0], last)
		}
		last, of[row[1]] = n, append(of[row[1]], float64(n))
		return nil
	})
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { // 2 before 10
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
	names = names[:min(len(names), mostRows)]
	f := plot.New("crawls", "Crawls", "epoch", "source")
	f.Y.Names = names
	for i, name := range names {
		s := plot.Series{Kind: plot.Points}
		for _, n := range of[name] {
			s.Add(n, float64(i))
		}
		f.Series = append(f.Series, s)
	}
	return Section{
		Title:   "Crawls",
		Notes:   []string{"Each point is a crawl by what was learned, in the last epochs."},
		Figures: []plot.Figure{f},
	}, err
}

// readThresholds sets the learned thresholds beside the exact ones.
func readThresholds(dir string, _ *result.Report) (Section, error) {
	table := &result.Table{}
	head, err := rows(dir, "thresholds.csv", 0, func(row []string) error {
		table.Rows = append(table.Rows, row)
		return nil
	})
	table.Header = head
	f := plot.New("thresholds", "Thresholds", "exact inverse index, interest", "learned inverse index, interest")
	points := plot.Series{Kind: plot.Points}
	exact, learned := slices.Index(head, "exact inverse index"), slices.Index(head, "learned inverse index")
	for _, row := range table.Rows {
		if exact < 0 || learned < 0 {
			break
		}
		v, err := numbers([]string{row[exact], row[learned]})
		if err == nil && !math.IsNaN(v[0]) && !math.IsInf(v[0], 0) { // else "never"
			points.Add(v[0], v[1])
		}
	}
	f.Series = []plot.Series{points}
	wide := isWide(slices.Sorted(slices.Values(points.X)))
	f.X.Log, f.Y.Log = wide, wide
	addDiagonal(&f)
	return Section{
		Title:   "Thresholds",
		Notes:   []string{"The state from which a source is crawled at the learned price; on the dashed line learned and exact agree."},
		Figures: []plot.Figure{f},
		Table:   table,
	}, err
}
