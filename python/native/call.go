// Package native is the Go half of the Python package ephemera: worlds that are
// stepped K at a time over flat buffers, policies and learners that are asked
// outside of a run, and long runs that Python takes part in. It knows nothing of
// C; package capi is the thin layer of exported functions over it.
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

// Call does what is rare, as its name says: about what has the handle, or with
// handle 0 about nothing that is there. The text holds settings in JSON. What it
// builds gets a handle of its own, otherwise 0; the answer is what JSON can hold.
func Call(ctx context.Context, what string, handle int64, text []byte) (made int64, answer any, err error) {
	var built any
	switch what {
	case "worlds":
		built, answer, err = Open(ctx, text)
	case "run":
		built, answer, err = Start(text)
	case "crawler":
		built, answer, err = described(NewCrawler(ctx, text))
	case "load":
		built, answer, err = described(LoadCrawler(text))
	case "relax":
		answer, err = relax(text)
	case "instance":
		answer, err = instance(text)
	case "catalogue":
		answer = catalogue()
	case "close":
		err = closed(handle)
	default:
		var c *Crawler
		if c, err = Get[*Crawler](handle); err == nil {
			built, answer, err = c.call(what)
		}
	}
	if err != nil {
		return 0, nil, err
	}
	if built != nil {
		made = last.Add(1)
		named.Store(made, built)
	}
	return made, answer, nil
}

// call is Call about a crawler.
func (c *Crawler) call(what string) (built, told any, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch what {
	case "describe":
		return nil, c.describe(), nil
	case "thresholds":
		told, err = c.thresholds()
	case "save":
		told, err = c.save()
	case "freeze":
		return described(c.freeze())
	default:
		err = fmt.Errorf("unknown call %q", what)
	}
	return nil, told, err
}

func described(c *Crawler, err error) (built, told any, _ error) {
	if err != nil {
		return nil, nil, err
	}
	return c, c.describe(), nil
}

// closed ends what has the handle, and frees it.
func closed(handle int64) error {
	v, ok := named.LoadAndDelete(handle)
	if !ok {
		return fmt.Errorf("handle %d is closed", handle)
	}
	if j, ok := v.(*Job); ok {
		j.stop() // it ends as soon as it looks
	}
	return nil
}
