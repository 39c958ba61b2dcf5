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

// replace changes a text in a file.
func replace(t *testing.T, path, old, by string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(old)) {
		t.Fatalf("%s has no %q", path, old)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(b, []byte(old), []byte(by)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// A report writes and removes nothing outside of its directory, whatever the
// figures in it are named.
func TestNamesLeadNowhere(t *testing.T) {
	dir := sweepIn(t, small)
	outside := filepath.Dir(dir)
	for _, name := range []string{"victim.svg", "victim.png"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte("mine"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	summary := filepath.Join(dir, "summary.json")
	replace(t, summary, `"name": "crawls"`, `"name": "a/../../../pwned"`)
	replace(t, summary, `"name": "<crawls>"`, `"name": "b/../../../victim"`)
	replace(t, summary, `"<crawls>"`, `"b/../../../victim"`)
	for _, show := range []string{"", `"show": ["reward"]`} { // drawn, and removed
		if show != "" {
			b, err := os.ReadFile(summary)
			if err != nil {
				t.Fatal(err)
			}
			k := bytes.Index(b, []byte(`"show"`))
			end := k + bytes.IndexByte(b[k:], ']') + 1
			if err := os.WriteFile(summary, append(append(b[:k:k], show...), b[end:]...), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		files := write(t, dir)
		drawn := strings.Contains(strings.Join(files, " "), "victim")
		if drawn != (show == "") || !strings.Contains(strings.Join(files, " "), "pwned") {
			t.Fatalf("files %q", files)
		}
		for _, name := range []string{"victim.svg", "victim.png"} {
			if b, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(b) != "mine" {
				t.Errorf("%s outside: %q, %v", name, b, err)
			}
		}
		if got, _ := filepath.Glob(filepath.Join(outside, "pwned*")); len(got) > 0 {
			t.Errorf("written outside: %q", got)
		}
	}
}

// Links in a directory lead nowhere either.
func TestLinksLeadNowhere(t *testing.T) {
	link := func(dir, name, to string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}

	dir := sweepIn(t, small)
	link(dir, "report.html", secret)
	write(t, dir)
	if b, _ := os.ReadFile(secret); string(b) != "mine" {
		t.Error("the page was written through a link")
	}

	dir = sweepIn(t, small)
	link(dir, "plots", outside)
	r, err := Load(dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write(dir, false); err == nil {
		t.Error("plots were written through a link")
	}
	if got, _ := os.ReadDir(outside); len(got) != 1 {
		t.Errorf("outside: %v", got)
	}

	dir = sweepIn(t, small)
	if err := os.Remove(filepath.Join(dir, "config.toml")); err != nil {
		t.Fatal(err)
	}
	link(dir, "config.toml", secret)
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
		replace(t, filepath.Join(dir, name), "kappa/1/", by)
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
	b, err := os.ReadFile(filepath.Join(dir, "summary.md"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "<b>") || !strings.Contains(string(b), "&lt;b>it") {
		t.Errorf("summary.md has HTML:\n%.300s", b)
	}
}

// examine reads results and draws all of them: there is an error or a page.
func examine(dir fs.FS) error {
	r, err := Read(dir, "out")
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
