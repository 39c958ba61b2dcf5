package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"ephemera/experiments/files"
	"ephemera/experiments/papers"
)

// picturesDir is where the figures go unless -out names another directory.
const picturesDir = "results/papers"

// reproduce runs -preset papers: it draws the figures, then measures and judges
// what the papers print. With -out it keeps what each seed gave.
func (c *command) reproduce(ctx context.Context, show func(done, total int), clear func(), stdout io.Writer) error {
	if err := c.flags.Only("-preset papers has its own worlds and policies", "preset", "seeds", "seed", "steps", "workers", "out", "shard", "format", "progress"); err != nil {
		return err
	}
	out := c.batch.Dir
	o := papers.Options{
		Seeds: c.seeds, Seed: c.runs.Seed(), Steps: c.runs.Steps(), Workers: c.batch.Workers, Progress: show,
		Dir: out, Shard: c.batch.Shard,
	}
	if !c.flags.Given("seeds") {
		o.Seeds = papers.DefaultSeeds
	}
	pictures, err := papers.Pictures(o.Seed)
	if err == nil {
		err = files.Put(cmp.Or(out, picturesDir), pictures...)
	}
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	r, missing, err := papers.Run(ctx, o)
	clear()
	switch {
	case err != nil:
		return err
	case missing > 0:
		_, err := fmt.Fprintf(stdout, "%d of %d seeds are measured; the call that finds all of them in %s prints the report.\n", o.Seeds-missing, o.Seeds, out)
		return err
	}
	return r.Write(stdout, c.output.Format())
}
