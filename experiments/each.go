package experiments

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Each calls f for the numbers from 0 to n−1, at most workers at once, until one
// fails. A panic is an error, and name, if not nil, says of which number an error is.
// progress, if not nil, is told how many are done.
func Each(ctx context.Context, n, workers int, progress func(done, total int), name func(i int) string, f func(ctx context.Context, i int) error) error {
	var mu sync.Mutex
	done := 0
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i := range n {
		if inner.Err() != nil {
			break
		}
		g.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
				}
				if err != nil && name != nil {
					err = fmt.Errorf("%s: %w", name(i), err)
				}
			}()
			if err := f(inner, i); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if done++; progress != nil {
				progress(done, n)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
