// Package native is the Go half of the Python package ephemera: worlds that are
// stepped K at a time over flat buffers, and one [Call] for all that is rarer:
// policies and learners that are asked outside of a run, long runs, exact
// references. Package capi is the thin layer of exported functions over it.
//
// What a caller in Python can get wrong comes back as an error.
package native

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// What lives on between calls is named by handles, numbers from 1 on that are
// never used twice.
var (
	named sync.Map // of what each handle names, a callee
	last  atomic.Int64
)

// callee is what calls are about.
type callee interface {
	describe() any // the answer when it is built
	call(what string, text []byte, m *Made) error
}

// Get returns what has that handle, if it is a T.
func Get[T callee](handle int64) (T, error) {
	v, _ := named.Load(handle)
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("handle %d is closed", handle)
	}
	return t, nil
}

// Made is what a call brings.
type Made struct {
	Handle  int64     // of what was built, 0 for nothing
	Answer  any       // what JSON can hold, nil for nothing
	Numbers []float64 // in the room that was given, if that is enough
}

// Call does what its name says: about what has the handle, or with handle 0
// about nothing that is there. The text holds settings in JSON.
func Call(ctx context.Context, what string, handle int64, text []byte, in, room []float64) (m Made, err error) {
	m.Numbers = room[:0]
	if handle != 0 {
		about, err := Get[callee](handle)
		if err != nil {
			return m, err
		}
		if what != "close" {
			err = about.call(what, text, &m)
			return m, err
		}
		named.Delete(handle)
		if runs, ok := about.(*job); ok {
			runs.stop() // they end after the epochs under way
		}
		return m, nil
	}
	switch what {
	case "worlds":
		err = m.build(openWorlds(ctx, text))
	case "runs":
		err = m.build(startRuns(text))
	case "crawler":
		err = m.build(newCrawler(ctx, text))
	case "load":
		err = m.build(loadCrawler(text))
	case "feeds":
		err = m.build(newFeeds(text))
	case "load feeds":
		err = m.build(loadFeeds(text))
	case "curve":
		m.Numbers, err = curve(text, in, m.Numbers)
	case "relax", "instance":
		m.Answer, err = reference(what, text)
	case "compare":
		m.Answer, err = compare(text)
	case "catalogue":
		m.Answer = catalogue()
	default:
		err = unknown(what)
	}
	return m, err
}

// build gives what was built a handle.
func (m *Made) build(c callee, err error) error {
	if err == nil {
		m.Handle, m.Answer = last.Add(1), c.describe()
		named.Store(m.Handle, c)
	}
	return err
}

func unknown(what string) error { return fmt.Errorf("unknown call %q", what) }
