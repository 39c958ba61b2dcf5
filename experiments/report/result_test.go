package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ephemera/experiments/plot"
)

// kept is what train keeps, in small.
var kept = map[string]string{
	"result.json": `{"instance": "paper", "algorithm": "lspe", "knowledge": "model", "budget": 1, "steps": 4, "seeds": 1, "bound": 3, "results": [
		{"policy": "learning", "reward": 1.5, "lo": 1, "hi": 2, "crawls": 1, "of_whittle": 0.75, "of_bound": 0.5, "diff": -0.5, "diff_lo": -0.6, "diff_hi": -0.4},
		{"policy": "learned", "reward": 2.5, "lo": null, "hi": null, "crawls": 1, "of_whittle": 1.25, "of_bound": null},
		{"policy": "whittle", "reward": 2, "lo": null, "hi": null, "crawls": 1, "of_whittle": 1, "of_bound": null, "diff": 0}]}`,
	"config.toml":    "algorithm = \"lspe\"\n",
	"curves.csv":     "policy,epoch,reward\nlearning,1,1\nlearning,4,1.6666666666666667\nlearned,1,2\nlearned,4,3\nwhittle,1,2\nwhittle,4,2\n",
	"crawls.csv":     "epoch,source\n2,a\n3,b\n3,a\n",
	"thresholds.csv": "source,learned age,exact age,learned inverse index,exact inverse index,gain u,ceiling u*\na,2,2,10,11,5,20\nb,never,never,never,never,1,2\nc,3,4,30,44,5,60\n",
}

// keep writes what train keeps, with one file changed.
func keep(t *testing.T, name, text string) (dir string) {
	dir = t.TempDir()
	for file, content := range kept {
		if file == name {
			content = text
		}
		put(t, content, dir, file)
	}
	return dir
}

func TestResult(t *testing.T) {
	dir := keep(t, "", "")
	p, err := Load(dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	// The best stands on top; what has one name has one style.
	dots := figure(t, p, "policies")
	if dots.Y.Names[2] != "learning" || dots.Series[0].Lo[0] != 1 || !math.IsNaN(dots.Series[1].Lo[0]) {
		t.Errorf("dots %+v", dots)
	}
	learning := figure(t, p, "learning")
	for k, s := range learning.Series {
		if s.Style != dots.Series[k].Style {
			t.Errorf("%s has style %d as a curve and %d as a dot", s.Name, s.Style, dots.Series[k].Style)
		}
	}
	// Regret adds up: 2 − 1 after one epoch, (2 − 1) + 3 (2 − 5/3) after four.
	regret := figure(t, p, "regret").Series
	if len(regret) != 2 || !near(regret[0].Y, 1, 2) || !near(regret[1].Y, 0, -3) {
		t.Errorf("regret %+v", regret)
	}
	raster := figure(t, p, "crawls")
	if len(raster.Series) != 2 || !slices.Equal(raster.Series[0].X, plot.Values{2, 3}) || !slices.Equal(raster.Series[1].X, plot.Values{3}) || raster.Y.Names[1] != "b" {
		t.Errorf("raster %+v", raster)
	}
	if s := figure(t, p, "thresholds").Series; len(s) != 2 || !near(s[1].X, 11, 44) || !near(s[1].Y, 10, 30) {
		t.Errorf("thresholds %+v", s)
	}
	if plots, err := p.Write(dir); err != nil || len(plots) != 12 || !strings.Contains(p.Answer, "75.0 %") {
		t.Errorf("plots %q, %v, answer %q", plots, err, p.Answer)
	}
}

func near(got plot.Values, want ...float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
}

// What bench keeps is enough.
func TestResultAlone(t *testing.T) {
	dir := t.TempDir()
	put(t, kept["result.json"], dir, "result.json")
	r, err := Load(dir, "out")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Sections); n != 1 {
		t.Errorf("%d sections", n)
	}
}

// A file that is wrong is named, with its row, and nothing panics.
func TestWrongResults(t *testing.T) {
	for _, c := range []struct{ name, text, say string }{
		{"result.json", "{", "result.json"},
		{"result.json", `{"results": []}`, "no result"},
		{"curves.csv", "policy,epoch,reward\na,1,1\na,1,1\n", "curves.csv: row 3"},
		{"curves.csv", "policy,epoch,reward\na,x,1\n", "curves.csv: row 2"},
		{"curves.csv", "policy,epoch\n", "curves.csv"},
		{"curves.csv", "", "no heading"},
		{"crawls.csv", "epoch,source\n5,a\n4,a\n", "crawls.csv: row 3"},
		{"crawls.csv", "epoch,source\nfive,a\n", "crawls.csv: row 2"},
		{"thresholds.csv", "source,x\na\n", "thresholds.csv"},
	} {
		if _, err := Load(keep(t, c.name, c.text), "out"); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s of %q: %v; want %q", c.name, c.text, err, c.say)
		}
	}
}
