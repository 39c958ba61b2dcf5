package native

// The C interface. A function returns 0, or 1 with the text of the error in *answer,
// which the caller hands to eph_free. What lives on is named by handles. Buffers belong
// to the caller; Go keeps none of them.

/*
#include <stdint.h>
#include <stdlib.h>
*/
import "C"

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// at returns what C has at an address.
func at[T, P any](address *P, length int) []T {
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

// caught makes an error of a panic, with the stack where it is a mistake of this
// program and not of the caller.
func caught(answer **C.char, to *C.int32_t) {
	switch p := recover().(type) {
	case nil:
	case runtime.Error:
		*to = status(answer, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	default:
		*to = status(answer, fmt.Errorf("%v", p))
	}
}

//export eph_free
func eph_free(text *C.char) { C.free(unsafe.Pointer(text)) }

// eph_call does all but step worlds; see Call. Settings and the answer are JSON. count
// numbers go in; room is how many may come out, and then how many there are, of which
// none are written where they are more.
//
//export eph_call
func eph_call(what *C.char, handle C.int64_t, settings *C.char, in *C.double, count C.int64_t, out *C.double, room, made *C.int64_t, answer **C.char) (failed C.int32_t) {
	defer caught(answer, &failed)
	m := Made{In: at[float64](in, int(count)), Numbers: at[float64](out, int(*room))[:0]}
	err := m.Call(C.GoString(what), int64(handle), []byte(C.GoString(settings)))
	*made, *room = C.int64_t(m.Handle), C.int64_t(len(m.Numbers))
	if err != nil || m.Answer == nil {
		return status(answer, err)
	}
	text, err := json.Marshal(m.Answer)
	if err == nil {
		*answer = C.CString(string(text))
	}
	return status(answer, err)
}

// eph_step steps all worlds and writes into a buffer; see Worlds.Step. Actions are K × n
// scores, float in form 0 and double in form 1, K × n int8 in form 2, or K int64.
//
//export eph_step
func eph_step(handle C.int64_t, to *C.char, action *C.char, form C.int32_t, answer **C.char) (failed C.int32_t) {
	defer caught(answer, &failed)
	w, err := get[*Worlds](int64(handle))
	if err != nil {
		return status(answer, err)
	}
	k, n := len(w.at), w.n
	var actions any
	switch form {
	case 0:
		actions = at[float32](action, k*n)
	case 1:
		actions = at[float64](action, k*n)
	case 2:
		actions = at[int8](action, k*n)
	default:
		actions = at[int64](action, k)
	}
	return status(answer, w.Step(actions, unsafe.Pointer(to)))
}
