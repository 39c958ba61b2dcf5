package native

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
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
// builds gets a handle of its own, otherwise 0; the answer is in JSON.
func Call(ctx context.Context, what string, handle int64, text []byte) (made int64, answer []byte, err error) {
	var built, told any
	switch what {
	case "worlds":
		built, told, err = Open(ctx, text)
	case "run":
		built, told, err = Start(text)
	case "crawler":
		built, told, err = described(NewCrawler(ctx, text))
	case "load":
		built, told, err = described(LoadCrawler(text))
	case "relax":
		told, err = relax(text)
	case "instance":
		told, err = instance(text)
	case "catalogue":
		told = catalogue()
	case "close":
		err = closed(handle)
	default:
		var c *Crawler
		if c, err = Get[*Crawler](handle); err == nil {
			built, told, err = c.call(what, text)
		}
	}
	if err != nil {
		return 0, nil, err
	}
	if built != nil {
		made = last.Add(1)
		named.Store(made, built)
	}
	answer, err = json.Marshal(told)
	return made, answer, err
}

// call is Call about a crawler.
func (c *Crawler) call(what string, text []byte) (built, told any, err error) {
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
		return described(c.freeze(text))
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
	if c, ok := v.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// number is one that JSON may not have: ±Inf is written as ±1e999, which readers
// take for it, and NaN as null.
type number float64

// MarshalJSON implements json.Marshaler.
func (v number) MarshalJSON() ([]byte, error) {
	switch x := float64(v); {
	case math.IsNaN(x):
		return []byte("null"), nil
	case math.IsInf(x, 0):
		return fmt.Appendf(nil, "%de999", int(math.Copysign(1, x))), nil
	default:
		return json.Marshal(x)
	}
}
