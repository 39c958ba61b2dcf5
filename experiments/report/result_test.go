package report

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

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

func inMemory() fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range kept {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestResult(t *testing.T) {
	r, err := readPage(inMemory(), "out")
	if err != nil {
		t.Fatal(err)
	}
	if err := examine(inMemory()); err != nil {
		t.Fatal(err)
	}
	p := r
	if len(r.Names) < 6 || !strings.Contains(p.Answer, "75.0 %") {
		t.Errorf("figures %q, answer %q", r.Names, p.Answer)
	}
	// The best stands on top; what has one name has one style.
	dots := figure(t, p, "policies")
	if names := dots.Y.Ticks; names[2].Text != "learning" || names[2].At != 2 || dots.Series[0].Lo[0] != 1 || !math.IsNaN(dots.Series[1].Lo[0]) {
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
	if len(raster.Series) != 2 || !slices.Equal(raster.Series[0].X, plot.Values{2, 3}) || !slices.Equal(raster.Series[1].X, plot.Values{3}) || raster.Y.Ticks[1].Text != "b" {
		t.Errorf("raster %+v", raster)
	}
	if s := figure(t, p, "thresholds").Series; len(s) != 2 || !near(s[1].X, 11, 44) || !near(s[1].Y, 10, 30) {
		t.Errorf("thresholds %+v", s)
	}
}

func near(got plot.Values, want ...float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
}

// What bench keeps is enough.
func TestResultAlone(t *testing.T) {
	dir := fstest.MapFS{"result.json": inMemory()["result.json"]}
	r, err := readPage(dir, "out")
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
		dir := inMemory()
		dir[c.name] = &fstest.MapFile{Data: []byte(c.text)}
		if err := examine(dir); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s of %q: %v; want %q", c.name, c.text, err, c.say)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	names := []string{"result.json", "curves.csv", "crawls.csv", "thresholds.csv"}
	for range 2 * *mutations {
		dir := inMemory()
		name := names[r.IntN(len(names))]
		dir[name] = &fstest.MapFile{Data: mutate(r, name, dir[name].Data)}
		_ = examine(dir)
	}
}

func TestBeside(t *testing.T) {
	top := t.TempDir()
	dirs := []string{filepath.Join(top, "one"), filepath.Join(top, "two")}
	for k, dir := range dirs {
		text := strings.Replace(kept["result.json"], `"reward": 2, "lo": null, "hi": null`, `"reward": 2, "lo": 1, "hi": 3`, 1)
		if k == 1 {
			text = strings.NewReplacer(`"reward": 2.5`, `"reward": 5`, "learning", "other").Replace(text)
		}
		put(t, text, dir, "result.json")
	}
	r, err := Beside(dirs, "whittle")
	if err != nil {
		t.Fatal(err)
	}
	f := figure(t, r, "beside")
	if len(f.Series) != 3 || f.Series[0].Name != "one" || !near(f.Series[0].X, 1.25, 1) || !near(f.Series[1].X, 2.5, 1) || f.Y.Ticks[1].Text != "learned" ||
		f.Series[0].Lo[1] != .5 || f.Series[0].Hi[1] != 1.5 {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(r.Text, "2.5") {
		t.Errorf("%s", r.Text)
	}
	if _, err := Beside(dirs, "learning"); err == nil || !strings.Contains(err.Error(), dirs[1]) {
		t.Errorf("a reference that is not everywhere: %v", err)
	}
}
