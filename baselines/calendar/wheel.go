package calendar

// wheel is a ring of buckets of sources, one for each epoch to come. Sources
// that sleep for longer than a turn stay in their bucket when it comes round.
type wheel struct {
	buckets [][]int32 // a power of two, and one of sources that never wake
	n       int       // sources
}

// bucket returns where sources that wake at an epoch lie.
func (w *wheel) bucket(wake int32) *[]int32 {
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
	b := w.bucket(wake)
	*b = append(*b, id)
	w.n++
}

// due takes the sources out that wake now and appends them to dst.
func (w *wheel) due(c *Calendar, dst []int32) []int32 {
	b := w.bucket(c.epoch)
	rest := (*b)[:0]
	for _, id := range *b {
		if c.marks[id].wake == c.epoch {
			dst = append(dst, id)
		} else {
			rest = append(rest, id)
		}
	}
	w.n -= len(*b) - len(rest)
	*b = rest
	return dst
}

// roomy is the room of a bucket that is not kept for later.
const roomy = 1 << 10

// empty takes all sources out and appends them to dst.
func (w *wheel) empty(dst []int32) []int32 {
	for x, b := range w.buckets {
		dst = append(dst, b...)
		if w.buckets[x] = b[:0]; cap(b) > roomy {
			w.buckets[x] = nil
		}
	}
	w.n = 0
	return dst
}
