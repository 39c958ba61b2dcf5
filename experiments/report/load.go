package report

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"ephemera/experiments/sweep"
)

// Dirs returns dir if it holds results, or else the directories in it that do,
// of which there must be one.
func Dirs(dir string) (dirs []string, err error) {
	holds := func(dir string) bool {
		return slices.ContainsFunc([]string{resultFile, sweep.SummaryFile}, func(name string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err == nil
		})
	}
	if holds(dir) {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if sub := filepath.Join(dir, e.Name()); holds(sub) {
			dirs = append(dirs, sub)
		}
	}
	if err == nil && dirs == nil {
		err = fmt.Errorf("%s: holds no results, nor do the directories in it", dir)
	}
	return dirs, err
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
