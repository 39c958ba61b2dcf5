package calendar

// slab holds the entries of all wheels in chunks of two cache lines: the number
// of the next chunk, then source numbers. An entry is never searched for: it
// is void when the source's mark no longer names its epoch.
type slab struct {
	words []int32
	free  int32 // first free chunk, none if none
	used  int   // entries that lie in chunks, void ones included
}

const (
	none      = -1
	chunkLen  = 32
	chunkRoom = chunkLen - 1
)

func (s *slab) reset(entries int) {
	if need := entries / chunkRoom * chunkLen; cap(s.words) < need {
		s.words = make([]int32, 0, need+need/32)
	}
	s.words, s.free, s.used = s.words[:0], none, 0
}

func (s *slab) take() int32 {
	if k := s.free; k != none {
		s.free = s.words[k*chunkLen]
		return k
	}
	k := len(s.words) / chunkLen
	for range chunkLen {
		s.words = append(s.words, 0)
	}
	return int32(k)
}

func (s *slab) chunk(k int32) *[chunkLen]int32 {
	return (*[chunkLen]int32)(s.words[int(k)*chunkLen:])
}

func (s *slab) release(k int32) {
	s.words[int(k)*chunkLen] = s.free
	s.free = k
}

// bucket is a list of chunks of which the first may be partly filled.
type bucket struct {
	head int32
	n    int32 // entries in the first chunk
}

func (s *slab) push(b *bucket, e int32) {
	if b.head == none || b.n == chunkRoom {
		k := s.take()
		s.words[int(k)*chunkLen] = b.head
		b.head, b.n = k, 0
	}
	b.n++
	s.words[int(b.head)*chunkLen+int(b.n)] = e
	s.used++
}

// drain appends the entries of a bucket to dst and empties it.
func (s *slab) drain(b *bucket, dst []int32) []int32 {
	head, n := b.head, b.n
	*b = bucket{head: none}
	from := len(dst)
	for head != none {
		ch := s.chunk(head)
		dst = append(dst, ch[1:1+n]...)
		next := ch[0]
		s.release(head)
		head, n = next, chunkRoom
	}
	s.used -= len(dst) - from
	return dst
}

// wheel is a calendar of the next len(buckets) epochs, a power of two.
type wheel struct {
	buckets []bucket
	never   bucket // sources that will not wake by themselves
	n       int    // entries, void ones included
}

func (w *wheel) reset(span int) {
	if len(w.buckets) != span {
		w.buckets = make([]bucket, span)
	}
	for b := range w.buckets {
		w.buckets[b] = bucket{head: none}
	}
	w.never, w.n = bucket{head: none}, 0
}

func (w *wheel) at(epoch int32) *bucket { return &w.buckets[int(epoch)&(len(w.buckets)-1)] }

// heldBack tells an entry that reached the end of the wheel before its epoch.
func heldBack(e int32) bool { return e < 0 }

// source returns the number of an entry's source.
func source(e int32) int32 { return e ^ e>>31 }
