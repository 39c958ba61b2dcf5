package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

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
	pictures, err := papers.Pictures(o.Seed)
	if err == nil {
		err = files.Put(cmp.Or(out, picturesDir), pictures...)
	}
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	r, err := papers.Run(ctx, o)
	clear()
	if err != nil {
		return err
	}
	return r.Write(stdout, format)
}
