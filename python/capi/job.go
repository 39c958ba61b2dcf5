package main

/*
#include <stdint.h>

// eph_request is what a guest asks for. The arrays are the caller's and have
// room for all sources; but for age each is filled where the request has it.
typedef struct {
	int32_t  kind;  // 0 a run begins, 1 select, 2 update
	int32_t  mean_seen, state_seen;
	int64_t  guest; // number of the policy
	int64_t  epoch;
	int64_t  crawls, items;
	int64_t *age;
	double  *mean, *state;
	int64_t *source, *since; // of each crawl: source, and epochs since its last
	double  *interest;
	int64_t *count;          // of items of each crawl
} eph_request;
*/
import "C"

import (
	"context"
	"time"
	"unsafe"

	"ephemera/python/native"
)

// eph_ask answers a question about an instance or the catalogue in JSON.
//
//export eph_ask
func eph_ask(question *C.char, answer **C.char) C.int32_t {
	return guard(answer, func() error {
		v, err := native.Ask([]byte(C.GoString(question)))
		if err != nil {
			return err
		}
		return tell(answer, v)
	})
}

// eph_curve writes a curve at count numbers, rows of one for each source.
//
//export eph_curve
func eph_curve(question *C.char, in *C.double, count C.int64_t, out *C.double, answer **C.char) C.int32_t {
	return guard(answer, func() error {
		n := int(count)
		return native.Evaluate(context.Background(), []byte(C.GoString(question)), unsafe.Slice((*float64)(in), n), unsafe.Slice((*float64)(out), n))
	})
}

// seat is a job with the request that Python is at work on.
type seat struct {
	*native.Job
	request *native.Request
}

// eph_start begins a run or a comparison that goes on by itself; the answer
// tells of the world in JSON.
//
//export eph_start
func eph_start(settings *C.char, handle *C.int64_t, answer **C.char) C.int32_t {
	return guard(answer, func() error {
		j, arena, err := native.Start([]byte(C.GoString(settings)))
		if err != nil {
			return err
		}
		*handle = C.int64_t(handles.add(&seat{Job: j}))
		return tell(answer, arena)
	})
}

// What eph_serve returns beside 0 and 1.
const (
	asked   = 2
	waiting = 3
)

// eph_serve hands in the reply to the request before, sources if form is 0 and
// a score for each source if it is 1, and waits up to so many milliseconds for
// the next. It returns 2 with a request, 3 when the time has passed, and 0 with
// the result in JSON when the job is done.
//
//export eph_serve
func eph_serve(handle, milliseconds C.int64_t, form C.int32_t, reply unsafe.Pointer, count C.int64_t, to *C.eph_request, answer **C.char) C.int32_t {
	status := C.int32_t(0)
	failed := guard(answer, func() error {
		s, err := get[*seat](&handles, int64(handle))
		if err != nil {
			return err
		}
		var a native.Reply
		switch {
		case reply == nil:
		case form == 1:
			a.Scores = unsafe.Slice((*float64)(reply), int(count))
		default:
			a.Sources = unsafe.Slice((*int64)(reply), int(count))
		}
		request, done := s.Serve(a, time.Duration(milliseconds)*time.Millisecond)
		switch {
		case request != nil:
			s.request, status = request, asked
			fill(to, request)
			return nil
		case !done:
			status = waiting
			return nil
		}
		v, err := s.Result()
		if err != nil {
			return err
		}
		return tell(answer, v)
	})
	if failed != 0 {
		return failed
	}
	return status
}

// fill writes a request.
func fill(to *C.eph_request, r *native.Request) {
	to.kind, to.guest, to.epoch = C.int32_t(r.Kind), C.int64_t(r.Guest), C.int64_t(r.Epoch)
	to.mean_seen, to.state_seen = 0, 0
	to.crawls, to.items = C.int64_t(len(r.Crawls)), C.int64_t(r.Items())
	n := len(r.Last)
	age := unsafe.Slice((*int64)(to.age), n)
	for i, last := range r.Last {
		age[i] = int64(r.Epoch - last)
	}
	if r.Mean != nil {
		to.mean_seen = 1
		copy(unsafe.Slice((*float64)(to.mean), n), r.Mean)
	}
	if r.State != nil {
		to.state_seen = 1
		copy(unsafe.Slice((*float64)(to.state), n), r.State)
	}
	m := len(r.Crawls)
	source, since, interest, count := unsafe.Slice((*int64)(to.source), m), unsafe.Slice((*int64)(to.since), m), unsafe.Slice((*float64)(to.interest), m), unsafe.Slice((*int64)(to.count), m)
	for k, c := range r.Crawls {
		source[k], since[k], interest[k], count[k] = int64(c.Source), int64(c.Age), c.Interest, int64(len(c.Items))
	}
}

// eph_items writes the ages and interests of the items of the last request's
// crawls, one crawl after the other.
//
//export eph_items
func eph_items(handle C.int64_t, age, interest *C.double, answer **C.char) C.int32_t {
	return guard(answer, func() error {
		s, err := get[*seat](&handles, int64(handle))
		if err != nil || s.request == nil {
			return err
		}
		n := s.request.Items()
		ages, interests := unsafe.Slice((*float64)(age), n), unsafe.Slice((*float64)(interest), n)
		j := 0
		for _, c := range s.request.Crawls {
			for _, x := range c.Items {
				ages[j], interests[j] = x.Age, x.Interest
				j++
			}
		}
		return nil
	})
}
