// Package ring holds sources by the epoch at which they wake, so that an epoch
// costs what wakes in it and not what exists.
//
//  1. A [Ring] has a power of two of buckets. A source that wakes at epoch e lies
//     in the chain of bucket e modulo their number. A chain is linked through
//     the sources themselves, 12 bytes a source, in both directions.
//  2. [Ring.Add] and [Ring.Remove] link and unlink one source.
//  3. [Ring.Due] takes out what wakes. A source that sleeps for longer than one
//     turn of the ring stays in its chain while others leave it. [Ring.At] looks ahead.
//
// The ring says nothing of why a source sleeps or what is done with it.
package ring

import (
	"math"
	"math/bits"
	"slices"
)

// Ring holds sources by the epoch at which they wake. Sources are numbered from
// 0, epochs from 0 to 2³¹ − 1.
type Ring struct {
	head  []int32 // the first source of each chain, or none
	links []link  // of each source
	next  int32   // the first epoch that Due has not taken
}

// link is the place of one source.
type link struct {
	wake         int32 // epoch, or none where the source is not in the ring
	before, next int32 // neighbours in the chain, or none
}

const none = -1

// New returns a ring for the given number of sources; one turn of it takes the
// given number of epochs, 1 or more, or up to twice as many. Every bucket of an epoch costs
// 4 bytes. A turn that is longer than most sleeps is the fastest.
func New(sources, turn int) *Ring {
	r := &Ring{head: make([]int32, 1<<bits.Len(uint(turn-1)))}
	r.grow(sources)
	r.Clear()
	return r
}

// Clear takes all sources out.
func (r *Ring) Clear() {
	for b := range r.head {
		r.head[b] = none
	}
	for i := range r.links {
		r.links[i].wake = none
	}
}

// grow makes room for the given number of sources.
func (r *Ring) grow(sources int) {
	r.links = slices.Grow(r.links, max(0, sources-len(r.links)))
	for len(r.links) < sources {
		r.links = append(r.links, link{wake: none})
	}
}

// Next returns the first epoch that Due has not taken.
func (r *Ring) Next() int { return int(r.next) }

// Wake returns the epoch at which source i wakes, and whether it is in the ring.
func (r *Ring) Wake(i int) (epoch int, ok bool) {
	if i >= len(r.links) || r.links[i].wake == none {
		return 0, false
	}
	return int(r.links[i].wake), true
}

// Add puts source i to sleep until an epoch, and no other. Where Due has taken that
// epoch already, the source wakes at the next one. A number beyond all others makes
// room for itself.
func (r *Ring) Add(i, epoch int) {
	r.grow(i + 1)
	if r.links[i].wake != none {
		r.Remove(i)
	}
	wake := int32(min(max(epoch, int(r.next)), math.MaxInt32))
	h := r.bucket(wake)
	r.links[i] = link{wake: wake, before: none, next: *h}
	if *h != none {
		r.links[*h].before = int32(i)
	}
	*h = int32(i)
}

// Remove takes source i out of the ring, if it is there.
func (r *Ring) Remove(i int) {
	if i >= len(r.links) || r.links[i].wake == none {
		return
	}
	l := r.links[i]
	if l.before == none {
		*r.bucket(l.wake) = l.next
	} else {
		r.links[l.before].next = l.next
	}
	if l.next != none {
		r.links[l.next].before = l.before
	}
	r.links[i].wake = none
}

// Due takes the sources out that wake at an epoch or before, and appends their
// numbers to dst in rising order, whatever the order in which they came.
func (r *Ring) Due(dst []int32, epoch int) []int32 {
	from := len(dst)
	last := int32(min(epoch, math.MaxInt32-1))
	// After one turn every bucket has been seen.
	for e := max(r.next, last-int32(len(r.head))+1); e <= last; e++ {
		for i := *r.bucket(e); i != none; {
			after := r.links[i].next
			if r.links[i].wake <= last {
				r.Remove(int(i))
				dst = append(dst, i)
			}
			i = after
		}
	}
	r.next = max(r.next, last+1)
	slices.Sort(dst[from:])
	return dst
}

// At appends the sources to dst that wake at an epoch, in rising order. They stay in the ring.
func (r *Ring) At(dst []int32, epoch int) []int32 {
	from := len(dst)
	for i := *r.bucket(int32(epoch)); i != none; i = r.links[i].next {
		if int(r.links[i].wake) == epoch {
			dst = append(dst, i)
		}
	}
	slices.Sort(dst[from:])
	return dst
}

// bucket returns the head of the chain of an epoch.
func (r *Ring) bucket(epoch int32) *int32 { return &r.head[int(epoch)&(len(r.head)-1)] }
