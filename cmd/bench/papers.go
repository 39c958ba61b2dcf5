package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments"
	"ephemera/experiments/files"
	"ephemera/experiments/papers"
	"ephemera/experiments/result"
)

// picturesDir is where the figures go unless -out names another directory.
const picturesDir = "results/papers"

// reproduce runs -preset papers: it draws the figures, then measures and judges
// what the papers print. With -out it keeps what each seed gave.
func reproduce(ctx context.Context, f *cli.Flags, out, shard string, format result.Format, o papers.Options, clear func(), stdout io.Writer) (err error) {
	if err := f.Only("-preset papers has its own worlds and policies", "preset", "seeds", "seed", "steps", "workers", "out", "shard", "format", "progress"); err != nil {
		return err
	}
	if shard != "" {
		if o.Shard, err = experiments.ParseShard(shard); err != nil {
			return cli.Usagef("-shard: %w", err)
		}
		if out == "" {
			return cli.Usagef("-shard needs -out, where all shards keep what they measure")
		}
	}
	o.Dir = out
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
	return r.Write(stdout, format)
}
