// Capi is the C interface of the Python package:
//
//	go build -buildmode=c-shared -o libephemera.so ./python/capi
//
// A function returns 0, or 1 with the text of the error in *answer, which the
// caller hands to eph_free. What lives on is named by handles. Buffers belong to
// the caller; Go keeps none of them but those of the last eph_bind.
package main

/*
#include <stdint.h>
#include <stdlib.h>
*/
import "C"

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"
	"unsafe"

	"ephemera/env"
	"ephemera/python/native"
)

func main() {}

// at returns what C has at an address, nil for NULL.
func at[T, P any](address *P, length int) []T {
	if address == nil {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(address)), length)
}

// status returns that of an error, with its text in the answer.
func status(answer **C.char, err error) C.int32_t {
	if err == nil {
		return 0
	}
	*answer = C.CString(err.Error())
	return 1
}

// told is status with v in JSON as the answer where there is no error.
func told(answer **C.char, v any, err error) C.int32_t {
	if err != nil {
		return status(answer, err)
	}
	text, err := json.Marshal(v)
	if err == nil {
		*answer = C.CString(string(text))
	}
	return status(answer, err)
}

// caught makes an error of a panic.
func caught(answer **C.char, to *C.int32_t) {
	if p := recover(); p != nil {
		*to = status(answer, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
}

//export eph_free
func eph_free(text *C.char) { C.free(unsafe.Pointer(text)) }

// eph_call does what is rare; see native.Call. The answer is JSON.
//
//export eph_call
func eph_call(what *C.char, handle C.int64_t, settings *C.char, made *C.int64_t, answer **C.char) (failed C.int32_t) {
	defer caught(answer, &failed)
	built, v, err := native.Call(context.Background(), C.GoString(what), int64(handle), []byte(C.GoString(settings)))
	*made = C.int64_t(built)
	return told(answer, v, err)
}

// eph_curve writes a curve at count numbers, rows of one for each source.
//
//export eph_curve
func eph_curve(question *C.char, in *C.double, count C.int64_t, out *C.double, answer **C.char) (failed C.int32_t) {
	defer caught(answer, &failed)
	n := int(count)
	return status(answer, native.Evaluate([]byte(C.GoString(question)), at[float64](in, n), at[float64](out, n)))
}

// eph_bind says where worlds write; see native.Frame. Observations are float or
// double. The buffers must outlive the last call that names a row of them.
//
//export eph_bind
func eph_bind(handle, rows C.int64_t, observation *C.char, reward, interest *C.double, crawled, over *C.uint8_t, answer **C.char) (failed C.int32_t) {
	defer caught(answer, &failed)
	w, err := native.Get[*native.Worlds](int64(handle))
	if err != nil {
		return status(answer, err)
	}
	k, n, width, scaled := w.Layout()
	k *= int(rows)
	f := native.Frame{
		Reward: at[float64](reward, k), Over: at[uint8](over, k),
		Interest: at[float64](interest, k*n), Crawled: at[uint8](crawled, k*n),
	}
	if scaled {
		f.Scaled = at[float32](observation, k*width)
	} else {
		f.Raw = at[float64](observation, k*width)
	}
	w.Bind(f)
	return 0
}

// eph_reset resets the worlds that mask marks, all if it is NULL, and writes
// into a row. seeds is NULL or has one for each world.
//
//export eph_reset
func eph_reset(handle, row C.int64_t, mask *C.uint8_t, seeds *C.uint64_t, answer **C.char) (failed C.int32_t) {
	defer caught(answer, &failed)
	w, err := native.Get[*native.Worlds](int64(handle))
	if err == nil {
		k, _, _, _ := w.Layout()
		err = w.Reset(at[uint8](mask, k), at[uint64](seeds, k), int(row))
	}
	return status(answer, err)
}

// eph_step steps all worlds and writes into a row. Actions are K × n scores,
// float in form 0 and double in form 1, K × n int8 in form 2, or K int64.
//
//export eph_step
func eph_step(handle, row C.int64_t, action *C.char, form C.int32_t, answer **C.char) (failed C.int32_t) {
	defer caught(answer, &failed)
	w, err := native.Get[*native.Worlds](int64(handle))
	if err != nil {
		return status(answer, err)
	}
	k, n, _, _ := w.Layout()
	var a native.Actions
	switch form {
	case 0:
		a.Score32 = at[float32](action, k*n)
	case 1:
		a.Score64 = at[float64](action, k*n)
	case 2:
		a.Set = at[int8](action, k*n)
	default:
		a.One = at[int64](action, k)
	}
	return status(answer, w.Step(a, int(row)))
}

func seen(c *native.Crawler, age *C.int64_t, state *C.double) native.Seen {
	return native.Seen{Age: at[int64](age, c.Sources()), State: at[float64](state, c.Sources())}
}

// eph_select writes the sources to crawl into to, which has room for all. age
// and state are NULL or what the caller sees of each source.
//
//export eph_select
func eph_select(handle C.int64_t, age *C.int64_t, state *C.double, to, count *C.int64_t, answer **C.char) (failed C.int32_t) {
	defer caught(answer, &failed)
	c, err := native.Get[*native.Crawler](int64(handle))
	if err != nil {
		return status(answer, err)
	}
	pick, err := c.Select(seen(c, age, state))
	out := at[int64](to, len(pick))
	for k, i := range pick {
		out[k] = int64(i)
	}
	*count = C.int64_t(len(pick))
	return status(answer, err)
}

// eph_update tells what crawls brought back. items has the number of items of
// each crawl, whose ages and interests stand one after the other in item, and is
// NULL where single items are not known. age and state are NULL or what is seen
// at the next epoch.
//
//export eph_update
func eph_update(handle, crawls C.int64_t, source *C.int64_t, interest *C.double, items *C.int64_t, item *C.double, age *C.int64_t, state *C.double, answer **C.char) (failed C.int32_t) {
	defer caught(answer, &failed)
	c, err := native.Get[*native.Crawler](int64(handle))
	if err != nil {
		return status(answer, err)
	}
	got := make([]env.Crawled, int(crawls))
	counts := at[int64](items, len(got))
	from := 0
	for k := range got {
		got[k] = env.Crawled{Source: int(at[int64](source, len(got))[k]), Interest: at[float64](interest, len(got))[k]}
		if counts != nil {
			end := from + int(counts[k])
			got[k].Items = at[env.Item](item, end)[from:end]
			from = end
		}
	}
	return status(answer, c.Update(got, seen(c, age, state)))
}

// What eph_serve returns beside 0 and 1.
const (
	asked   = 2
	waiting = 3
)

// eph_serve hands in the reply to the request before, sources if form is 0 and
// a score for each source if it is 1, and waits up to so many milliseconds for
// the next. It returns 2 with the numbers of a request (see native.Request) in
// to, 3 when the time has passed, and 0 with the result in JSON when the job is
// done. size has the room in to, and then what the request needs; where that is
// more, form 2 asks for the same request again.
//
//export eph_serve
func eph_serve(handle, milliseconds C.int64_t, form C.int32_t, reply *C.char, count C.int64_t, to *C.double, size *C.int64_t, answer **C.char) (failed C.int32_t) {
	defer caught(answer, &failed)
	j, err := native.Get[*native.Job](int64(handle))
	if err != nil {
		return status(answer, err)
	}
	var a native.Reply
	switch form {
	case 0:
		a.Sources = at[int64](reply, int(count))
	case 1:
		a.Scores = at[float64](reply, int(count))
	}
	r, done := j.Request, false
	if form < 2 {
		r, done = j.Serve(a, time.Duration(milliseconds)*time.Millisecond)
	}
	switch {
	case r != nil:
		*size = C.int64_t(len(r.Append(at[float64](to, int(*size))[:0])))
		return asked
	case !done:
		return waiting
	}
	v, err := j.Result()
	return told(answer, v, err)
}
