package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"ephemera/experiments"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
)

// commandFile has the command that repeats what train or bench did.
const commandFile = "command.txt"

// parseResult reads result.json.
func parseResult(dir fs.FS) (*result.Report, error) {
	text, err := readFile(dir, "result.json")
	if err != nil {
		return nil, err
	}
	r := &result.Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("result.json: %w", err)
	}
	if len(r.Results) == 0 {
		return nil, errors.New("result.json: there is no result")
	}
	clean(reflect.ValueOf(r))
	return r, nil
}

// readResult reads what train or bench kept.
func readResult(dir fs.FS, at string) (*Result, error) {
	r, err := parseResult(dir)
	if err != nil {
		return nil, err
	}
	t := &trained{Report: r, styles: styles{}}
	for _, row := range r.Results {
		t.styles.of(row.Policy)
	}
	p := &Page{
		Title:  fmt.Sprintf("%s, budget %v", r.Instance, r.Budget),
		Answer: experiments.Sentence(r),
		Notes:  []string{fmt.Sprintf("Knowledge %s, %s of %s.", r.Knowledge, result.Count(r.Seeds, "seed"), result.Count(r.Steps, "epoch"))},
	}
	for name, to := range map[string]*string{commandFile: &p.Command, "config.toml": &p.Config} {
		text, err := readFile(dir, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		*to = result.Printable(strings.TrimSpace(string(text)))
	}
	switch {
	case p.Config != "": // of train
		p.Command = "go run ./cmd/train -config " + at + "/config.toml"
	case p.Command != "":
		p.Command += " -out " + at
	}
	p.Sections = append(p.Sections, t.policies())
	for _, read := range []func(fs.FS) (Section, error){t.curves, t.crawls, t.thresholds} {
		s, err := read(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // bench has none
		}
		if err != nil {
			return nil, err
		}
		p.Sections = append(p.Sections, s)
	}
	return &Result{p, []string{"policies", "difference", "learning", "regret", "crawls", "thresholds"}, func(w io.Writer) error { return r.Write(w, result.Text) }}, nil
}

// trained is what train or bench kept.
type trained struct {
	*result.Report
	styles styles // of policies
}

// styles are the styles of names, in the order in which they came.
type styles map[string]int

func (s styles) of(name string) int {
	k, ok := s[name]
	if !ok {
		k = len(s)
		s[name] = k
	}
	return k
}

// or returns a figure that may be missing, as NaN.
func or(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// policies are the rewards and, where runs were compared, their differences to
// Whittle's.
func (t *trained) policies() Section {
	var names []string
	for _, r := range t.Results {
		names = append(names, r.Policy)
	}
	dots := func(name, title string, of func(r *result.Row) (v float64, lo, hi *float64)) plot.Figure {
		return Dots(plot.New(name, title, "interest per epoch", ""), names, func(k int) (value, lo, hi float64, style int) {
			r := &t.Results[k]
			v, l, h := of(r)
			return v, or(l), or(h), t.styles.of(r.Policy)
		})
	}
	reward := dots("policies", "Reward", func(r *result.Row) (float64, *float64, *float64) { return r.Reward, r.Lo, r.Hi })
	if t.Bound != nil {
		reward.Series = append(reward.Series, plot.Series{Name: "bound that no policy exceeds", Style: plot.Plain, X: plot.Values{*t.Bound, *t.Bound}, Y: plot.Values{reward.Y.Lo, reward.Y.Hi}})
	}
	diff := dots("difference", "Reward less that of Whittle under the same seeds", func(r *result.Row) (float64, *float64, *float64) { return or(r.Diff), r.DiffLo, r.DiffHi })
	s := Section{Title: "Policies", Table: t.Table(result.Text), Figures: []plot.Figure{reward, diff}}
	if t.Seeds > 1 {
		s.Notes = []string{"Means with 95 % intervals."}
	}
	return s
}

// curves are the learning curves and the regret.
func (t *trained) curves(dir fs.FS) (Section, error) {
	type curve struct{ epochs, reward, total []float64 }
	curves := map[string]*curve{}
	var order []string
	_, err := rows(dir, "curves.csv", 3, func(row []string) error {
		name := result.Printable(row[0])
		at, err := strconv.Atoi(row[1])
		v, err2 := strconv.ParseFloat(row[2], 64)
		c := curves[name]
		if c == nil {
			c = &curve{}
			curves[name], order = c, append(order, name)
		}
		last, total := 0., 0.
		if k := len(c.epochs); k > 0 {
			last, total = c.epochs[k-1], c.total[k-1]
		}
		if err := errors.Join(err, err2); err != nil || !(float64(at) > last) {
			return fmt.Errorf("%q, %q; needed are an epoch after %v and a number", row[1], row[2], last)
		}
		c.epochs, c.reward, c.total = append(c.epochs, float64(at)), append(c.reward, v), append(c.total, total+v*(float64(at)-last))
		return nil
	})
	if err != nil {
		return Section{}, err
	}
	reward := plot.New("learning", "Reward over time", "epoch", "interest per epoch")
	reward.X.Log, reward.From = true, float64(t.Steps)/1000
	regret := plot.New("regret", "Regret against Whittle", "epoch", "interest lost so far")
	regret.X.Log, regret.Y.Log = true, true
	whittle := curves["whittle"]
	for _, name := range order {
		c := curves[name]
		s := plot.Series{Name: name, Style: t.styles.of(name), X: c.epochs}
		s.Y = c.reward
		reward.Series = append(reward.Series, s)
		if whittle == nil || c == whittle || !slices.Equal(c.epochs, whittle.epochs) {
			continue
		}
		s.Y = nil
		for k, all := range whittle.total {
			lost := all - c.total[k]
			if math.Abs(lost) < 1e-9*all { // rounding
				lost = 0
			}
			s.Y = append(s.Y, lost)
		}
		regret.Series = append(regret.Series, s)
	}
	return Section{
		Title:   "Learning",
		Notes:   []string{"Each point covers the epochs since the one before; where early epochs would crush the rest, they are left out. Regret is what Whittle has earned in the same world less what the policy has; a line has a gap where that is not above 0."},
		Figures: []plot.Figure{reward, regret},
	}, nil
}

// crawls is the raster of the last epochs.
func (t *trained) crawls(dir fs.FS) (Section, error) {
	at := map[string][]float64{} // epochs of each source's crawls
	last := 0
	_, err := rows(dir, "crawls.csv", 2, func(row []string) error {
		n, err := strconv.Atoi(row[0])
		if err != nil || n < last {
			return fmt.Errorf("%q is no epoch from %d on", row[0], last)
		}
		last = n
		name := result.Printable(row[1])
		at[name] = append(at[name], float64(n))
		return nil
	})
	if err != nil {
		return Section{}, err
	}
	names := slices.SortedFunc(maps.Keys(at), func(a, b string) int { // 2 before 10
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
	var crawls [][]float64
	for _, name := range names {
		crawls = append(crawls, at[name])
	}
	return Section{
		Title:   "Crawls",
		Notes:   []string{"Each stroke is a crawl by what was learned, in the last epochs."},
		Figures: []plot.Figure{Raster(names, crawls, nil)},
	}, nil
}

// thresholds sets the learned thresholds beside the exact ones.
func (t *trained) thresholds(dir fs.FS) (Section, error) {
	tab := &result.Table{}
	head, err := rows(dir, "thresholds.csv", 0, func(row []string) error {
		tab.Rows = append(tab.Rows, row)
		return nil
	})
	if err != nil {
		return Section{}, err
	}
	tab.Header = head
	clean(reflect.ValueOf(tab))
	f := plot.New("thresholds", "Thresholds", "exact inverse index, interest", "learned inverse index, interest")
	x, y := slices.Index(head, "exact inverse index"), slices.Index(head, "learned inverse index")
	points := plot.Series{Kind: plot.Points}
	low, high := math.Inf(1), 0.
	for _, row := range tab.Rows {
		if x < 0 || y < 0 {
			break
		}
		exact, err := strconv.ParseFloat(row[x], 64)
		learned, err2 := strconv.ParseFloat(row[y], 64)
		if errors.Join(err, err2) == nil && !math.IsNaN(exact) && !math.IsInf(exact, 0) {
			points.X, points.Y = append(points.X, exact), append(points.Y, learned)
			low, high = math.Min(low, exact), math.Max(high, exact)
		}
	}
	f.X.Log, f.Y.Log = low > 0 && high > 20*low, low > 0 && high > 20*low
	f.Series = []plot.Series{points}
	diagonal(&f)
	return Section{
		Title:   "Thresholds",
		Notes:   []string{"The state from which a source is crawled at the learned price; on the dashed line learned and exact agree."},
		Figures: []plot.Figure{f},
		Table:   tab,
	}, nil
}
