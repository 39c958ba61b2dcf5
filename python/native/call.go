// Package native is the Go half of the Python package ephemera: worlds that are
// stepped K at a time over flat buffers, and one [Call] for all that is rarer:
// policies and learners that are asked outside of a run, long runs, exact
// references. It knows nothing of C; package capi is the
// thin layer of exported functions over it.
//
// What a caller in Python can get wrong comes back as an error.
package native

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Worlds and all else that lives on between calls is named by handles, numbers
// from 1 on that are never used twice.
var (
	named sync.Map // of what each handle names
	last  atomic.Int64
)

// Get returns what has that handle, if it is a T.
func Get[T any](handle int64) (T, error) {
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
	built   any
}

// Call does what its name says: about what has the handle, or with handle 0
// about nothing that is there. The text holds settings in JSON.
func Call(ctx context.Context, what string, handle int64, text []byte, in, room []float64) (Made, error) {
	m := Made{Numbers: room[:0]}
	var err error
	switch what {
	case "worlds":
		m.built, m.Answer, err = openWorlds(ctx, text)
	case "runs":
		m.built, m.Answer, err = startRuns(text)
	case "compare":
		m.Answer, err = compare(text)
	case "crawler":
		err = m.crawler(newCrawler(ctx, text))
	case "load":
		err = m.crawler(loadCrawler(text))
	case "feeds":
		m.built, err = newFeeds(text)
	case "load feeds":
		m.built, err = loadFeeds(text)
	case "curve":
		m.Numbers, err = curve(text, in, m.Numbers)
	case "relax", "instance":
		m.Answer, err = reference(what, text)
	case "catalogue":
		m.Answer = catalogue()
	case "close":
		err = closed(handle)
	case "wait":
		var j *job
		if j, err = Get[*job](handle); err == nil {
			m.Answer, err = j.wait()
		}
	case "items":
		var w *Worlds
		if w, err = Get[*Worlds](handle); err == nil {
			m.Numbers = w.items(m.Numbers)
		}
	default:
		if f, no := Get[*feeds](handle); no == nil {
			err = f.call(what, text, &m)
			break
		}
		var c *crawler
		if c, err = Get[*crawler](handle); err == nil {
			err = c.call(what, in, &m)
		}
	}
	if err != nil {
		return Made{}, err
	}
	if m.built != nil {
		m.Handle = last.Add(1)
		named.Store(m.Handle, m.built)
	}
	return m, nil
}

// crawler has a crawler be what was built.
func (m *Made) crawler(c *crawler, err error) error {
	if err == nil {
		m.built, m.Answer = c, c.describe()
	}
	return err
}

// closed ends what has the handle, and frees it.
func closed(handle int64) error {
	v, ok := named.LoadAndDelete(handle)
	if !ok {
		return fmt.Errorf("handle %d is closed", handle)
	}
	if j, ok := v.(*job); ok {
		j.stop() // it ends after the epochs under way
	}
	return nil
}
