package sweep

import "sync/atomic"

// ordered makes pieces 0 to n−1 on several goroutines and takes them one after
// the other in this one; both may fail. At most two pieces for each goroutine
// are made and not yet taken, which bounds the memory. The first error in the
// order of the pieces ends it. maker is called once by each goroutine; what it
// returns is used by that goroutine alone.
func ordered[T any](n, workers int, maker func() (piece func(i int) (T, error)), take func(T) error) error {
	type made struct {
		piece T
		err   error
	}
	workers = max(1, min(workers, n))
	if workers == 1 {
		piece := maker()
		for i := range n {
			p, err := piece(i)
			if err == nil {
				err = take(p)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	var (
		window = 2 * workers
		slots  = make([]chan made, window) // piece i comes in slot i mod window
		tokens = make(chan struct{}, window)
		quit   = make(chan struct{})
		ended  = make(chan struct{}, workers)
		next   atomic.Int64
	)
	for i := range slots {
		slots[i] = make(chan made, 1)
		tokens <- struct{}{}
	}
	for range workers {
		go func() {
			defer func() { ended <- struct{}{} }()
			piece := maker()
			for {
				select {
				case <-tokens:
				case <-quit:
					return
				}
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				p, err := piece(i)
				slots[i%window] <- made{p, err} // never waits: a token stood for the slot
			}
		}()
	}
	defer func() {
		close(quit)
		for range workers {
			<-ended
		}
	}()
	for i := range n {
		m := <-slots[i%window]
		if m.err == nil {
			m.err = take(m.piece)
		}
		if m.err != nil {
			return m.err
		}
		tokens <- struct{}{}
	}
	return nil
}
