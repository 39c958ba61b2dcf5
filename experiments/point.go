package experiments

import (
	"context"
	"encoding/json"

	"ephemera/env"
)

// Point is where the run of a learner stands between two epochs, as data. The
// world adds no more to it than when each source was crawled last: what waits
// at a source depends on that and the seed alone.
type Point struct {
	Sums    Outcome         `json:"sums"` // sums, not means
	Epoch   int             `json:"epoch"`
	Last    []int           `json:"last"` // epoch of each source's last crawl; −1 before the first
	Learner json.RawMessage `json:"-"`
}

// catchUp takes a world that has just been opened to a point: it crawls each
// source at the epoch of its last crawl, and not before.
func catchUp(ctx context.Context, w env.World, p *Point) error {
	crawls := map[int][]int{} // by epoch
	for i, n := range p.Last {
		crawls[n] = append(crawls[n], i)
	}
	for n := range p.Epoch {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := w.Step(crawls[n]); err != nil {
			return err
		}
	}
	return nil
}
