package native

// The C interface. A function returns 0, or 1 with the text of the error in *answer,
// which the caller hands to eph_free. Buffers belong to the caller; Go keeps none of
// them.

/*
#include <stdint.h>
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// fail returns an error, or of a panic: with the stack where it is a mistake of this
// program and not of the caller.
func fail(answer **C.char, failed *C.int32_t, err *error) {
	switch p := recover().(type) {
	case nil:
	case runtime.Error:
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	default:
		*err = fmt.Errorf("%v", p)
	}
	if *err != nil {
		*answer, *failed = C.CString((*err).Error()), 1
	}
}

//export eph_free
func eph_free(text *C.char) { C.free(unsafe.Pointer(text)) }

// eph_call does all but step worlds, with so many numbers; see Call.
//
//export eph_call
func eph_call(
	handle C.int64_t, name, arguments *C.char, numbers *C.double, count C.int64_t, answer **C.char,
) (failed C.int32_t) {
	var err error
	defer fail(answer, &failed, &err)
	n := unsafe.Slice((*float64)(unsafe.Pointer(numbers)), int(count))
	text, err := Call(int64(handle), C.GoString(name), []byte(C.GoString(arguments)), n)
	if err == nil {
		*answer = C.CString(string(text))
	}
	return 0
}

// eph_step steps worlds with actions and writes into a buffer; see Worlds.Step.
//
//export eph_step
func eph_step(handle C.int64_t, to, actions *C.char, form C.int32_t, answer **C.char) (failed C.int32_t) {
	var err error
	defer fail(answer, &failed, &err)
	of, err := get(int64(handle))
	if err == nil {
		step := of["step"].(func(actions unsafe.Pointer, form int, to unsafe.Pointer) error)
		err = step(unsafe.Pointer(actions), int(form), unsafe.Pointer(to))
	}
	return 0
}
