package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program of docs/own has all commands with a world and a learner of its own, which
// is saved and loaded.
func TestOwnProgram(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own")
	build := exec.Command("go", "build", "-o", own, ".")
	build.Dir = "../docs/own"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s(go mod tidy in docs/own follows a change of go.mod)", err, out)
	}
	dir := t.TempDir()
	call := func(line string) string {
		t.Helper()
		c := exec.Command(own, strings.Fields(line)...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	const train = "train -algorithm tracker -steps 3000 -format json -out "
	whole := call(train + "whole")
	if again := call(train + "whole"); again != whole {
		t.Errorf("from its directory it prints\n%s\nwant\n%s", again, whole)
	}
	out := call("bench -policies tracker,whittle,file:whole -set step=0.2 -steps 500 -seeds 2 -world noisy")
	if !strings.Contains(out, "tracker/learned") || !strings.Contains(out, "file:whole") {
		t.Errorf("bench prints\n%s", out)
	}
	config := "steps = 200\nlearner.algorithm = \"tracker\"\nlearner.step = [0.1, 0.5]\n"
	if err := os.WriteFile(filepath.Join(dir, "steps.toml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := call("sweep steps.toml -out steps"); !strings.Contains(out, "step/0.5") {
		t.Errorf("sweep prints\n%s", out)
	}
	if out := call("report whole steps"); strings.Count(out, "report.html") != 2 {
		t.Errorf("report prints\n%s", out)
	}
	for name, want := range map[string]string{ // a call of this program, not of the commands of the checkout
		"whole/command.txt": own + " " + train + "whole\n",
		"whole/report.html": own + " report whole<",
		"steps/report.html": own + " sweep steps.toml -out steps\n" + own + " report steps<",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, and no %q in %.400s", name, err, want, text)
		}
	}
}
