// Package stream hands out the random streams of the project.
//
// Every random draw of a run comes from a stream that is derived from the
// run's seed and the role that draws: the world, a policy, a family. Two
// roles never share a stream, so policies that are compared under one seed
// see the same world, however much each of them draws.
//
// This is the one place that knows golang.org/x/exp/rand. Its seeding is weak
// (near seeds give near states), so a seed and a path are first hashed by
// SplitMix64.
package stream

//lint:ignore SA1019 the frozen generator is wanted: its streams never change
import "golang.org/x/exp/rand"

// Roles are the first element of a stream's path.
const (
	World  uint64 = 1 + iota // arrivals and marks
	Policy                   // exploration and randomised choices
	_                        // of a role that is gone; streams of the others stay
	Family                   // random instances
	Test                     // draws of tests
)

// Rand draws from a PCG stream. It holds a *rand.Rand of x/exp, and it is a
// Source of math/rand/v2 (it has Uint64), so gonum's distributions take it.
type Rand struct {
	*rand.Rand
	pcg rand.PCGSource
}

// New returns the stream of (seed, path). Equal arguments give equal streams;
// any other arguments give a stream that is independent of it for all
// practical purposes.
func New(seed uint64, path ...uint64) *Rand {
	r := &Rand{}
	r.Reset(seed, path...)
	r.Rand = rand.New(&r.pcg)
	return r
}

// Reset turns r into the stream of (seed, path) without allocating.
func (r *Rand) Reset(seed uint64, path ...uint64) {
	h := Mix(seed)
	for _, p := range path {
		h = Mix(h ^ p)
	}
	r.pcg.Seed(h)
}

// State returns the state of the stream, so that a run can be stored and
// taken up again.
func (r *Rand) State() []byte {
	b, err := r.pcg.MarshalBinary()
	if err != nil {
		panic("stream: " + err.Error()) // the PCG source never fails
	}
	return b
}

// SetState takes up the stream at a state that State returned.
func (r *Rand) SetState(b []byte) error { return r.pcg.UnmarshalBinary(b) }

// Mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014) applied to
// the next point of its Weyl sequence: a bijection of 64-bit words in which
// every input bit reaches every output bit.
func Mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
