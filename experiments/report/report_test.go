package report

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ephemera/env/stream"
	"ephemera/experiments/sweep"
)

// toy is a runner whose curves and figures are known; "policy" learns nothing
// and "broken" does not run.
type toy struct{}

func (toy) Selector() sweep.Key {
	return sweep.Key{Name: "algorithm", Kind: sweep.String, Default: "toy", Allowed: []string{"toy", "policy", "broken"}}
}

func (toy) Keys(string) []sweep.Key {
	return []sweep.Key{{Name: "kappa", Kind: sweep.Float, Default: 1.0}, {Name: "gamma", Kind: sweep.Float, Default: 0.5}, {Name: "label", Kind: sweep.String, Default: "none"}}
}

func (toy) Check(*sweep.Cell) error { return nil }

func (toy) Figures() []sweep.Figure {
	return []sweep.Figure{{Name: "reward", Unit: "interest per epoch"}, {Name: "<crawls>"}}
}

func (toy) CurveFigures() []sweep.Figure {
	return []sweep.Figure{{Name: "reward", Unit: "interest per epoch"}, {Name: "crawls"}}
}

func (toy) Worker() sweep.Worker { return toy{} }

func (toy) Run(_ context.Context, c *sweep.Cell, seed uint64) (sweep.Result, error) {
	level := 10*c.Float("kappa") + c.Float("gamma") + stream.New(seed, stream.Test).Float64()
	r := sweep.Result{Row: []float64{level, 1 / c.Float("kappa")}}
	switch c.Text("algorithm") {
	case "policy":
		r.Row[1] = 13. / 32 / c.Float("kappa") // half way between two numbers of four digits
		return r, nil
	case "broken":
		return r, errors.New("it diverged")
	}
	for n := 1; n <= 1000; n *= 10 {
		r.Curve = append(r.Curve, sweep.Point{Epoch: n, Values: []float64{level * (1 - 1/float64(n+1)), float64(n)}})
	}
	for i := range 3 {
		r.Learned = append(r.Learned, sweep.Pair{What: "threshold", Source: fmt.Sprint(i + 1), Learned: level + float64(i), Exact: 5 * float64(i)})
		for age := 1.0; age < 4; age++ {
			r.Learned = append(r.Learned, sweep.Pair{What: "index", Source: fmt.Sprint(i + 1), At: age, Learned: level * age, Exact: 2 * age})
		}
	}
	return r, nil
}

// sweepDir runs a small sweep and returns its directory.
func sweepDir(t testing.TB, text string) string {
	t.Helper()
	c, err := sweep.Load(toy{}, toy{}, "small.toml", []byte("# Does </script> <b>it</b> work?\nmetric = \"reward\"\n"+text), nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := sweep.Run(context.Background(), c, toy{}, sweep.Options{Dir: dir, Revision: "v1", Command: "go run ./cmd/sweep small"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

const small = "seeds = 6\nkappa = [1, 2, 4]\ngamma = [0.25, 0.5]\n"

func TestLoad(t *testing.T) {
	r, err := Load(sweepDir(t, small))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Curves) != 6 || r.Command != "go run ./cmd/sweep small" || len(r.Drawn) != 6 {
		t.Fatalf("%d curves, command %q, drawn %q", len(r.Curves), r.Command, r.Drawn)
	}
	for i, c := range r.Curves {
		if c.Cell != r.Summary.Cells[i].ID || !slices.Equal(c.Epochs, []int{1, 10, 100, 1000}) {
			t.Errorf("curve %d is of %s at %v", i, c.Cell, c.Epochs)
		}
		// The last point of a curve is the level up to 1/1001.
		want := r.Summary.Cells[i].Mean[0].Value * (1 - 1./1001)
		if e := c.Bands[0][3]; math.Abs(e.Value-want) > 1e-9 || !(e.Lo < e.Value && e.Value < e.Hi) || e.N != 6 {
			t.Errorf("%s ends at %v; want %v", c.Cell, e, want)
		}
	}
	if len(r.Heat) != 1 || r.Heat[0].X != "kappa" || r.Heat[0].Y != "gamma" || !slices.Equal(r.Heat[0].XNames, []string{"1", "2", "4"}) {
		t.Fatalf("heat map %+v", r.Heat)
	}
	for y, gamma := range r.Heat[0].YNames {
		for x, kappa := range r.Heat[0].XNames {
			if id := r.Summary.Cells[r.Heat[0].Cells[y][x]].ID; id != "kappa/"+kappa+"/gamma/"+gamma {
				t.Errorf("tile %s, %s holds %s", kappa, gamma, id)
			}
		}
	}
	if r.Axis != "kappa" || len(r.Paths) != 2 || r.Paths[1].Name != "gamma 0.5" || !slices.Equal(r.Paths[1].X, []float64{1, 2, 4}) || !slices.Equal(r.Paths[1].Cells, []int{1, 3, 5}) {
		t.Errorf("along %s: %+v", r.Axis, r.Paths)
	}
	if len(r.Learned) != 6*12 || r.Learned[1].What != "index" || r.Learned[1].Exact != 2 {
		t.Errorf("%d learned quantities, second %+v", len(r.Learned), r.Learned[1])
	}
}

func TestWrite(t *testing.T) {
	dir := sweepDir(t, small)
	r, files, err := Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	first := map[string][]byte{}
	for _, name := range files {
		if first[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		switch filepath.Ext(name) {
		case ".png":
			if img, err := png.Decode(bytes.NewReader(first[name])); err != nil || img.Bounds().Dx() < 800 {
				t.Errorf("%s: %v", name, err)
			}
		case ".svg":
			d := xml.NewDecoder(bytes.NewReader(first[name]))
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Errorf("%s: %v", name, err)
					break
				}
			}
		}
	}
	for _, want := range []string{"report.html", "plots/along-reward.svg", "plots/curves-reward.svg", "plots/curves-crawls.png", "plots/heat.svg", "plots/profile.png", "plots/threshold.svg", "plots/index.png"} {
		if first[want] == nil {
			t.Errorf("%s was not written; there are %q", want, files)
		}
	}
	if _, _, err := Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if b, _ := os.ReadFile(filepath.Join(dir, name)); !bytes.Equal(b, first[name]) {
			t.Errorf("%s differs from run to run", name)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".pending*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}

	html := string(first["report.html"])
	for _, want := range []string{r.Summary.Cells[0].ID, "go run ./cmd/sweep small", "Does &lt;/script&gt; &lt;b&gt;it&lt;/b&gt; work?", "prefers-color-scheme: dark", "Configuration " + r.Summary.Configuration} {
		if !strings.Contains(html, want) {
			t.Errorf("report.html lacks %q", want)
		}
	}
	if strings.Contains(html, "<b>it</b>") {
		t.Error("text of the configuration became markup")
	}
	// Nothing is loaded: no address in an attribute or style.
	if m := regexp.MustCompile(`(?i)(src|href|action)\s*=\s*["']?(https?:)?//|url\(|@import`).FindString(html); m != "" {
		t.Errorf("report.html refers to the outside: %q", m)
	}
}

// A page of 10 000 cells stays light: all rows, few curves.
func TestManyCells(t *testing.T) {
	var kappa []string
	for i := range 100 {
		kappa = append(kappa, fmt.Sprint(i+1))
	}
	list := "[" + strings.Join(kappa, ", ") + "]"
	dir := sweepDir(t, "seeds = 1\nkappa = "+list+"\ngamma = "+list+"\n")
	r, _, err := Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Summary.Cells) != 10_000 || len(r.Curves) != maxCurves || len(r.Drawn) != maxDrawn {
		t.Errorf("%d cells, %d curves, %d drawn", len(r.Summary.Cells), len(r.Curves), len(r.Drawn))
	}
	if !slices.Contains(r.Drawn, r.Summary.Reference) {
		t.Errorf("the reference %s is not among those drawn, %q", r.Summary.Reference, r.Drawn)
	}
	if info, err := os.Stat(filepath.Join(dir, "report.html")); err != nil || info.Size() > 8<<20 {
		t.Errorf("report.html: %d bytes, %v; want at most 8 MB", info.Size(), err)
	}

	// Of the lines those with the best cells stay, in their order, and page and
	// pictures tell what is left out.
	if len(r.Paths) != maxPaths || r.Paths[0].Name != "gamma 1" || r.Paths[maxPaths-1].Name != "gamma 100" {
		t.Errorf("%d lines from %s to %s", len(r.Paths), r.Paths[0].Name, r.Paths[len(r.Paths)-1].Name)
	}
	for name, wants := range map[string][]string{
		"report.html": {
			"Shown are 16 of 100 lines: those with the reference and the best cells by reward.",
			"The page has the curves of 48 of 10000 cells: the reference and the best by reward; the file curves.csv has all.",
			"Drawn at first are 10 of 10000 cells: the reference and the best by reward.",
			"Shown are 12 of 10000 cells: the best.",
			"To choose from are 48 of 10000 cells",
		},
		"plots/along-reward.svg":  {">small, 16 of 100 lines: those with the reference and the best cells<"},
		"plots/curves-reward.svg": {">small, 10 of 10000 cells: the reference and the best<"},
		"plots/threshold.svg":     {">small, 10 of 10000 cells: the reference and the best<"},
		"plots/profile.svg":       {">small, 12 of 10000 cells: the best<"},
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
	}
}

// Of many maps those with the reference and the best cells stay.
func TestManyMaps(t *testing.T) {
	r, err := Load(sweepDir(t, `seeds = 1
kappa = [1, 2, 3, 4, 5, 6]
gamma = [0.1, 0.2, 0.3, 0.4, 0.5]
label = ["a", "b", "c", "d", "e", "f"]
`))
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, p := range r.Heat {
		titles = append(titles, p.Title)
	}
	if want := []string{"gamma = 0.1", "gamma = 0.3", "gamma = 0.4", "gamma = 0.5"}; !slices.Equal(titles, want) {
		t.Errorf("maps %q; want %q", titles, want)
	}
	if note := r.notes().Heat; note != "4 of 5 maps: those with the reference and the best cells" {
		t.Errorf("note %q", note)
	}
}

func TestMissing(t *testing.T) {
	dir := t.TempDir()
	check := func(want string) {
		t.Helper()
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q in it", err, want)
		}
	}
	check("there is no config.toml")
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	check("there is no records")
	if err := os.Mkdir(filepath.Join(dir, "records"), 0o777); err != nil {
		t.Fatal(err)
	}
	check("sweep -merge " + dir)
	dir = filepath.Join(dir, "none")
	check("no such file")
}

// Pictures of an earlier report go, and nothing else does.
func TestTidy(t *testing.T) {
	dir := sweepDir(t, "show = [\"reward\"]\n"+small)
	plots := filepath.Join(dir, "plots")
	put := func(name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(plots, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(plots, name), []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	old := []string{"along-<crawls>.svg", "along-<crawls>.png", "heat-2.svg", "heat-4.png"}
	others := []string{"notes.txt", "along-mine.svg", "heat-map.png", "curves.svg", "profile.pdf", "heat-1.svg/x"}
	for _, name := range append(slices.Clone(old), others...) {
		put(name)
	}
	_, files, err := Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(files, "plots/"+old[0]) {
		t.Fatalf("%s is written: the test needs one that is not", old[0])
	}
	for _, name := range old {
		if _, err := os.Lstat(filepath.Join(plots, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range others {
		if b, err := os.ReadFile(filepath.Join(plots, name)); err != nil || string(b) != "old" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for _, name := range files {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
