package experiments

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"ephemera/env"
)

// epochSums keeps what sources published in each epoch, for the worlds of one instance,
// marks and seed: policies that are compared under a seed meet the same epochs, and each
// is drawn once. It holds what does not depend on the crawls, so it changes no bit of
// what a world brings. Worlds share it on any number of goroutines.
type epochSums struct {
	marks env.Marks
	seed  uint64
	in    env.Instance
	own   int64 // room that the instance takes, in sums

	runs    int          // of epochs of a source that are kept, from the first on
	kept    atomic.Int64 // sums
	mu      sync.Mutex   // of whoever keeps more
	sources []atomic.Pointer[[]atomic.Pointer[sumsRun]]
}

// sumsRun has the sums of a source in some epochs in a row. It does not change.
type sumsRun [env.SumsRun]float64

// mostSums bounds the sums of a seed, and all that is kept for worlds to come: 80 MB.
const mostSums = 10_000_000

// mostWorlds bounds the worlds that are kept, among all of which each new one is looked for.
const mostWorlds = 1000

// recentSums are those of the worlds opened last, the latest first.
var recentSums struct {
	sync.Mutex
	list []*epochSums
}

// shareSums returns what the worlds of an instance, marks and seed share; nil where they
// have too many sources.
func shareSums(in env.Instance, marks env.Marks, seed uint64) env.EpochSums {
	n := len(in.Sources)
	if mostSums/n < env.SumsRun {
		return nil
	}
	r := &recentSums
	r.Lock()
	defer r.Unlock()
	found := slices.IndexFunc(r.list, func(s *epochSums) bool { return s.of(in, marks, seed) })
	var s *epochSums
	if found >= 0 {
		s = r.list[found]
		r.list = slices.Delete(r.list, found, found+1)
	} else {
		s = &epochSums{marks: marks, seed: seed, in: in, runs: mostSums / n / env.SumsRun}
		s.in.Sources, s.in.Changes = slices.Clone(in.Sources), slices.Clone(in.Changes) // the caller may change its own
		sources := n
		for k, c := range s.in.Changes {
			s.in.Changes[k].Sources = slices.Clone(c.Sources)
			sources += len(c.Sources)
		}
		s.own = int64(sources) * int64(unsafe.Sizeof(env.Source{})/unsafe.Sizeof(float64(0)))
		s.sources = make([]atomic.Pointer[[]atomic.Pointer[sumsRun]], n)
	}
	// What has no room among the kept goes with the last world that uses it.
	total := s.room()
	for k, other := range r.list {
		if total += other.room(); total > mostSums || k == mostWorlds-1 {
			clear(r.list[k:])
			r.list = r.list[:k]
			break
		}
	}
	r.list = slices.Insert(r.list, 0, s)
	return s
}

// room returns what s takes, in sums.
func (s *epochSums) room() int64 { return s.own + s.kept.Load() }

// of reports whether the sums are of this instance, marks and seed.
func (s *epochSums) of(in env.Instance, marks env.Marks, seed uint64) bool {
	return s.seed == seed && s.marks == marks && slices.Equal(s.in.Sources, in.Sources) &&
		slices.EqualFunc(s.in.Changes, in.Changes, func(a, b env.Change) bool {
			return a.At == b.At && a.Shuffle == b.Shuffle && slices.Equal(a.Sources, b.Sources)
		})
}

// Lookup implements env.EpochSums.
func (s *epochSums) Lookup(i, run int) []float64 {
	if list := s.sources[i].Load(); list != nil && run < len(*list) {
		if r := (*list)[run].Load(); r != nil {
			return r[:]
		}
	}
	return nil
}

// Keep implements env.EpochSums.
func (s *epochSums) Keep(i, run int, sums []float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.sources[i].Load()
	if list == nil || run >= len(*list) {
		longer := make([]atomic.Pointer[sumsRun], max(4, 1<<bits.Len(uint(run))))
		if list != nil {
			for k := range *list {
				longer[k].Store((*list)[k].Load())
			}
		}
		list = &longer
		s.sources[i].Store(list)
	}
	if (*list)[run].Load() == nil {
		r := sumsRun(sums)
		(*list)[run].Store(&r)
		s.kept.Add(env.SumsRun)
	}
}

// Runs implements env.EpochSums.
func (s *epochSums) Runs() int { return s.runs }
