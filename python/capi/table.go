//go:build cgo

package main

import (
	"fmt"
	"sync"
)

// table holds what C knows by its handle.
type table struct {
	mu   sync.RWMutex
	last int64
	of   map[int64]any
}

func (t *table) add(v any) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[int64]any{}
	}
	t.last++
	t.of[t.last] = v
	return t.last
}

// get returns what has that handle, if it is a T.
func get[T any](t *table, handle int64) (T, error) {
	t.mu.RLock()
	v, ok := t.of[handle].(T)
	t.mu.RUnlock()
	if !ok {
		return v, fmt.Errorf("handle %d is closed", handle)
	}
	return v, nil
}

func (t *table) take(handle int64) (any, error) {
	v, err := get[any](t, handle)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, handle)
	return v, err
}
