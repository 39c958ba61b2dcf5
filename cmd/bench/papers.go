package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments/files"
	"ephemera/experiments/papers"
	"ephemera/experiments/result"
)

// picturesDir is where the figures go unless -out names another directory.
const picturesDir = "results/papers"

// reproduce runs -preset papers: it draws the figures, then measures and judges
// what the papers print.
func reproduce(ctx context.Context, f *cli.Flags, out string, format result.Format, o papers.Options, clear func(), stdout io.Writer) error {
	if err := f.Only("-preset papers has its own worlds and policies", "preset", "seeds", "seed", "steps", "workers", "out", "format", "progress"); err != nil {
		return err
	}
	if err := draw(out, o.Seed); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	r, err := papers.Run(ctx, o)
	clear()
	if err != nil {
		return err
	}
	return r.Write(stdout, format)
}

// draw writes the figures. In the default directory, which holds nothing else,
// they replace those of an earlier run. In a directory that was named, a file
// that is there already must hold the same bytes; otherwise nothing is written.
func draw(dir string, seed uint64) error {
	own := dir == ""
	if own {
		dir = picturesDir
	}
	pictures, err := papers.Pictures(seed)
	if err != nil {
		return err
	}
	d, err := files.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	var drawn []files.File
	for _, p := range pictures {
		old, err := os.ReadFile(d.Path(p.Name))
		switch {
		case err == nil && bytes.Equal(old, p.Data):
			continue
		case err == nil && !own:
			return fmt.Errorf("%s is there already and would be replaced; name another directory", d.Path(p.Name))
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		drawn = append(drawn, p)
	}
	return d.Put(drawn...)
}
