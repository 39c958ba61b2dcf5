package schedule

// order is what a binary heap is ordered by, and where an item notes its place.
type order[T any] struct {
	less  func(a, b T) bool
	moved func(x T, to int)
}

func (o *order[T]) push(h []T, x T) []T {
	h = append(h, x)
	o.up(h, len(h)-1)
	return h
}

// remove takes out the item at place i.
func (o *order[T]) remove(h []T, i int) []T {
	last := len(h) - 1
	x := h[last]
	var zero T
	h[last] = zero
	h = h[:last]
	if i < last {
		h[i] = x
		o.down(h, i)
		o.up(h, i)
	}
	return h
}

func (o *order[T]) up(h []T, i int) {
	x := h[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !o.less(x, h[parent]) {
			break
		}
		h[i] = h[parent]
		o.moved(h[i], i)
		i = parent
	}
	h[i] = x
	o.moved(x, i)
}

func (o *order[T]) down(h []T, i int) {
	x := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && o.less(h[child+1], h[child]) {
			child++
		}
		if !o.less(h[child], x) {
			break
		}
		h[i] = h[child]
		o.moved(h[i], i)
		i = child
	}
	h[i] = x
	o.moved(x, i)
}
