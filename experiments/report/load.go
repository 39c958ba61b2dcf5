package report

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"ephemera/experiments/files"
	"ephemera/experiments/sweep"
)

// Dirs returns dir if it holds results, or else the directories in it that do,
// of which there must be one.
func Dirs(dir string) ([]string, error) {
	return files.Dirs(dir, "results", resultFile, sweep.SummaryFile)
}

// Load makes the page of a directory of results: that of a sweep, of train or of
// bench. The page has the commands that make it again, in which the directory is
// at.
func Load(ctx context.Context, dir, at string) (p *Page, err error) {
	if _, missing := os.Stat(filepath.Join(dir, sweep.SummaryFile)); missing == nil {
		p, err = readSweep(dir, at)
	} else {
		p, err = readResult(ctx, dir, at)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if p.Command != "" {
		p.Command += "\ngo run ./cmd/report " + at
	}
	return p, nil
}
