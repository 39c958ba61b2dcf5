package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments/cells"
	"ephemera/experiments/sweep"
)

func TestReport(t *testing.T) {
	s := cells.New()
	c, err := sweep.Load(s, s, "small.toml", []byte("# Does it draw?\nseeds = 5\nsteps = 100\nlearner.algorithm = \"paper\"\nlearner.kappa = [0.1, 2]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := sweep.Run(context.Background(), c, s, sweep.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	if err := run(context.Background(), []string{dir}, &out, &log); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Best by learned_ratio") || !strings.Contains(log.String(), "report.html") {
		t.Errorf("stdout\n%s\nstderr\n%s", &out, &log)
	}
	for _, name := range []string{"report.html", "plots/curves-ratio.svg", "plots/profile.png", "plots/threshold.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	var out, log bytes.Buffer
	if err := run(context.Background(), nil, &out, &log); err == nil || cli.Status(err) != cli.Usage {
		t.Errorf("no directory: %v", err)
	}
	if err := run(context.Background(), []string{t.TempDir()}, &out, &log); err == nil || !strings.Contains(err.Error(), "sweep -merge") || cli.Status(err) != cli.Failure {
		t.Errorf("an empty directory: %v", err)
	}
}
