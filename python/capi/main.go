// Capi is the C interface of the Python package:
//
//	go build -buildmode=c-shared -o libephemera.so ./python/capi
//
// A function that can fail returns 0, or 1 with the text of the error in
// *answer, which the caller hands to eph_free. Worlds and everything else that
// lives on are named by handles, numbers that are never used twice. Buffers
// belong to the caller; Go keeps none of them longer than the next eph_bind
// says.
package main

/*
#include <stdint.h>
#include <stdlib.h>

// eph_buffers are rows of frames that a set of K worlds writes into, n sources
// and width figures of an observation each. Row r begins r times the length of
// a row behind the address.
typedef struct {
	void    *observation; // rows × K × width, float or double
	double  *reward;      // rows × K
	double  *interest;    // rows × K × n
	uint8_t *crawled;     // rows × K × n
	uint8_t *over;        // rows × K
	int64_t  rows;
} eph_buffers;
*/
import "C"

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"unsafe"

	"ephemera/python/native"
)

func main() {}

// guard turns an error or a panic into the answer and the status.
func guard(answer **C.char, f func() error) (status C.int32_t) {
	defer func() {
		if p := recover(); p != nil {
			status = fail(answer, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if err := f(); err != nil {
		return fail(answer, err)
	}
	return 0
}

func fail(answer **C.char, err error) C.int32_t {
	*answer = C.CString(err.Error())
	return 1
}

// tell writes v as JSON.
func tell(answer **C.char, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		*answer = C.CString(string(text))
	}
	return err
}

//export eph_free
func eph_free(text *C.char) { C.free(unsafe.Pointer(text)) }

// eph_open sets up the worlds that a JSON text describes; the answer is JSON.
//
//export eph_open
func eph_open(settings *C.char, handle *C.int64_t, answer **C.char) C.int32_t {
	return guard(answer, func() error {
		w, about, err := native.Open(context.Background(), []byte(C.GoString(settings)))
		if err != nil {
			return err
		}
		*handle = C.int64_t(handles.add(w))
		return tell(answer, about)
	})
}

var handles table

// eph_bind says where the worlds write. The buffers stay the caller's and must
// outlive the last call that names a row of them.
//
//export eph_bind
func eph_bind(handle C.int64_t, b *C.eph_buffers, answer **C.char) C.int32_t {
	return guard(answer, func() error {
		w, err := get[*native.Worlds](&handles, int64(handle))
		if err != nil {
			return err
		}
		k, n, width := w.Layout()
		rows := make([]native.Frame, int(b.rows))
		for r := range rows {
			f := &rows[r]
			if w.IsScaled() {
				f.Scaled = row((*float32)(b.observation), r, k*width)
			} else {
				f.Raw = row((*float64)(b.observation), r, k*width)
			}
			f.Reward = row((*float64)(b.reward), r, k)
			f.Interest = row((*float64)(b.interest), r, k*n)
			f.Crawled = row((*uint8)(b.crawled), r, k*n)
			f.Over = row((*uint8)(b.over), r, k)
		}
		w.Bind(rows)
		return nil
	})
}

// row returns row r of rows of that length.
func row[T any](base *T, r, length int) []T {
	var one T
	return unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(base), r*length*int(unsafe.Sizeof(one)))), length)
}

// eph_reset resets the worlds that mask marks, all if it is NULL, and writes
// into a row. seeds is NULL or has one for each world.
//
//export eph_reset
func eph_reset(handle C.int64_t, into C.int64_t, mask *C.uint8_t, seeds *C.uint64_t, answer **C.char) C.int32_t {
	return guard(answer, func() error {
		w, err := get[*native.Worlds](&handles, int64(handle))
		if err != nil {
			return err
		}
		k, _, _ := w.Layout()
		return w.Reset(optional((*uint8)(mask), k), optional((*uint64)(seeds), k), int(into))
	})
}

// optional returns nil for NULL.
func optional[T any](base *T, length int) []T {
	if base == nil {
		return nil
	}
	return unsafe.Slice(base, length)
}

// Forms of actions.
const (
	scores32 = iota
	scores64
	set8
	one64
)

// eph_step steps all worlds and writes into a row.
//
//export eph_step
func eph_step(handle C.int64_t, into C.int64_t, action unsafe.Pointer, form C.int32_t, answer **C.char) (status C.int32_t) {
	defer func() {
		if p := recover(); p != nil {
			status = fail(answer, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	w, err := get[*native.Worlds](&handles, int64(handle))
	if err == nil {
		k, n, _ := w.Layout()
		var a native.Actions
		switch form {
		case scores32:
			a.Score32 = unsafe.Slice((*float32)(action), k*n)
		case scores64:
			a.Score64 = unsafe.Slice((*float64)(action), k*n)
		case set8:
			a.Set = unsafe.Slice((*int8)(action), k*n)
		case one64:
			a.One = unsafe.Slice((*int64)(action), k)
		}
		err = w.Step(a, int(into))
	}
	if err != nil {
		return fail(answer, err)
	}
	return 0
}

// eph_close ends what has the handle, and frees it.
//
//export eph_close
func eph_close(handle C.int64_t, answer **C.char) C.int32_t {
	return guard(answer, func() error {
		v, err := handles.take(int64(handle))
		if c, ok := v.(io.Closer); ok && err == nil {
			err = c.Close()
		}
		return err
	})
}
