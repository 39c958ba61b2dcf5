package report

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/papers"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
)

// kept returns a file of testdata.
func kept(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// keep writes what train keeps: results, records of the learner, of Whittle and of a run
// of an earlier call, and which are those of the last one.
func keep(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	put(t, kept(t, "result.json"), dir, "result.json")
	put(t, "go run ./cmd/train\n", dir, "command.txt")
	put(t, `{"learned": ["0"], "whittle": ["1"]}`, dir, "runs.json")
	for k, name := range []string{"lspe", "whittle", "lspe"} {
		r := experiments.NewRun()
		if err := r.Set(experiments.AlgorithmKey, name); err != nil {
			t.Fatal(err)
		}
		r.Seed = 1
		rec := experiments.Record{Run: r}
		rec.Learned.Epochs, rec.Learning.Over = 4, float64(1-min(k, 1))
		share := 1 - float64(1-k)/4
		for n := 1; n <= 4; n *= 4 {
			rec.Curve = append(rec.Curve, experiments.CurvePoint{
				Epoch: n, Reward: 2 * share, Crawls: 1, Whittle: 2, OfWhittle: result.RatioOf(share),
			})
		}
		if k == 0 {
			rec.Pairs = []experiments.Pair{{Source: "1", Learned: 300, Exact: result.RatioOf(270)}}
		}
		text, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		put(t, string(text), dir, "runs", fmt.Sprintf("%d.json", k))
		if k == 0 {
			e := new(experiments.Engine)
			job, err := e.Resolve(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			hash, err := e.Hash(job)
			if err != nil {
				t.Fatal(err)
			}
			put(t, string(text), dir, "runs", hash+"-1.json")
		}
	}
	return dir
}

// Where the instance of a training is gone, or another, the page has all but what is drawn of it.
func TestInstanceGone(t *testing.T) {
	dir := keep(t)
	whole, err := Load(t.Context(), dir, "out", "go run ./cmd/report")
	if err != nil {
		t.Fatal(err)
	}
	run, other := get(t, dir, "runs", "0.json"), filepath.Join(t.TempDir(), "other.toml")
	put(t, "[[source]]\nname = \"a\"\nrate = 1\ndecay = 1\ninterest = 1\n", other)
	for _, tt := range []struct{ what, before, now string }{
		{"no file", `"instance":{`, `"instance":{"name":"gone.toml",`},
		{"another file", `"instance":{`, fmt.Sprintf(`"instance":{"name":%q,`, other)},
		{"a recording that came through a pipe", `"world":{`, `"world":{"trace":"/dev/null",`},
	} {
		put(t, strings.Replace(run, tt.before, tt.now, 1), dir, "runs", "0.json")
		p, err := Load(t.Context(), dir, "out", "go run ./cmd/report")
		if err != nil {
			t.Fatalf("%s: %v", tt.what, err)
		}
		warned := strings.Join(p.Warnings, "\n")
		if len(p.Sections) != len(whole.Sections)-3 || !strings.Contains(warned, "is not drawn: ") {
			t.Errorf("%s: %d sections of %d, warnings %q", tt.what, len(p.Sections), len(whole.Sections), warned)
		}
	}
}

func TestResult(t *testing.T) {
	dir := keep(t)
	p, err := Load(context.Background(), dir, "out", "go run ./cmd/report")
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(p.Notes, "\n")
	if p.Command != "go run ./cmd/train -out out\ngo run ./cmd/report out" ||
		!strings.Contains(notes, "learner lspe") || !strings.Contains(notes, "rows marked *") {
		t.Errorf("command %q, notes\n%s", p.Command, notes)
	}
	// The best stands on top; what breaks the budget is marked.
	dots := figure(t, p, "policies")
	if dots.Y.Names[2] != "learning *" || dots.Series[0].Y[0] != 2 || dots.Series[0].Lo[0] != 1 ||
		!math.IsNaN(dots.Series[1].Lo[0]) {
		t.Errorf("dots %+v", dots)
	}
	// Records of an earlier call are left out.
	learning := figure(t, p, "learning").Series
	if len(learning) != 2 || learning[0].Name != "lspe *" || learning[0].Style != 1 ||
		!near(learning[0].Y, .75, .75) || learning[1].Style != 2 {
		t.Errorf("learning %+v", learning)
	}
	// Regret adds up: 2 − 1.5 in each epoch.
	if regret := figure(t, p, "regret").Series[0]; !near(regret.Y, .5, 2) {
		t.Errorf("regret %+v", regret)
	}
	if plots := len(write(t, dir)) - 1; plots != 3*7 {
		t.Errorf("%d plots", plots)
	}
}

// The learner of -algorithm and one that -policies names have a curve each.
func TestTwoLearners(t *testing.T) {
	dir := keep(t)
	for _, other := range []string{"paper", "lspe"} {
		text := `{"algorithm": "NAME+lspe", "seeds": 1, "results": [{"policy": "NAME/learned"}, {"policy": "learned"}]}`
		put(t, strings.ReplaceAll(text, "NAME", other), dir, "result.json")
		put(t, `{"learned": ["0"], "`+other+`": ["2"]}`, dir, "runs.json")
		p, err := Load(t.Context(), dir, "out", "go run ./cmd/report")
		if err != nil {
			t.Fatal(err)
		}
		curves := figure(t, p, "learning").Series
		if len(curves) != 2 || curves[0].Name != other || strings.TrimSuffix(curves[1].Name, " *") == other {
			t.Errorf("next to %s: %+v", other, curves)
		}
	}
}

func near(got plot.Values, want ...float64) bool {
	if len(got) != len(want) {
		return false
	}
	for k := range got {
		if math.Abs(got[k]-want[k]) > 1e-9 {
			return false
		}
	}
	return true
}

// A file that is wrong is named.
func TestWrongResults(t *testing.T) {
	for _, tt := range []struct{ file, text, named string }{
		{"result.json", "{", "result.json"},
		{"runs.json", `{"learned": ["2", "3"]}`, "3.json"},
		{"runs.json", `{}`, "runs.json"},
		{"runs/0.json", `{"curve": [NaN]}`, "runs/0.json"},
	} {
		t.Run(tt.file+" "+tt.text, func(t *testing.T) {
			dir := keep(t)
			put(t, tt.text, dir, tt.file)
			_, err := Load(context.Background(), dir, "out", "go run ./cmd/report")
			if err == nil || !strings.Contains(err.Error(), tt.named) {
				t.Errorf("with %q: %v; want an error that names %s", tt.text, err, tt.named)
			}
		})
	}
}

// What a training shows follows from the thresholds of its record.
func TestTraining(t *testing.T) {
	in := env.Paper(1)
	var p *Page
	for _, in := range []env.Instance{in.WithObjective(env.Delay, time.Hour), in} {
		first := in.Sources[0]
		rec := &experiments.Record{Pairs: []experiments.Pair{{Source: first.Name, Learned: first.MeanState(2)}}}
		p = &Page{Sections: drawTraining(in, rec)}
		of := figure(t, p, "index-by-age")
		if point := of.Series[len(of.Series)-1]; !near(point.X, 2) || !near(point.Y, index.WhittleAtAge(first, 2)) {
			t.Errorf("%s: threshold %+v", in.ID, point)
		}
	}
	// The price is the slope of the optimum.
	most, next := figure(t, p, "bound").Series[0], in
	for k := range len(most.X) - 1 {
		slope := (most.Y[k+1] - most.Y[k]) / (most.X[k+1] - most.X[k])
		in.Budget, next.Budget = most.X[k], most.X[k+1]
		most, least := index.Relax(in).Price, index.Relax(next).Price
		if slope > most*(1+1e-9) || slope < least*(1-1e-9) {
			t.Errorf("from a budget of %v on the optimum rises by %v per budget unit; the price falls from %v to %v",
				in.Budget, slope, most, least)
		}
	}
}

// What compare of the Python package saved has a page too, with its curves.
func TestSaved(t *testing.T) {
	dir := t.TempDir()
	put(t, kept(t, "result.json"), dir, "result.json")
	put(t, kept(t, "curves.csv"), dir, "curves.csv")
	p, err := Load(context.Background(), dir, "out", "go run ./cmd/report")
	if err != nil {
		t.Fatal(err)
	}
	curve := figure(t, p, "learning").Series
	if len(curve) != 2 || !near(curve[0].Y, .55, .75) || curve[0].Name != "learning *" {
		t.Errorf("learning %+v", curve)
	}
	if plots := len(write(t, dir)) - 1; plots < 4 {
		t.Errorf("%d plots", plots)
	}
	put(t, "policy,instance,seed,epoch,reward,crawls\nlearning,paper,1,one,1,1\n", dir, "curves.csv")
	_, err = Load(context.Background(), dir, "out", "go run ./cmd/report")
	if err == nil || !strings.Contains(err.Error(), "curves.csv: line 2") {
		t.Errorf("an epoch that is no number: %v", err)
	}
}

// The reproduction of the papers has a page of its table, pictures and reasons.
func TestPapers(t *testing.T) {
	dir := t.TempDir()
	few := papers.Options{Seeds: 1, Seed: 1, Steps: 50, Batch: experiments.Batch{Workers: 2}}
	r, err := papers.Run(context.Background(), few)
	if err != nil {
		t.Fatal(err)
	}
	if err := result.Put(dir, map[string]result.Printed{papers.ReportFile: r}); err != nil {
		t.Fatal(err)
	}
	put(t, "go run ./cmd/bench -preset papers\n", dir, "command.txt")
	p, err := Load(context.Background(), dir, "out", "go run ./cmd/report")
	if err != nil {
		t.Fatal(err)
	}
	const command = "go run ./cmd/bench -preset papers -out out"
	rows := len(p.Sections[0].Table.Rows)
	if rows != len(r.Rows) || rows < 10 || !strings.HasPrefix(p.Command, command) {
		t.Errorf("%d rows of %d, command %q", rows, len(r.Rows), p.Command)
	}
	if plots := len(write(t, dir)) - 1; plots != 3*4 {
		t.Errorf("%d plots; want the figures 1 to 4 of TCNS", plots)
	}
}
