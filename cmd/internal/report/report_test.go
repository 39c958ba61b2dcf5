package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments"
	"ephemera/experiments/sweep"
)

// ran runs a small sweep into dir.
func ran(t *testing.T, dir string) {
	t.Helper()
	c, err := sweep.Load(context.Background(), "small.toml", []byte(`question = "Does it draw?"
seeds = 5
steps = 100
learner.algorithm = "paper"
learner.kappa = [0.1, 2]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sweep.Run(context.Background(), c, experiments.Batch{Dir: dir, Workers: 2}); err != nil {
		t.Fatal(err)
	}
}

// Each of several sweeps gets a report; one that is spoilt is named.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	whole, spoilt := filepath.Join(dir, "whole"), filepath.Join(dir, "spoilt")
	ran(t, whole)
	ran(t, spoilt)
	records, err := filepath.Glob(filepath.Join(spoilt, "runs", "*.json"))
	if err != nil || len(records) != 10 {
		t.Fatalf("records %q, %v", records, err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(records[0], "{")
	write(filepath.Join(dir, "notes.txt"), "mine")
	var out, log bytes.Buffer
	err = Run(context.Background(), []string{whole, spoilt}, &out, &log)
	if err == nil || !strings.Contains(err.Error(), records[0]) || cli.Status(err) != cli.Failure {
		t.Errorf("a sweep with a spoilt record: %v", err)
	}
	plots, err := filepath.Glob(filepath.Join(whole, "plots", "*.svg")) // each is there as PNG and PDF too
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("wrote %s and %d plots in %s\n",
		filepath.Join(whole, "report.html"), len(plots), filepath.Join(whole, "plots"))
	if log.String() != want {
		t.Errorf("stderr %q; want %q", &log, want)
	}
}

// A directory stands for the results that lie in it, however deep, as benchmark of Python
// keeps those of each task of each policy. A call that was ended has left a task without.
func TestReportOfAll(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "mine", "one"), filepath.Join(dir, "yours", "two")
	ran(t, first)
	ran(t, second)
	if err := os.MkdirAll(filepath.Join(dir, "mine", "ended", "runs"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Run(context.Background(), []string{dir}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{first, second} {
		if _, err := os.Stat(filepath.Join(of, "report.html")); err != nil {
			t.Error(err)
		}
	}
}

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args   []string
		say    string
		status int
	}{
		{nil, "no directory is named", cli.Usage},
		{[]string{dir, "-x"}, "-x", cli.Usage},
		{[]string{dir}, "holds no results", cli.Failure},
		{[]string{filepath.Join(dir, "none")}, "holds no results", cli.Failure},
	} {
		var out, log bytes.Buffer
		err := Run(context.Background(), c.args, &out, &log)
		if err == nil || !strings.Contains(err.Error(), c.say) || cli.Status(err) != c.status {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}
