package online

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"ephemera/env/stream"
)

// crew divides the sources into fixed blocks, each with a random stream of its
// own and sums of its own, and has several workers take them. What is computed
// depends on the blocks, never on who takes them, so every number of workers
// gives the same bytes. The goroutines end with each pass.
type crew struct {
	blocks []block
	shares []share // one for each worker
	joined atomic.Int64
	wait   sync.WaitGroup
	phase  phase
	of     *core
	help   func() // made once: starting it allocates nothing
}

// share is the range of blocks with which a worker begins. Ranges keep the
// workers out of each other's cache lines; who is done helps the others.
type share struct {
	next atomic.Int64
	end  int64
	_    [48]byte
}

// block is a range of sources.
type block struct {
	lo, hi    int
	rand      *stream.Rand
	demand    float64 // Σ C f
	fallbacks int
}

type phase int

const (
	planning phase = iota
	learning
)

const (
	blockSize = 1024  // sources
	manyFrom  = 10000 // sources from which all cores are used
)

// init makes the blocks of n sources. A single block draws from r itself, many
// draw from streams that r seeds.
func (c *crew) init(n, workers int, r *stream.Rand) {
	if workers == 0 && n >= manyFrom {
		workers = runtime.GOMAXPROCS(0)
	}
	count := (n + blockSize - 1) / blockSize
	c.shares = make([]share, max(1, min(workers, count)))
	c.blocks = make([]block, count)
	var seed uint64
	if count > 1 {
		seed = r.Uint64()
	}
	for k := range c.blocks {
		b := &c.blocks[k]
		b.lo, b.hi, b.rand = k*blockSize, min((k+1)*blockSize, n), r
		if count > 1 {
			b.rand = stream.New(seed, stream.Policy, uint64(k))
		}
	}
	c.help = func() {
		c.take()
		c.wait.Done()
	}
}

// run goes through all blocks.
func (c *crew) run(p *core, what phase) {
	c.of, c.phase = p, what
	c.joined.Store(0)
	n := len(c.shares)
	for k := range c.shares {
		s := &c.shares[k]
		s.next.Store(int64(k * len(c.blocks) / n))
		s.end = int64((k + 1) * len(c.blocks) / n)
	}
	c.wait.Add(n - 1)
	for range n - 1 {
		go c.help()
	}
	c.take()
	c.wait.Wait()
}

func (c *crew) take() {
	own := int(c.joined.Add(1)) - 1
	for k := range c.shares {
		s := &c.shares[(own+k)%len(c.shares)]
		for {
			j := s.next.Add(1) - 1
			if j >= s.end {
				break
			}
			if c.phase == planning {
				c.of.planBlock(&c.blocks[j])
			} else {
				c.of.learnBlock(&c.blocks[j])
			}
		}
	}
}

// fallbacks counts how often a critic's inverse was not trusted.
func (c *crew) fallbacks() (n int) {
	for k := range c.blocks {
		n += c.blocks[k].fallbacks
	}
	return n
}

func (c *crew) setFallbacks(n int) {
	for k := range c.blocks {
		c.blocks[k].fallbacks = 0
	}
	c.blocks[0].fallbacks = n
}

// streams returns the states of all random streams.
func (c *crew) streams() [][]byte {
	s := make([][]byte, len(c.blocks))
	for k := range c.blocks {
		s[k] = c.blocks[k].rand.State()
	}
	return s
}

func (c *crew) setStreams(s [][]byte) error {
	if len(s) != len(c.blocks) {
		return fmt.Errorf("state of %d random streams; the learner has %d", len(s), len(c.blocks))
	}
	for k := range c.blocks {
		if err := c.blocks[k].rand.SetState(s[k]); err != nil {
			return fmt.Errorf("state of random stream %d: %w", k, err)
		}
	}
	return nil
}
