// Package native is the Go half of the Python package ephemera: worlds that are
// stepped K at a time over flat buffers, and [Call] for all that is rarer: policies
// and learners that are asked outside of a run, long runs, exact references.
//
// What a caller in Python can get wrong comes back as an error, there or here.
package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// functions are called by name. Their arguments and what they return are what JSON
// can hold, but for [Numbers], a callee, which a handle names from then on, and an
// error. A context.CancelFunc of the name "close" is called when the handle is closed.
type functions map[string]any

// callee is what has functions.
type callee interface{ functions() functions }

func (f functions) functions() functions { return f }

// lasting are the functions that need no handle: 0 stands for it in a call.
var lasting = functions{
	"worlds": openWorlds, "runs": openRuns, "crawler": newCrawler, "load": loadCrawler,
	"feeds": newFeeds, "load feeds": loadFeeds, "relax": relax, "instance": instance, "curve": curve,
	"compare": compare, "catalogue": catalogue, "means": means, "measures": measures,
}

// Functions have handles, numbers from 1 on that are never used twice.
var (
	named sync.Map
	last  atomic.Int64
)

// get returns the functions of a handle.
func get(handle int64) (functions, error) {
	of, ok := named.Load(handle)
	if !ok {
		return nil, fmt.Errorf("handle %d is closed", handle)
	}
	return of.(functions), nil
}

// Numbers are the caller's; a function may write over them.
type Numbers []float64

// Call calls a function of a handle with arguments, a list in JSON, and returns its
// answer in JSON.
func Call(handle int64, name string, arguments []byte, n Numbers) ([]byte, error) {
	of := lasting
	if handle != 0 {
		var err error
		if of, err = get(handle); err != nil {
			return nil, err
		}
	}
	if name == "close" {
		named.Delete(handle)
		if stop, ok := of[name].(context.CancelFunc); ok {
			stop()
		}
		return nil, nil
	}
	f := reflect.ValueOf(of[name])
	if !f.IsValid() {
		return nil, fmt.Errorf("unknown call %q", name)
	}
	var to []any // where the arguments go
	var values []reflect.Value
	for i := range f.Type().NumIn() {
		v := reflect.New(f.Type().In(i))
		if values = append(values, v.Elem()); v.Elem().Type() == reflect.TypeOf(n) {
			v.Elem().Set(reflect.ValueOf(n))
		} else {
			to = append(to, v.Interface())
		}
	}
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(&to); err != nil {
		return nil, fmt.Errorf("settings: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	var answer any
	for _, v := range slices.Backward(f.Call(values)) { // an error first
		switch x := v.Interface().(type) {
		case nil:
		case error:
			return nil, x
		case callee:
			handle := last.Add(1)
			named.Store(handle, x.functions())
			answer = handle
		default:
			answer = x
		}
	}
	return json.Marshal(answer)
}
