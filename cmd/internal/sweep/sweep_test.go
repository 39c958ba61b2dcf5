package sweep

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/clitest"
)

const small = `question = "Does it run?"
seeds = 6
steps = 200
learner.algorithm = "paper"
learner.kappa = [0.1, 2]
`

func config(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// must is a call without an error, whose log says something.
func must(t *testing.T, say string, args ...string) (stdout string) {
	t.Helper()
	stdout, log, err := clitest.Call(t, Run, args...)
	if err != nil || !strings.Contains(log, say) {
		t.Fatalf("%q: %v, %s; want %q", args, err, log, say)
	}
	return stdout
}

func TestSweep(t *testing.T) {
	file, dir := config(t, "small.toml", small), t.TempDir()
	// Flags may stand behind the configuration.
	out := must(t, "12 runs now, 0 before", file, "-out", dir, "-set", "learner.gamma=0.1")
	if !strings.Contains(out, "kappa/0.1") {
		t.Errorf("stdout\n%s", out)
	}
	summary, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil || !strings.Contains(string(summary), "-set learner.gamma=0.1") {
		t.Errorf("%v; summary.json\n%s", err, summary)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "runs", "*.json"))
	if err := errors.Join(err, os.Remove(kept[0])); err != nil {
		t.Fatal(err)
	}
	must(t, "1 run now, 11 before", file, "-out", dir, "-set", "learner.gamma=0.1")
	// Again: nothing is left to run.
	for _, tt := range []struct {
		format string
		check  func(string) error
	}{
		{"json", func(s string) error { return json.Unmarshal([]byte(s), &struct{}{}) }},
		{"csv", func(s string) error { _, err := csv.NewReader(strings.NewReader(s)).ReadAll(); return err }},
	} {
		t.Run(tt.format, func(t *testing.T) {
			args := []string{file, "-out", dir, "-set", "learner.gamma=0.1", "-format", tt.format}
			if err := tt.check(must(t, "0 runs now, 12 before", args...)); err != nil {
				t.Error(err)
			}
		})
	}
}

// The last shard that ends summarizes.
func TestShards(t *testing.T) {
	file, dir := config(t, "small.toml", small), t.TempDir()
	for _, shard := range []string{"0/3", "2/3"} {
		must(t, "of 12 runs are missing", file, "-out", dir, "-shard", shard)
	}
	out, _, err := clitest.Call(t, Run, file, "-out", dir, "-summarize")
	if cli.Status(err) != cli.Failure || !strings.Contains(err.Error(), "4 of 12 runs are missing") ||
		!strings.Contains(out, "kappa/2") {
		t.Errorf("merge: %v\n%s", err, out)
	}
	must(t, "4 runs now, 8 before", file, "-out", dir, "-shard", "1/3")
}

func TestList(t *testing.T) {
	out := must(t, "", "-list")
	if !strings.Contains(out, "paper/kappa/2\n") || !strings.HasSuffix(out, "kappa: 16 cells × 20 seeds = 320 runs\n") {
		t.Errorf("list\n%s", out)
	}
}

// What a name of an instance would do to a terminal is written out.
func TestListOfOddNames(t *testing.T) {
	odd := config(t, "evil\x1b[2J.toml", "budget = 1\n[[source]]\nname = \"a\"\nrate = 1\ndecay = 1\ninterest = 1\n"+
		"[[source]]\nname = \"b\"\nrate = 1\ndecay = 1\ninterest = 2\n")
	file := config(t, "odd.toml", fmt.Sprintf("instance.name = [\"paper\", %+q]\nlearner.algorithm = \"paper\"\n", odd))
	out := must(t, "", file, "-list")
	if strings.Contains(out, "\x1b") || !strings.Contains(out, `evil\x1b[2J.toml`) {
		t.Errorf("list\n%q", out)
	}
}

// A mistake in how the command was called ends it with status 2, one in a file
// with status 1.
func TestMistakes(t *testing.T) {
	bad := config(t, "bad.toml", "colour = 1\n")
	refuse := clitest.Refuses(t, "sweep", Run)
	refuse("nothing", cli.Failure, "nothing: no such file; a configuration is a .toml file or one of budget")
	refuse(bad, cli.Failure, "bad.toml:1:1: key")
	refuse("-set colour=1", cli.Usage, "unknown key")
	refuse("-set instance.name=missing.toml", cli.Failure, "missing.toml")
	refuse("-set instance.name="+bad, cli.Failure, "bad.toml:1:1: key")
	refuse("-set steps=10 "+bad, cli.Failure, "bad.toml:1:1: key")
	refuse("-set learner.algorithm=gold", cli.Usage, "gold")
	refuse("kappa scale", cli.Usage, "unexpected argument \"scale\"")
	refuse("-summarize", cli.Failure, "has none of the 320 runs of kappa")
	refuse("-shard 3/3", cli.Usage, "allowed is i/n")
}

// Where a file of -out cannot be written the figures are printed all the same.
func TestUnwritableOut(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "summary.md", "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	out, _, err := clitest.Call(t, Run, config(t, "small.toml", small), "-out", dir)
	if err == nil || cli.Status(err) != cli.Failure || !strings.Contains(err.Error(), "summary.md") ||
		!strings.Contains(out, "kappa/0.1") {
		t.Errorf("%v; printed %q", err, out)
	}
}
