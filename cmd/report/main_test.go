package main

import (
	"bytes"
	"context"
	"fmt"
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
	c, err := sweep.Load(context.Background(), "small.toml", []byte("question = \"Does it draw?\"\nseeds = 5\nsteps = 100\nlearner.algorithm = \"paper\"\nlearner.kappa = [0.1, 2]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sweep.Run(context.Background(), c, sweep.Options{Batch: experiments.Batch{Dir: dir, Workers: 2}}); err != nil {
		t.Fatal(err)
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	ran(t, dir)
	var out, log bytes.Buffer
	if err := run(context.Background(), []string{dir}, &out, &log); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Crawls cost more than the budget") {
		t.Errorf("stdout\n%s", &out)
	}
	plots, err := os.ReadDir(filepath.Join(dir, "plots"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("wrote %s and %d plots in %s\n", filepath.Join(dir, "report.html"), len(plots), filepath.Join(dir, "plots")); log.String() != want {
		t.Errorf("stderr %q; want %q", &log, want)
	}
	for _, name := range []string{"report.html", "plots/learning.svg", "plots/profile.png", "plots/threshold.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A directory of sweeps gets a report in each, whatever else it holds.
func TestSeveral(t *testing.T) {
	dir := t.TempDir()
	a, b, half := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "half")
	ran(t, a)
	ran(t, b)
	ran(t, half)
	records, err := filepath.Glob(filepath.Join(half, "runs", "*.json"))
	if err != nil || len(records) != 10 {
		t.Fatalf("records %q, %v", records, err)
	}
	if err := os.WriteFile(records[0], []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "other"), 0o777); err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	err = run(context.Background(), []string{dir}, &out, &log)
	if err == nil || !strings.Contains(err.Error(), records[0]) || cli.Status(err) != cli.Failure {
		t.Errorf("a sweep with a spoilt record: %v", err)
	}
	for _, d := range []string{a, b} {
		if _, err := os.Stat(filepath.Join(d, "report.html")); err != nil || !strings.Contains(log.String(), "wrote "+d) {
			t.Errorf("%v; stderr %s", err, &log)
		}
	}
}

func TestMistakes(t *testing.T) {
	var out, log bytes.Buffer
	if err := run(context.Background(), nil, &out, &log); err == nil || cli.Status(err) != cli.Usage {
		t.Errorf("no directory: %v", err)
	}
	dir := t.TempDir()
	err := run(context.Background(), []string{dir}, &out, &log)
	if err == nil || !strings.Contains(err.Error(), "holds no results") || cli.Status(err) != cli.Failure {
		t.Errorf("an empty directory: %v", err)
	}
	if err := run(context.Background(), []string{dir, "-x"}, &out, &log); err == nil || cli.Status(err) != cli.Usage {
		t.Errorf("an unknown flag behind the directory: %v", err)
	}
	if err := run(context.Background(), []string{dir, "-h"}, &out, &log); err != nil || !strings.Contains(out.String(), "report DIR...") {
		t.Errorf("help behind the directory: %v, %q", err, &out)
	}
}
