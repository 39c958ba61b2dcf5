package report

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
	"ephemera/experiments/sweep"
	"ephemera/internal/files"
)

// toy is a run of which all is known. The policy salmut learns nothing, and lspe
// fails.
func toy(r experiments.Run) (*experiments.Record, error) {
	if r.Algorithm() == "lspe" {
		return nil, errors.New("it diverged")
	}
	kappa := r.Learner["kappa"].(float64)
	gamma, _ := r.Learner["gamma"].(float64)
	level := 10*kappa + gamma + stream.New(r.Seed, stream.Test).Float64()
	rec := &experiments.Record{Run: r}
	rec.Learning.Outcome = result.Outcome{Reward: level, Crawls: 1 / kappa}
	rec.Learned = rec.Learning
	if r.Algorithm() == "salmut" {
		return rec, nil
	}
	for n := 1; n <= 1000; n *= 10 {
		share := level * (1 - 1/float64(n+1)) / 100 // Whittle earns 100
		rec.Curve = append(rec.Curve, experiments.CurvePoint{
			Epoch: n, Reward: 100 * share, Crawls: float64(n), Whittle: 100, OfWhittle: result.RatioOf(share),
		})
	}
	for i := range 3 {
		rec.Pairs = append(rec.Pairs, experiments.Pair{
			Source: fmt.Sprint(i + 1), Learned: level + float64(i), Exact: result.RatioOf(5 * float64(i)),
		})
	}
	return rec, nil
}

// sweepIn writes the results of a small sweep and returns its directory.
func sweepIn(t testing.TB, text string) string {
	t.Helper()
	c, err := sweep.Load(context.Background(), "small.toml", []byte(`question = "Does </script> <b>it</b> work?"
metric = "learning_reward"
show = ["learning_reward", "learning_crawls"]
`+text), nil)
	if err != nil {
		t.Fatal(err)
	}
	done := &experiments.Performed[experiments.Record]{}
	for _, r := range c.Jobs() {
		rec, err := toy(r.Run)
		done.Records, done.Errors = append(done.Records, rec), append(done.Errors, err)
	}
	dir := t.TempDir()
	c.Command = "go run ./cmd/sweep small"
	rep, err := sweep.Summarize(c, done, experiments.Batch{Dir: dir, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, rec := range done.Records {
		if rec == nil {
			continue
		}
		text, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		cell := rep.Cells[i/c.Seeds]
		put(t, string(text), dir, "runs", fmt.Sprintf("%s-%d.json", cell.Hash, rec.Run.Seed))
	}
	return dir
}

const small = "seeds = 6\nlearner.algorithm = \"paper\"\nlearner.kappa = [1, 2, 4]\nlearner.gamma = [0.25, 0.5]\n"

// load reads the sweep in a directory.
func load(t testing.TB, dir string) (*sweep.Summary, *Page) {
	t.Helper()
	s, err := files.ReadJSON[sweep.Summary](filepath.Join(dir, sweep.SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Load(context.Background(), dir, "out", "go run ./cmd/report")
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// get returns what is in a file.
func get(t testing.TB, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// put makes a file, and the directory that it is in.
func put(t testing.TB, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// write makes the report of a directory, and returns its files.
func write(t testing.TB, dir string) map[string]string {
	t.Helper()
	r, err := Load(context.Background(), dir, dir, "go run ./cmd/report")
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := r.Write(filepath.Join(dir, "report.html"), filepath.Join(dir, "plots"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"report.html": get(t, dir, "report.html")}
	plots, _ := filepath.Glob(filepath.Join(dir, "plots", "*"))
	for _, path := range plots {
		all["plots/"+filepath.Base(path)] = get(t, path)
	}
	if len(plots) != 3*drawn { // as SVG, PNG and PDF
		t.Errorf("%d files of plots are there; %d were drawn", len(plots), drawn)
	}
	return all
}

// reward is the mean reward of a cell.
func reward(s *sweep.Summary, cell int) float64 {
	return s.Cells[cell].Mean[s.Column("learning_reward")].Value
}

// figure returns a figure of a page.
func figure(t testing.TB, p *Page, name string) plot.Figure {
	t.Helper()
	for _, s := range p.Sections {
		for _, f := range s.Figures {
			if f.Name == name {
				return f
			}
		}
	}
	t.Fatalf("the page has no figure %s", name)
	return plot.Figure{}
}

// A summary.json may be one of another program, or cut.
func TestWrongSummary(t *testing.T) {
	whole := get(t, sweepIn(t, small), sweep.SummaryFile)
	for _, text := range []string{
		"null", "{}", `{"cells": [{}]}`,
		strings.Replace(whole, `"show": [`, `"show": ["none", `, 1),
		strings.Replace(whole, `"metric": "learning_reward"`, `"metric": "none"`, 1),
		strings.Replace(whole, `"mean": [`, `"mean": [{}, `, 1),
	} {
		dir := t.TempDir()
		put(t, text, dir, sweep.SummaryFile)
		_, err := Load(t.Context(), dir, "out", "go run ./cmd/report")
		if err == nil || !strings.Contains(err.Error(), dir+": summary.json is not that of a sweep") {
			t.Errorf("with %.40q: %v", text, err)
		}
	}
}

func TestLoad(t *testing.T) {
	s, p := load(t, sweepIn(t, small))
	if p.Command != "go run ./cmd/sweep small -out out\ngo run ./cmd/report out" {
		t.Errorf("command %q", p.Command)
	}
	curves := figure(t, p, "learning")
	if len(curves.Series) != 6 {
		t.Fatalf("%d curves", len(curves.Series))
	}
	for i, c := range curves.Series {
		if c.Name != s.Cells[i].Name || !slices.Equal(c.X, plot.Values{1, 10, 100, 1000}) || c.Style != i {
			t.Errorf("curve %d is of %s at %v, style %d", i, c.Name, c.X, c.Style)
		}
		// The last point of a curve is the level up to 1/1001.
		want := reward(s, i) * (1 - 1./1001) / 100
		if math.Abs(c.Y[3]-want) > 1e-9 || !(c.Lo[3] < c.Y[3] && c.Y[3] < c.Hi[3]) {
			t.Errorf("%s ends at %v, %v to %v; want %v", c.Name, c.Y[3], c.Lo[3], c.Hi[3], want)
		}
	}
	for i, c := range figure(t, p, "regret").Series {
		// Whittle earns 100 in each epoch.
		lost, last := 0., 0.
		for n := 1.; n <= 1000; n *= 10 {
			lost += (100 - reward(s, i)*(1-1/(n+1))) * (n - last)
			last = n
		}
		if math.Abs(c.Y[3]-lost) > 1e-6 {
			t.Errorf("regret of %s is %v; want %v", c.Name, c.Y[3], lost)
		}
	}
	along := figure(t, p, "along-learning_reward")
	l := along.Series[1]
	if along.X.Label != "κ" || len(along.Series) != 2 || l.Name != "γ 0.5" ||
		!slices.Equal(l.X, plot.Values{1, 2, 4}) || l.Y[2] != reward(s, 5) {
		t.Errorf("along %s: %+v", along.X.Label, along.Series)
	}
}

// The table of cells has its figures in words, and says once of how many seeds their means are.
func TestCellsInWords(t *testing.T) {
	for _, tt := range []struct {
		name, text, note string
	}{
		{"with intervals", small, "Means over 6 seeds in each cell, with 95 % intervals"},
		{
			"too few seeds", strings.Replace(small, "seeds = 6", "seeds = 3", 1),
			"Means over 3 seeds in each cell, too few",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := load(t, sweepIn(t, tt.text))
			table := p.Sections[0].Table
			want := []string{
				"cell", "interest per epoch, while learning", "crawls per epoch, while learning",
				"interest per epoch, while learning, middle half of the seeds",
				"interest per epoch, while learning, less that of " + s.Reference,
			}
			if !slices.Equal(table.Header, want) {
				t.Errorf("headings %q; want %q", table.Header, want)
			}
			if text := fmt.Sprint(table.Rows); strings.Contains(text, "n =") {
				t.Errorf("cells repeat how many seeds they have: %s", text)
			}
			if notes := p.Sections[0].Notes; len(notes) != 1 || !strings.HasPrefix(notes[0], tt.note) {
				t.Errorf("notes %q; want one that begins with %q", notes, tt.note)
			}
		})
	}
	dir := sweepIn(t, small)
	s, _ := load(t, dir)
	s.Cells[1].IQM.N = 5
	if head := s.Worded().Header; head[1] != "n" || !strings.Contains(s.Explained(), "n is how many seeds") {
		t.Errorf("a run is missing, and the headings are %q: %s", head, s.Explained())
	}
}

func TestWrite(t *testing.T) {
	dir := sweepIn(t, small)
	first := write(t, dir)
	for name, text := range first {
		if filepath.Ext(name) != ".svg" {
			continue
		}
		d := xml.NewDecoder(strings.NewReader(text))
		var err error
		for err == nil {
			_, err = d.Token()
		}
		if err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, want := range []string{
		"report.html", "plots/along-learning_reward.svg", "plots/learning.svg", "plots/learning-crawls.svg",
		"plots/regret.svg", "plots/profile.svg",
	} {
		if first[want] == "" {
			t.Errorf("%s was not written", want)
		}
	}
	for name, text := range write(t, dir) {
		if first[name] != text {
			t.Errorf("%s differs from run to run", name)
		}
	}
	html := first["report.html"]
	for _, want := range []string{
		"kappa/1/gamma/0.25",
		"go run ./cmd/sweep small -out " + dir + "\ngo run ./cmd/report " + dir,
		"Does &lt;/script&gt; &lt;b&gt;it&lt;/b&gt; work?",
		"prefers-color-scheme: dark",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("report.html lacks %q", want)
		}
	}
	if strings.Contains(html, "<b>it</b>") {
		t.Error("text of the configuration became markup")
	}
	// Nothing is loaded: no address in an attribute or style.
	outside := regexp.MustCompile(`(?i)(src|href|action)\s*=\s*["']?(https?:)?//|url\(|@import`)
	if m := outside.FindString(html); m != "" {
		t.Errorf("report.html refers to the outside: %q", m)
	}
}

// A name of an instance does not turn the sentences around in which it stands.
func TestOddNames(t *testing.T) {
	const odd = "abc\u202exyz"
	table := &result.Table{Header: []string{"policy"}, Rows: [][]string{{"whittle"}}}
	p := &Page{
		Title: odd, Question: odd, Answer: odd, Notes: []string{odd}, Warnings: []string{odd},
		Command: "report", Footnotes: []string{odd},
		Sections: []Section{{Title: odd, Notes: []string{odd}, Table: table}},
	}
	html, err := p.HTML()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(html), `abc\u202exyz`); got != 9 || strings.Contains(string(html), "\u202e") {
		t.Errorf("the name is written out at %d places, want 9", got)
	}
}
