package sweep

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A configuration gives an error that names the file or the flag, or cells with
// ids of their own that are spelt out so that they load again.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		kappaTOML, lifeTOML,
		"[[cells]]\nlearner.kappa = 1\n  learner.beta = 3\n", "learner = {algorithm = [\"paper\", \"whittle\"], kappa = [1, inf]}\n",
		"steps = 1e2\n[[cells]]\nlearner.kappa = 3\n[[cells]]\nsteps = 20\n[cells.learner]\nalgorithm = \"priced\"\nanneal = [true, false]\n",
		"cells = [{steps = 1}, {steps = 2}]\nshow = ['ratio']\ngroup = 'steps'\nseeds = [3, 0]\n", "steps = [1,,2]", "x.y.z = 1979-05-27\n",
		"question = \"What?\\nWhy? # \\\"\"\nmetric = \"crawls\"\nseeds = [7, 0]\nreference = \"paper/budget/1e-09/kappa/0.30000000000000004\"\nlearner.kappa = [1e12, 0.30000000000000004]\n[[cells]]\nlearner.algorithm = [\"paper\", \"priced\"]\ninstance.budget = [1e-9, 3]\n[[cells]]\nlearner.algorithm = \"whittle\"\ninstance.id = [\"wide\", \"paper\"]\ninstance.budget = inf\n",
	} {
		f.Add([]byte(text), "learner.kappa=[1, 2]")
		f.Add([]byte(text), "")
	}
	odd := strings.Repeat("\u200b", 3000) // quoted, it is twice as long
	f.Add([]byte("\""+strings.Repeat("\U0010ffff", 3000)+"\" = 1"), "")
	f.Add([]byte("metric = \""+odd+"\""), "metric = \""+odd+"\"")
	f.Fuzz(func(t *testing.T, text []byte, set string) {
		var flags []string
		if set != "" {
			flags = []string{set}
		}
		c, err := Load(fake{}, "f.toml", text, flags)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f.toml:") && !strings.HasPrefix(err.Error(), "-set ") || len(err.Error()) > 4000 {
				t.Errorf("error %q names neither file nor flag, or is long", err)
			}
			return
		}
		seen := map[string]bool{}
		for i, cell := range c.Cells {
			if seen[cell.ID] || strings.ContainsFunc(cell.ID, func(r rune) bool { return r < ' ' || r == '<' }) {
				t.Fatalf("cell %d is %q", i, cell.ID)
			}
			seen[cell.ID] = true
		}
		if len(c.Cells) > 1000 {
			return
		}
		resolved, err := c.resolved()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Load(fake{}, "again.toml", resolved, nil)
		if err != nil || again.Hash() != c.Hash() || !slices.Equal(ids(c), ids(again)) || again.Metric != c.Metric || again.Question != c.Question || again.Reference != c.Reference || again.Name != c.Name {
			t.Fatalf("%v: resolved to\n%s", err, resolved)
		}
		if twice, err := again.resolved(); err != nil || string(twice) != string(resolved) {
			t.Fatalf("%v: resolved twice:\n%s\n%s", err, resolved, twice)
		}
	})
}

// Whatever stands in a record file, also under a right checksum: reading it
// gives an error that names the line, or a store whose results can be read or
// say what is wrong with them.
func FuzzRecords(f *testing.F) {
	c := mustLoad(f, "seeds = 2\nlearner.kappa = [1, 2]\n")
	whole := f.TempDir()
	mustRun(f, c, Options{Dir: whole, Revision: "v1", Workers: 1})
	good, err := os.ReadFile(filepath.Join(whole, recordsDir, "0000-of-0001.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, true)
	f.Add(good, false)
	f.Add(good[:len(good)-9], false)
	f.Add(record{Hash: c.Cells[0].Hash, Seed: 1, Error: "it\ndiverged"}.line(), true)
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal {
			data = sealed(data)
		}
		dir := t.TempDir()
		path := filepath.Join(dir, recordsDir, "0000-of-0001.jsonl")
		if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := scan(context.Background(), c, dir)
		if err != nil {
			if !strings.HasPrefix(err.Error(), path+":") {
				t.Errorf("error %q does not name the line", err)
			}
			return
		}
		defer s.close()
		for job, at := range s.at {
			if at.file == nil {
				continue
			}
			res, err := s.result(job)
			if err != nil && !strings.HasPrefix(err.Error(), path) {
				t.Errorf("error %q does not name the file", err)
			}
			if err == nil && res.fits(c.x) != nil {
				t.Errorf("result %v", res)
			}
		}
	})
}

// sealed puts the right checksum into each line.
func sealed(data []byte) []byte {
	var out []byte
	for line := range bytes.Lines(data) {
		body := bytes.TrimSuffix(line, []byte("\n"))
		if _, rest, ok := bytes.Cut(body, []byte(",")); ok {
			body = rest
		}
		out = fmt.Appendf(out, "{\"crc32\":\"%08x\",%s\n", crc32.ChecksumIEEE(body), body)
	}
	return out
}
