// Package native is the Go half of the Python package ephemera: worlds that are
// stepped K at a time over flat buffers, and one [Made.Call] for all that is rarer:
// policies and learners that are asked outside of a run, long runs, exact references.
//
// What a caller in Python can get wrong comes back as an error, there or here.
package native

import (
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

// get returns what has that handle, if it is a T.
func get[T callee](handle int64) (T, error) {
	v, _ := named.Load(handle)
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("handle %d is closed", handle)
	}
	return t, nil
}

// Made is what goes into a call as numbers, and what it brings.
type Made struct {
	In      []float64
	Handle  int64     // of what was built, 0 for nothing
	Answer  any       // what JSON can hold, nil for nothing
	Numbers []float64 // in the room that was given, if that is enough
}

// Call does what its name says: about what has the handle, or with handle 0
// about nothing that is there. The text holds settings in JSON.
func (m *Made) Call(what string, handle int64, text []byte) (err error) {
	if handle != 0 {
		about, err := get[callee](handle)
		if err != nil {
			return err
		}
		if what != "close" {
			return about.call(what, text, m)
		}
		named.Delete(handle)
		if runs, ok := about.(*job); ok {
			runs.stop() // they end after the epochs under way
		}
		return nil
	}
	switch what {
	case "worlds":
		return m.build(openWorlds(text))
	case "runs":
		return m.build(startRuns(text))
	case "crawler":
		return m.build(newCrawler(text))
	case "load":
		return m.build(loadCrawler(text))
	case "feeds":
		return m.build(newFeeds(text))
	case "load feeds":
		return m.build(loadFeeds(text))
	case "curve":
		m.Numbers, err = curve(text, m.In, m.Numbers)
	case "relax", "instance":
		m.Answer, err = reference(what, text)
	case "compare":
		m.Answer, err = compare(text)
	case "catalogue":
		m.Answer = catalogue()
	default:
		return unknown(what)
	}
	return err
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
