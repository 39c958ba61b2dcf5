package clitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// program is what a unit of systemd starts.
var program = regexp.MustCompile(`(?m)^(ExecStart=)\S+`)

// Units has systemd verify the units of some patterns, with another program in place of each
// that is not installed.
func Units(t *testing.T, patterns ...string) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("units are not verified: ", err)
		return
	}
	dir, args := t.TempDir(), []string{"verify", "--man=no"}
	for _, pattern := range patterns {
		files, _ := filepath.Glob(pattern)
		if len(files) == 0 {
			t.Fatal("there is no ", pattern)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(dir, filepath.Base(file))
			if err := os.WriteFile(to, program.ReplaceAll(text, []byte("${1}/bin/true")), 0o644); err != nil {
				t.Fatal(err)
			}
			args = append(args, to)
		}
	}
	if out, err := exec.Command("systemd-analyze", args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
