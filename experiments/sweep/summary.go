package sweep

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"ephemera/experiments/stats"
)

// Summary is what a sweep says: summary.json holds it, summary.csv and
// summary.md are written from it.
type Summary struct {
	Name          string    `json:"name"`
	Question      string    `json:"question"`
	Answer        string    `json:"answer"`
	Configuration string    `json:"configuration"` // hash of cells and seeds
	Revisions     []string  `json:"revisions"`     // of the programs that ran it
	Seeds         []uint64  `json:"seeds"`
	Axes          []string  `json:"axes"`
	Figures       []Figure  `json:"figures"`
	Curves        []Figure  `json:"curves"`
	Show          []string  `json:"show"` // figures of the short tables
	Metric        string    `json:"metric"`
	Reference     string    `json:"reference"` // id of a cell
	Group         string    `json:"group,omitempty"`
	Cells         []Row     `json:"cells"`
	Groups        []Pool    `json:"groups,omitempty"`
	Profile       *Profiles `json:"profile,omitempty"`
	Runs          int       `json:"runs"`
	Missing       int       `json:"missing"`
	Gaps          []string  `json:"gaps,omitempty"`
	Failures      []string  `json:"failures,omitempty"`

	ctx    context.Context // ends what takes time; the summary is of no use then
	metric int             // column
	values [][]float64     // metric of each cell by seed
	there  [][]bool        // whether that run is there
	column [][]float64     // figures of the cell at hand, by seed
	have   []int           // seeds of the cell at hand
	batch  []batched       // cells that wait for their intervals
	boots  []*stats.Bootstrap
	group  []string // value of the group's key in each cell, "" for none
}

// batched is a cell whose rows are all there.
type batched struct {
	cell   int
	column [][]float64
}

// batchSize bounds the memory of rows that wait for their intervals.
const batchSize = 256

// parallel calls f for 0 to n−1 on all of the summary's bootstraps. The order
// does not matter: a bootstrap gives the same intervals whatever it did before.
func (s *Summary) parallel(n int, f func(b *stats.Bootstrap, i int)) {
	var (
		next atomic.Int64
		wait sync.WaitGroup
	)
	for _, b := range s.boots {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && s.ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				f(b, i)
			}
		})
	}
	wait.Wait()
}

// Row is one cell of a summary.
type Row struct {
	ID       string           `json:"id"`
	Settings map[string]any   `json:"settings"`              // the axes that the cell has
	Mean     []stats.Estimate `json:"mean"`                  // one per figure
	IQM      stats.Estimate   `json:"iqm"`                   // of the metric
	Diff     *stats.Estimate  `json:"diff,omitempty"`        // metric minus the reference's, same seeds
	Improve  *stats.Estimate  `json:"improvement,omitempty"` // P(better than the reference)
}

// Pool is the metric over all cells that share a value of the group's key.
type Pool struct {
	Value string         `json:"value"`
	Cells int            `json:"cells"`
	Mean  stats.Estimate `json:"mean"`
	IQM   stats.Estimate `json:"iqm"`
}

// Profiles are performance profiles of the metric.
type Profiles struct {
	Scores []float64   `json:"scores"`
	Lines  []ProfileOf `json:"lines"`
}

// ProfileOf is the share of runs above each score.
type ProfileOf struct {
	Name  string           `json:"name"`
	Share []stats.Estimate `json:"share"`
}

const profileLines = 12

// bootSeed seeds the intervals: a constant, so that equal records give equal
// files.
const bootSeed = 1

func newSummary(ctx context.Context, c *Config, r Runner, s *store, rep Report, workers int) *Summary {
	sum := &Summary{
		ctx: ctx, Name: c.Name, Question: c.Question, Configuration: c.Hash(), Revisions: s.revisions,
		Seeds: c.Seeds, Axes: c.Axes, Figures: r.Figures(), Curves: r.CurveFigures(), Show: c.Show,
		Metric: c.Metric, Reference: c.Cells[c.Reference].ID, Group: c.Group,
		Runs: rep.Total - rep.Missing, Missing: rep.Missing, Gaps: rep.Gaps, Failures: rep.Failures,
		Cells:  make([]Row, len(c.Cells)),
		values: make([][]float64, len(c.Cells)),
		there:  make([][]bool, len(c.Cells)),
	}
	for range workers {
		sum.boots = append(sum.boots, stats.New(bootSeed))
	}
	for i := range c.Cells {
		cell := &c.Cells[i]
		set := map[string]any{}
		for _, a := range c.Axes {
			if cell.Has(a) {
				set[a] = JSONValue(cell.Value(a))
			}
		}
		sum.Cells[i] = Row{ID: cell.ID, Settings: set}
		sum.group = append(sum.group, "")
		if c.Group != "" && cell.Has(c.Group) {
			sum.group[i] = FormatValue(cell.Value(c.Group))
		}
	}
	sum.metric = slices.Index(figureNames(sum.Figures), c.Metric)
	sum.column = make([][]float64, len(sum.Figures))
	return sum
}

// JSONValue returns a setting as JSON has it: text where a number is infinite.
func JSONValue(v any) any {
	if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		return FormatValue(v)
	}
	return v
}

// add takes the row of one run of the cell at hand.
func (s *Summary) add(k int, row []float64) {
	for j, v := range row {
		s.column[j] = append(s.column[j], v)
	}
	s.have = append(s.have, k)
}

// endCell closes the cell whose rows were added.
func (s *Summary) endCell(i int) {
	s.values[i], s.there[i] = make([]float64, len(s.Seeds)), make([]bool, len(s.Seeds))
	for n, k := range s.have {
		s.values[i][k], s.there[i][k] = s.column[s.metric][n], true
	}
	s.batch = append(s.batch, batched{i, s.column})
	s.column = make([][]float64, len(s.Figures))
	s.have = s.have[:0]
	if len(s.batch) == batchSize {
		s.flush()
	}
}

// flush makes the intervals of the cells that wait.
func (s *Summary) flush() {
	s.parallel(len(s.batch), func(b *stats.Bootstrap, n int) {
		x := s.batch[n]
		row := &s.Cells[x.cell]
		row.Mean = make([]stats.Estimate, len(s.Figures))
		for j, v := range x.column {
			row.Mean[j] = b.Mean(v)
		}
		row.IQM = b.IQM(x.column[s.metric])
	})
	s.batch = s.batch[:0]
}

// finish adds what needs all cells: comparisons, pools, profiles, the answer.
func (s *Summary) finish() {
	s.flush()
	if s.ctx.Err() != nil {
		return
	}
	ref := slices.IndexFunc(s.Cells, func(r Row) bool { return r.ID == s.Reference })
	less := s.Figures[s.metric].Less
	s.parallel(len(s.Cells), func(b *stats.Bootstrap, i int) {
		if i == ref || len(s.Cells) == 1 {
			return
		}
		x, y := s.common(i, ref)
		d := b.Paired(x, y)
		if less {
			x, y = y, x
		}
		p := b.Improvement(x, y)
		s.Cells[i].Diff, s.Cells[i].Improve = &d, &p
	})
	s.pools()
	s.profiles()
	s.Answer = s.answer()
}

// common returns the values of the seeds that both cells have.
func (s *Summary) common(i, j int) (a, b []float64) {
	for k := range s.Seeds {
		if s.there[i][k] && s.there[j][k] {
			a, b = append(a, s.values[i][k]), append(b, s.values[j][k])
		}
	}
	return a, b
}

// present returns the values of the runs that are there.
func (s *Summary) present(i int) []float64 {
	var out []float64
	for k, v := range s.values[i] {
		if s.there[i][k] {
			out = append(out, v)
		}
	}
	return out
}

// grouped returns the values of the group's key in the order of the cells, and
// the metric of the cells of each.
func (s *Summary) grouped() (names []string, tasks map[string][][]float64) {
	tasks = map[string][][]float64{}
	for i, name := range s.group {
		if name == "" {
			continue
		}
		if _, ok := tasks[name]; !ok {
			names = append(names, name)
		}
		if x := s.present(i); len(x) > 0 {
			tasks[name] = append(tasks[name], x)
		}
	}
	return names, tasks
}

func (s *Summary) pools() {
	if s.Group == "" {
		return
	}
	names, tasks := s.grouped()
	s.Groups = make([]Pool, len(names))
	s.parallel(len(names), func(b *stats.Bootstrap, i int) {
		x := tasks[names[i]]
		s.Groups[i] = Pool{names[i], len(x), b.StratifiedMean(x), b.StratifiedIQM(x)}
	})
}

func (s *Summary) profiles() {
	var names []string
	tasks := map[string][][]float64{}
	if s.Group != "" {
		names, tasks = s.grouped()
	} else {
		order := s.Ranking()
		if len(order) > profileLines {
			order = order[:profileLines]
		}
		slices.Sort(order) // the best ones, in the order of the cells
		for _, i := range order {
			names = append(names, s.Cells[i].ID)
			tasks[s.Cells[i].ID] = [][]float64{s.present(i)}
		}
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, n := range names {
		for _, x := range tasks[n] {
			for _, v := range x {
				if !math.IsNaN(v) && !math.IsInf(v, 0) {
					lo, hi = math.Min(lo, v), math.Max(hi, v)
				}
			}
		}
	}
	if !(lo < hi) {
		return
	}
	pad := (hi - lo) / 40
	p := &Profiles{}
	for k := range 61 {
		p.Scores = append(p.Scores, lo-pad+(hi-lo+2*pad)*float64(k)/60)
	}
	p.Lines = make([]ProfileOf, len(names))
	s.parallel(len(names), func(b *stats.Bootstrap, i int) {
		p.Lines[i] = ProfileOf{names[i], b.Profile(tasks[names[i]], p.Scores)}
	})
	s.Profile = p
}

// Column returns the position of a figure, −1 for none of that name.
func (s *Summary) Column(figure string) int {
	return slices.Index(figureNames(s.Figures), figure)
}

// Ranking returns the cells from the best mean of the metric to the worst;
// cells without one come last.
func (s *Summary) Ranking() []int {
	m := s.Column(s.Metric)
	sign := -1.0
	if s.Figures[m].Less {
		sign = 1
	}
	order := make([]int, len(s.Cells))
	for i := range order {
		order[i] = i
	}
	key := func(i int) float64 {
		v := sign * s.Cells[i].Mean[m].Value
		if math.IsNaN(v) {
			return math.Inf(1)
		}
		return v
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := key(i), key(j)
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	return order
}

// ReadSummary reads summary.json of a directory.
func ReadSummary(dir string) (*Summary, error) {
	path := filepath.Join(dir, "summary.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := ParseSummary(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// ParseSummary reads what summary.json holds. It returns an error, or a summary
// that is whole: every list is as long as others take it to be.
func ParseSummary(b []byte) (*Summary, error) {
	s := &Summary{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, err
	}
	if s.Column(s.Metric) < 0 {
		return nil, fmt.Errorf("metric is %q, which is none of its figures", s.Metric)
	}
	if len(s.Cells) == 0 {
		return nil, errors.New("there is no cell")
	}
	for _, name := range s.Show {
		if s.Column(name) < 0 {
			return nil, fmt.Errorf("shows %q, which is none of its figures", name)
		}
	}
	for _, c := range s.Cells {
		if len(c.Mean) != len(s.Figures) {
			return nil, fmt.Errorf("cell %q has %d figures of %d", c.ID, len(c.Mean), len(s.Figures))
		}
		if (c.Diff == nil) != (c.Improve == nil) {
			return nil, fmt.Errorf("cell %q has one of diff and improvement; allowed are both or none", c.ID)
		}
		for key, v := range c.Settings {
			switch v.(type) {
			case float64, string, bool:
			default:
				return nil, fmt.Errorf("cell %q has %v for %q; allowed is a number, a text or a truth value", c.ID, v, key)
			}
		}
	}
	if s.Profile != nil {
		for _, l := range s.Profile.Lines {
			if len(l.Share) != len(s.Profile.Scores) {
				return nil, fmt.Errorf("profile of %q has %d shares for %d scores", l.Name, len(l.Share), len(s.Profile.Scores))
			}
		}
	}
	return s, nil
}

func (s *Summary) write(dir string) error {
	err := replace(dir, "summary.json", func(w *bufio.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		e.SetEscapeHTML(false)
		return e.Encode(s)
	})
	if err == nil {
		err = replace(dir, "summary.csv", s.csv)
	}
	if err == nil {
		err = replace(dir, "summary.md", s.Markdown)
	}
	return err
}

// csv writes one row per cell and aggregate.
func (s *Summary) csv(to *bufio.Writer) error {
	w := csv.NewWriter(to)
	w.Write([]string{"cell", "figure", "unit", "aggregate", "n", "value", "lo", "hi", "warning"})
	num := func(v float64) string {
		if math.IsNaN(v) {
			return "" // there is none
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	put := func(cell string, f Figure, aggregate string, e stats.Estimate) {
		w.Write([]string{cell, f.Name, f.Unit, aggregate, strconv.Itoa(e.N), num(e.Value), num(e.Lo), num(e.Hi), e.Warning})
	}
	m := s.Figures[s.Column(s.Metric)]
	for _, c := range s.Cells {
		for j, e := range c.Mean {
			put(c.ID, s.Figures[j], "mean", e)
		}
		put(c.ID, m, "iqm", c.IQM)
		if c.Diff != nil {
			put(c.ID, m, "minus "+s.Reference, *c.Diff)
			put(c.ID, m, "better than "+s.Reference, *c.Improve)
		}
	}
	for _, g := range s.Groups {
		put(lastPart(s.Group)+"/"+g.Value, m, "pooled mean", g.Mean)
		put(lastPart(s.Group)+"/"+g.Value, m, "pooled iqm", g.IQM)
	}
	w.Flush()
	return w.Error()
}

// Warnings returns each warning of the summary once, with the figures and cells
// that it is about unless it is about all.
func (s *Summary) Warnings() []string {
	var order []string
	of := map[string][]string{}
	note := func(cell, figure string, e stats.Estimate) {
		if e.Warning == "" {
			return
		}
		if of[e.Warning] == nil {
			order = append(order, e.Warning)
		}
		of[e.Warning] = append(of[e.Warning], figure+" of "+cell)
	}
	for _, c := range s.Cells {
		for _, f := range s.Show {
			note(c.ID, f, c.Mean[s.Column(f)])
		}
		if !slices.Contains(s.Show, s.Metric) {
			note(c.ID, s.Metric, c.IQM)
		}
	}
	figures := len(s.Show)
	if !slices.Contains(s.Show, s.Metric) {
		figures++
	}
	for i, w := range order {
		if len(of[w]) < figures*len(s.Cells) {
			order[i] += ": " + some(of[w])
		}
	}
	return order
}

// Head and Body are the short table: one row per cell, the shown figures with
// their intervals, and the comparison with the reference.
func (s *Summary) Head() []string {
	head := []string{"cell", "n"}
	for _, name := range s.Show {
		if u := s.Figures[s.Column(name)].Unit; u != "" {
			name += ", " + u
		}
		head = append(head, name)
	}
	head = append(head, "IQM of "+s.Metric)
	if len(s.Cells) > 1 {
		head = append(head, s.Metric+" − "+s.Reference, "P(better)")
	}
	return head
}

// Body returns row i of the short table.
func (s *Summary) Body(i int) []string {
	c := s.Cells[i]
	row := []string{c.ID, strconv.Itoa(c.IQM.N)}
	for _, name := range s.Show {
		row = append(row, c.Mean[s.Column(name)].String())
	}
	row = append(row, c.IQM.String())
	if len(s.Cells) > 1 {
		if c.Diff == nil {
			row = append(row, "reference", "")
		} else {
			row = append(row, c.Diff.String(), c.Improve.String())
		}
	}
	return row
}

// Markdown writes the summary for readers.
func (s *Summary) Markdown(w *bufio.Writer) error {
	fmt.Fprintf(w, "# %s\n\n%s\n\n**%s**\n\n", s.Name, s.Question, s.Answer)
	fmt.Fprintf(w, "%d runs: %d cells, %d seeds. Means over seeds with 95 %% bootstrap intervals; differences pair the runs of one seed. Configuration %s.\n", s.Runs, len(s.Cells), len(s.Seeds), s.Configuration)
	for _, r := range s.Revisions {
		fmt.Fprintf(w, "Program %s.\n", r)
	}
	for _, warning := range s.Warnings() {
		fmt.Fprintf(w, "\nWarning: %s.\n", warning)
	}
	if s.Missing > 0 {
		fmt.Fprintf(w, "\nWarning: %d runs are missing.\n\n", s.Missing)
		for _, g := range s.Gaps {
			fmt.Fprintf(w, "- %s\n", g)
		}
		for _, f := range s.Failures {
			fmt.Fprintf(w, "- failed: %s\n", f)
		}
	}
	w.WriteByte('\n')
	row := func(cells []string) {
		for _, c := range cells {
			fmt.Fprintf(w, "| %s ", strings.ReplaceAll(c, "|", `\|`))
		}
		w.WriteString("|\n")
	}
	head := s.Head()
	row(head)
	w.WriteString("|---|" + strings.Repeat("---:|", len(head)-1) + "\n")
	for i := range s.Cells {
		row(s.Body(i))
	}
	if len(s.Groups) > 0 {
		fmt.Fprintf(w, "\n%s, pooled by %s (stratified over cells):\n\n", s.Metric, s.Group)
		row([]string{lastPart(s.Group), "cells", "mean", "IQM"})
		w.WriteString("|---|---:|---:|---:|\n")
		for _, g := range s.Groups {
			row([]string{g.Value, strconv.Itoa(g.Cells), g.Mean.String(), g.IQM.String()})
		}
	}
	return nil
}
