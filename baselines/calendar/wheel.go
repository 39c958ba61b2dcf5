package calendar

// slab holds the entries of all wheels in chunks of two cache lines: the number
// of the next chunk, then source numbers. Chains of single sources would wait
// for memory at every link.
type slab struct {
	chunks []chunk
	free   int32 // first free chunk
}

const chunkRoom = 31

type chunk struct {
	next int32
	ids  [chunkRoom]int32
}

// none ends a chain of chunks. Numbers count from 1.
const none = 0

func (s *slab) clear() { s.chunks, s.free = s.chunks[:0], none }

func (s *slab) at(k int32) *chunk { return &s.chunks[k-1] }

// bucket is a chain of chunks of which the first may be partly filled.
type bucket struct {
	head int32
	n    int32 // sources in the first chunk
}

func (s *slab) push(b *bucket, id int32) {
	if b.head == none || b.n == chunkRoom {
		k := s.free
		if k == none {
			s.chunks = append(s.chunks, chunk{})
			k = int32(len(s.chunks))
		} else {
			s.free = s.at(k).next
		}
		s.at(k).next = b.head
		b.head, b.n = k, 0
	}
	s.at(b.head).ids[b.n] = id
	b.n++
}

// take empties a bucket and appends its sources to dst.
func (s *slab) take(b *bucket, dst []int32) []int32 {
	head, n := b.head, b.n
	*b = bucket{}
	for head != none {
		k := s.at(head)
		dst = append(dst, k.ids[:n]...)
		next := k.next
		k.next, s.free = s.free, head
		head, n = next, chunkRoom
	}
	return dst
}

// wheel is a ring of buckets, one for each epoch to come. Sources that sleep for
// longer than a turn are passed on when their bucket comes round.
type wheel struct {
	buckets []bucket // a power of two, and one of sources that never wake
	n       int      // sources
}

func (w *wheel) clear() {
	clear(w.buckets)
	w.n = 0
}

// bucket returns where sources that wake at an epoch lie.
func (w *wheel) bucket(wake int32) *bucket {
	last := len(w.buckets) - 1
	if wake == Never {
		return &w.buckets[last]
	}
	return &w.buckets[int(wake)&(last-1)]
}

// maxSleep is a sleep that is not worth an end. The levels move before.
const maxSleep = 1 << 28

// push has a source sleep for the given number of epochs.
func (w *wheel) push(c *Calendar, id int32, epochs int) {
	wake := int32(Never)
	if epochs < maxSleep {
		wake = c.epoch + int32(epochs)
	}
	c.marks[id].wake = wake
	c.slab.push(w.bucket(wake), id)
	w.n++
}

// due takes the sources out that wake now and appends them to dst.
func (w *wheel) due(c *Calendar, dst []int32) []int32 {
	from := len(dst)
	dst = c.slab.take(w.bucket(c.epoch), dst)
	awake := dst[:from]
	for _, id := range dst[from:] {
		if wake := c.marks[id].wake; wake == c.epoch {
			awake = append(awake, id)
		} else {
			c.slab.push(w.bucket(wake), id)
		}
	}
	w.n -= len(awake) - from
	return awake
}

// empty takes all sources out and appends them to dst.
func (w *wheel) empty(c *Calendar, dst []int32) []int32 {
	for b := range w.buckets {
		dst = c.slab.take(&w.buckets[b], dst)
	}
	w.n = 0
	return dst
}
