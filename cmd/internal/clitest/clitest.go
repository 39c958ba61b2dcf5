// Package clitest is what the tests of the commands share.
package clitest

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ephemera/cmd/internal/cli"
)

// Call runs a command and returns what it prints.
func Call(t *testing.T, c cli.Command, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	err = c(context.Background(), args, &out, &log)
	return out.String(), log.String(), err
}

// asCommand in the environment has a test binary be the command.
const asCommand = "EPHEMERA_TEST_AS_COMMAND"

// Main is for TestMain: it runs the tests, or, in a process that Process
// started, the command.
func Main(m *testing.M, main func()) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// Process prepares the command as a process of its own.
func Process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	return c
}

// Output runs a prepared process and returns its stdout and exit status.
func Output(t *testing.T, c *exec.Cmd) (stdout string, status int) {
	t.Helper()
	out, err := c.Output()
	if c.ProcessState == nil { // it has not begun
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// Files reads the files of a directory.
func Files(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Log writes a log of what was published and returns its path: a header, and a
// line for each of so many rows.
func Log(t *testing.T, header string, rows int, line func(k int) string) string {
	t.Helper()
	lines := []string{header}
	for k := range rows {
		lines = append(lines, line(k))
	}
	path := filepath.Join(t.TempDir(), "posts.csv")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Refuses returns what checks that a command refuses a call, whose arguments are
// separated by blanks, with one line that says what it has to, prints nothing and leaves
// no file in its -out directory.
func Refuses(t *testing.T, name string, c cli.Command) func(args string, status int, say ...string) {
	return func(args string, status int, say ...string) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "out")
		stdout, _, err := Call(t, c, append(strings.Fields(args), "-out", out)...)
		if err == nil {
			t.Errorf("%s: accepted", args)
			return
		}
		line := cli.Line(name, err)
		if got := cli.Status(err); got != status {
			t.Errorf("%s: exit status %d, want %d (%s)", args, got, status, line)
		}
		for _, word := range say {
			if !strings.Contains(line, word) {
				t.Errorf("%s: the error does not say %q: %s", args, word, line)
			}
		}
		if entries, _ := os.ReadDir(out); len(entries) > 0 || stdout != "" {
			t.Errorf("%s: printed %q, left %v behind", args, stdout, entries)
		}
	}
}
