//go:build cgo

package main

import (
	"fmt"
	"sync"
)

// table holds what C knows by its handle.
type table[T any] struct {
	mu   sync.RWMutex
	last int64
	of   map[int64]T
}

func (t *table[T]) add(v T) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[int64]T{}
	}
	t.last++
	t.of[t.last] = v
	return t.last
}

func (t *table[T]) get(handle int64) (T, error) {
	t.mu.RLock()
	v, ok := t.of[handle]
	t.mu.RUnlock()
	if !ok {
		return v, fmt.Errorf("handle %d is closed", handle)
	}
	return v, nil
}

func (t *table[T]) take(handle int64) (T, error) {
	v, err := t.get(handle)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, handle)
	return v, err
}
