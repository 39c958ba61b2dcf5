package schedule

// order is what a heap is ordered by, and where an item notes its place.
type order[T any] struct {
	less  func(a, b T) bool
	moved func(x T, to int)
}

// indexed is a [heap.Interface] whose items know their places, so that any of them
// can be removed.
type indexed[T any] struct {
	*order[T]
	items []T
}

func (h *indexed[T]) Len() int           { return len(h.items) }
func (h *indexed[T]) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }

func (h *indexed[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.moved(h.items[i], i)
	h.moved(h.items[j], j)
}

func (h *indexed[T]) Push(x any) {
	h.items = append(h.items, x.(T))
	h.moved(x.(T), len(h.items)-1)
}

func (h *indexed[T]) Pop() any {
	last := len(h.items) - 1
	x := h.items[last]
	clear(h.items[last:])
	h.items = h.items[:last]
	return x
}
