package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ephemera/cmd/internal/cli"
)

func show(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	err = run(context.Background(), args, &out, &log)
	return out.String(), err
}

func TestShow(t *testing.T) {
	for _, args := range [][]string{
		{"-steps", "300"},
		{"-policy", "whittle", "-budget", "2"},
		{"-policy", "round-robin", "-instance", "lognormal:20", "-budget", "3"},
		{"-policy", "paper", "-steps", "200"},
		{"-policy", "certainty", "-steps", "200"},
		{"-policy", "greedy", "-steps", "7", "-epochs", "3"},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		out, err := show(t, append(args, "-steps", "200", "-out", dir, "-format", "json")...)
		if err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		var r struct {
			Policy string
			Reward float64
			Files  []struct{ File, Shows string }
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil || !(r.Reward > 0) || len(r.Files) < 7 {
			t.Errorf("%q: %v, %s", args, err, out)
		}
		for _, f := range r.Files {
			for _, ext := range []string{".svg", ".png"} {
				name := strings.Replace(f.File, ".{svg,png}", ext, 1)
				if info, err := os.Stat(name); err != nil || info.Size() < 1000 {
					t.Errorf("%q: %s: %v", args, name, err)
				}
			}
		}
		plots, _ := os.ReadDir(filepath.Join(dir, "plots"))
		if len(plots) != 2*(len(r.Files)-1) {
			t.Errorf("%q: %d plots, %d named", args, len(plots), len(r.Files)-1)
		}
		page, err := os.ReadFile(filepath.Join(dir, "report.html"))
		if err != nil || !strings.Contains(string(page), "go run ./cmd/show "+strings.Join(args, " ")) {
			t.Errorf("%q: %v, or the page does not say how it was made", args, err)
		}
		// What is drawn is of the first and the last epochs of the run of what was
		// learned.
		all := figures(t, dir)
		if x := all["content"].Series[0].X; len(x) != firstEpochs+1 {
			t.Errorf("%q: content at %d times; want the beginning and after each of %d epochs", args, len(x), firstEpochs)
		}
		x := all["price"].Series[0].X
		want := 100
		if slices.Contains(args, "-epochs") {
			want = 3
		}
		if len(x) != want || x[0] != float64(200-want) || x[want-1] != 199 {
			t.Errorf("%q: clearing prices of %d epochs from %v on; want %d", args, len(x), x[0], want)
		}
	}
}

type figure struct {
	Name   string
	Series []struct{ X, Y []float64 }
}

// figures returns the figures of a page by name.
func figures(t *testing.T, dir string) map[string]figure {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	_, data, _ := strings.Cut(string(page), `id="data">`)
	var d struct{ Sections []struct{ Figures []figure } }
	if err := json.NewDecoder(strings.NewReader(data)).Decode(&d); err != nil {
		t.Fatal(err)
	}
	all := map[string]figure{}
	for _, s := range d.Sections {
		for _, f := range s.Figures {
			all[f.Name] = f
		}
	}
	return all
}

// The price at a budget is where the figure of the value says it is, and the
// optimum rises by about that for a little more budget.
func TestBudgets(t *testing.T) {
	dir := t.TempDir()
	if _, err := show(t, "-policy", "whittle", "-budget", "2", "-steps", "50", "-out", dir); err != nil {
		t.Fatal(err)
	}
	all := figures(t, dir)
	price, here, most := all["value"].Series[0], all["value"].Series[1], all["bound"].Series[0]
	var area float64
	for k := range len(price.X) - 1 {
		area += price.Y[k+1] * (price.X[k+1] - price.X[k])
		if price.X[k] <= 2 && price.X[k+1] > 2 && (here.Y[0] > price.Y[k] || here.Y[0] < price.Y[k+1]) {
			t.Errorf("price %v at a budget of 2 between %v and %v", here.Y[0], price.Y[k], price.Y[k+1])
		}
	}
	// The price is the slope of the optimum.
	if rise := most.Y[len(most.Y)-1] - most.Y[0]; area > rise || area < .95*rise {
		t.Errorf("prices add up to %v; the optimum rises by %v", area, rise)
	}
}

func TestMistakes(t *testing.T) {
	for _, args := range [][]string{
		{"-policy", "nobody"}, {"-steps", "0"}, {"-epochs", "0"}, {"-out", ""}, {"-format", "pdf"}, {"-knowledge", "all"}, {"-budget", "-1"}, {"extra"},
		{"-policy", "miniflux", "-knowledge", "model"},
	} {
		if _, err := show(t, args...); err == nil || cli.Status(err) != cli.Usage {
			t.Errorf("%q: %v", args, err)
		}
	}
}
