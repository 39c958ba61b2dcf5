package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments/papers"
	"ephemera/experiments/result"
)

// picturesDir is where the figures go unless -out names another directory.
const picturesDir = "results/papers"

// reproduce runs -preset papers: it draws the figures, then measures and judges
// what the papers print. With -out it keeps what each seed gave.
func (c *command) reproduce(ctx context.Context, clear func(), stdout, stderr io.Writer) error {
	if err := c.Flags.Only("-preset papers has its own worlds and policies", "preset", "seeds", "seed", "steps", "workers", "out", "shard", "format"); err != nil {
		return err
	}
	o := papers.Options{Seeds: c.Seeds, Seed: c.Run.Seed, Steps: c.Run.Steps, Batch: c.Batch}
	if !c.Flags.Given("seeds") {
		o.Seeds = papers.DefaultSeeds
	}
	if err := papers.Pictures(cmp.Or(c.Batch.Dir, picturesDir), o.Seed); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	r, err := papers.Run(ctx, o)
	clear()
	if err != nil {
		return err
	}
	if r == nil {
		cli.SayShard(stderr, "bench", c.Batch.Shard)
		return nil
	}
	return result.Print(stdout, r, c.Format)
}
