package report

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ephemera/experiments/sweep"
)

// Load makes the page of a directory of results: that of a sweep, of train or of
// bench. The page has the commands that make it again, in which the directory is
// at.
func Load(ctx context.Context, dir, at string) (p *Page, err error) {
	if _, missing := os.Stat(filepath.Join(dir, sweep.SummaryFile)); missing == nil {
		p, err = readSweep(dir, at)
	} else {
		p, err = readResult(ctx, dir, at)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: holds no results of sweep, train or bench", dir)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if p.Command != "" {
		p.Command += "\ngo run ./cmd/report " + at
	}
	return p, nil
}
