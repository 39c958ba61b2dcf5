package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"ephemera/env/envtest"
	"ephemera/experiments/plot"
)

// copied returns what a directory of results is, in the memory of the test.
func copied(t testing.TB, dir string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "records/") {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = &fstest.MapFile{Data: b}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// edit changes a text in a file.
func edit(t *testing.T, path, old, by string) {
	t.Helper()
	text := get(t, path)
	if !strings.Contains(text, old) {
		t.Fatalf("%s has no %q", path, old)
	}
	put(t, strings.ReplaceAll(text, old, by), path)
}

// A report writes and removes nothing outside of its directory, whatever the
// figures in it are named.
func TestNamesLeadNowhere(t *testing.T) {
	dir := sweepIn(t, "show = [\"reward\", \"<crawls>\"]\n"+small)
	outside := filepath.Dir(dir)
	victims := []string{"victim.svg", "victim.png"}
	for _, name := range victims {
		put(t, "mine", outside, name)
	}
	summary := filepath.Join(dir, "summary.json")
	edit(t, summary, `"name": "crawls"`, `"name": "a/../../../pwned"`)
	edit(t, summary, `"<crawls>"`, `"b/../../../victim"`)
	for _, drawn := range []bool{true, false} {
		if !drawn { // it is removed
			edit(t, summary, ",\n  \"b/../../../victim\"\n", "\n")
		}
		files := strings.Join(write(t, dir), " ")
		if strings.Contains(files, "victim") != drawn || !strings.Contains(files, "pwned") {
			t.Fatalf("files %q", files)
		}
		for _, name := range victims {
			if got := get(t, outside, name); got != "mine" {
				t.Errorf("%s outside: %q", name, got)
			}
		}
		if got, _ := filepath.Glob(filepath.Join(outside, "pwned*")); len(got) > 0 {
			t.Errorf("written outside: %q", got)
		}
	}
}

// Links in a directory lead nowhere either.
func TestLinksLeadNowhere(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	put(t, "mine", secret)
	linked := func(name, to string) (dir string) { // the name in a directory of results
		dir = sweepIn(t, small)
		_ = os.Remove(filepath.Join(dir, name))
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
		return dir
	}
	write(t, linked("report.html", secret))
	if get(t, secret) != "mine" {
		t.Error("the page was written through a link")
	}
	dir := linked("plots", outside)
	p, err := Load(dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write(dir, false); err == nil {
		t.Error("plots were written through a link")
	}
	if got, _ := os.ReadDir(outside); len(got) != 1 {
		t.Errorf("outside: %v", got)
	}
	dir = linked("config.toml", secret)
	if _, err := Load(dir, dir); err == nil {
		t.Error("a file was read through a link")
	}
}

// Control characters reach neither page nor terminal, and HTML no summary.
func TestControlCharacters(t *testing.T) {
	dir := sweepIn(t, small)
	for _, name := range []string{"summary.json", "meta.json", "curves.csv", "learned.csv"} {
		by := "kap\x1b]0;x\x07pa/1/"
		if strings.HasSuffix(name, "json") {
			by = `kap\u001b]0;x\u0007pa\u009b/1/`
		}
		edit(t, filepath.Join(dir, name), "kappa/1/", by)
	}
	r, err := Load(dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	html, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for what, out := range map[string]string{"the page": strings.NewReplacer(uplotJS, "").Replace(string(html)), "the terminal": r.Text} {
		if k := strings.IndexAny(out, "\x1b\x07\u009b"); k >= 0 {
			t.Errorf("%s gets a control character at %q", what, out[max(0, k-20):k+20])
		}
		if !strings.Contains(out, `u001b]0;x`) {
			t.Errorf("%s does not show the name", what)
		}
	}
	// The page's script gets none from the escapes of JSON.
	_, data, _ := strings.Cut(string(html), `id="data">`)
	var d any
	if err := json.NewDecoder(strings.NewReader(data)).Decode(&d); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(d); strings.ContainsAny(text, "\x1b\x07\u009b") || !strings.Contains(text, `u001b]0;x`) {
		t.Error("the script of the page gets control characters, or not the name")
	}
	if text := get(t, dir, "summary.md"); strings.Contains(text, "<b>") || !strings.Contains(text, "&lt;b>it") {
		t.Errorf("summary.md has HTML:\n%.300s", text)
	}
}

// examine reads results and draws all of them: there is an error or a page.
func examine(dir fs.FS) error {
	r, err := readPage(dir, "out")
	if err != nil {
		return err
	}
	if _, err := r.HTML(); err != nil {
		return err
	}
	for _, s := range r.Sections {
		for _, f := range s.Figures {
			if f.Name == "" {
				continue
			}
			if _, err := f.SVG(plot.Light); err != nil {
				return err
			}
		}
	}
	return nil
}

var mutations = flag.Int("mutations", 300, "how many spoilt summaries TestMutations reads")

// Whatever stands in the files, there is no panic.
func TestMutations(t *testing.T) {
	envtest.Alone(t)
	good := copied(t, sweepIn(t, "group = \"gamma\"\n"+small))
	plain := copied(t, sweepIn(t, small))
	if err := examine(good); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	pages := 0
	for k := range *mutations {
		from := good
		if k%2 == 1 {
			from = plain
		}
		spoilt := fstest.MapFS{}
		for name, f := range from {
			spoilt[name] = f
		}
		name := []string{"summary.json", "summary.json", "summary.json", "meta.json", "curves.csv", "learned.csv"}[r.IntN(6)]
		spoilt[name] = &fstest.MapFile{Data: mutate(r, name, from[name].Data)}
		if examine(spoilt) == nil {
			pages++
		}
	}
	if pages < *mutations/10 || pages > *mutations*9/10 {
		t.Errorf("%d of %d spoilt directories gave a page: the test needs both", pages, *mutations)
	}
}

// mutate spoils a file in one place.
func mutate(r *rand.Rand, name string, b []byte) []byte {
	if strings.HasSuffix(name, ".csv") {
		b = bytes.Clone(b)
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = "0,\n\"-e\x00"[r.IntN(7)]
		}
		return b[:len(b)-r.IntN(2)*r.IntN(len(b))]
	}
	var v any
	if json.Unmarshal(b, &v) != nil {
		return b
	}
	var nodes []func(any)
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				nodes = append(nodes, func(by any) {
					if by == nil && r.IntN(2) == 0 {
						delete(v, k)
					} else {
						v[k] = by
					}
				})
				walk(x)
			}
		case []any:
			for k, x := range v {
				nodes = append(nodes, func(by any) { v[k] = by })
				walk(x)
			}
		}
	}
	walk(v)
	odd := []any{nil, -1.0, 1e308, 5e-324, 0.5, "", "a/../../../x", "\x1b]0;x\x07", true, []any{}, []any{1.0}, map[string]any{}, strings.Repeat("x", 3000)}
	nodes[r.IntN(len(nodes))](odd[r.IntN(len(odd))])
	b, _ = json.Marshal(v)
	return b
}

// FuzzRead reads a summary, metadata, curves and what was learned.
func FuzzRead(f *testing.F) {
	for _, text := range []string{small, "group = \"gamma\"\n" + small, "seeds = 1\n"} {
		dir := copied(f, sweepIn(f, text))
		f.Add(dir["summary.json"].Data, dir["meta.json"].Data, dir["curves.csv"].Data, dir["learned.csv"].Data)
	}
	f.Fuzz(func(t *testing.T, summary, meta, curves, learned []byte) {
		_ = examine(fstest.MapFS{
			"config.toml": {}, "summary.json": {Data: summary}, "meta.json": {Data: meta}, "curves.csv": {Data: curves}, "learned.csv": {Data: learned},
		})
	})
}
