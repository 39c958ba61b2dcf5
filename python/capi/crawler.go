package main

/*
#include <stdint.h>
*/
import "C"

import (
	"context"
	"encoding/json"
	"unsafe"

	"ephemera/env"
	"ephemera/python/native"
)

// eph_crawler builds a policy or a learner that is asked outside of a run; the
// answer describes it in JSON.
//
//export eph_crawler
func eph_crawler(settings *C.char, handle *C.int64_t, answer **C.char) C.int32_t {
	return guard(answer, func() error {
		c, err := native.NewCrawler(context.Background(), []byte(C.GoString(settings)))
		return keep(c, err, handle, answer)
	})
}

// keep gives a crawler a handle and describes it.
func keep(c *native.Crawler, err error, handle *C.int64_t, answer **C.char) error {
	if err != nil {
		return err
	}
	*handle = C.int64_t(handles.add(c))
	return tell(answer, c.Describe())
}

// eph_load takes up a learner that was saved in a file or directory.
//
//export eph_load
func eph_load(path *C.char, handle *C.int64_t, answer **C.char) C.int32_t {
	return guard(answer, func() error {
		c, err := native.LoadCrawler(C.GoString(path))
		return keep(c, err, handle, answer)
	})
}

// with calls f with the crawler of a handle.
func with(handle C.int64_t, answer **C.char, f func(c *native.Crawler) error) C.int32_t {
	return guard(answer, func() error {
		c, err := get[*native.Crawler](&handles, int64(handle))
		if err != nil {
			return err
		}
		return f(c)
	})
}

// eph_describe describes a crawler in JSON.
//
//export eph_describe
func eph_describe(handle C.int64_t, answer **C.char) C.int32_t {
	return with(handle, answer, func(c *native.Crawler) error { return tell(answer, c.Describe()) })
}

// eph_freeze makes a policy that learns no more out of a learner.
//
//export eph_freeze
func eph_freeze(handle C.int64_t, seed C.uint64_t, frozen *C.int64_t, answer **C.char) C.int32_t {
	return with(handle, answer, func(c *native.Crawler) error {
		f, err := c.Freeze(uint64(seed))
		return keep(f, err, frozen, answer)
	})
}

// eph_save answers with the contents of a state file.
//
//export eph_save
func eph_save(handle C.int64_t, answer **C.char) C.int32_t {
	return with(handle, answer, func(c *native.Crawler) error {
		data, err := c.Save()
		if err == nil {
			*answer = C.CString(string(data))
		}
		return err
	})
}

// eph_resize drops and adds sources as a JSON text says, and answers with a
// description.
//
//export eph_resize
func eph_resize(handle C.int64_t, change *C.char, answer **C.char) C.int32_t {
	return with(handle, answer, func(c *native.Crawler) error {
		var x struct {
			Drop []int  `json:"drop"`
			TOML string `json:"toml"` // an instance whose sources are added
		}
		if err := json.Unmarshal([]byte(C.GoString(change)), &x); err != nil {
			return err
		}
		var add env.Instance
		if x.TOML != "" {
			var err error
			if add, err = env.Unmarshal("sources", []byte(x.TOML)); err != nil {
				return err
			}
		}
		if err := c.Resize(x.Drop, add.Sources); err != nil {
			return err
		}
		return tell(answer, c.Describe())
	})
}

// eph_thresholds writes the learned threshold of each of n sources.
//
//export eph_thresholds
func eph_thresholds(handle C.int64_t, to *C.double, n C.int64_t, answer **C.char) C.int32_t {
	return with(handle, answer, func(c *native.Crawler) error {
		return c.Thresholds(unsafe.Slice((*float64)(to), int(n)))
	})
}

func seen(c *native.Crawler, age *C.int64_t, state *C.double) native.Seen {
	n := c.Sources()
	return native.Seen{Age: optional((*int64)(age), n), State: optional((*float64)(state), n)}
}

// eph_select writes the sources to crawl into to, which has room for all. age
// and state are NULL or what the caller sees of each source.
//
//export eph_select
func eph_select(handle C.int64_t, age *C.int64_t, state *C.double, to, count *C.int64_t, answer **C.char) C.int32_t {
	return with(handle, answer, func(c *native.Crawler) error {
		pick, err := c.Select(seen(c, age, state))
		if err != nil {
			return err
		}
		out := unsafe.Slice((*int64)(to), c.Sources())
		for k, i := range pick {
			out[k] = int64(i)
		}
		*count = C.int64_t(len(pick))
		return nil
	})
}

// eph_update tells what crawls brought back. items has the number of items of
// each crawl, which stand one after the other in item_age and item_interest, and
// is NULL where single items are not known. age and state are NULL or what is
// seen at the next epoch.
//
//export eph_update
func eph_update(handle, crawls C.int64_t, source *C.int64_t, interest *C.double, items *C.int64_t, itemAge, itemInterest *C.double, age *C.int64_t, state *C.double, answer **C.char) C.int32_t {
	return with(handle, answer, func(c *native.Crawler) error {
		m := int(crawls)
		got := make([]native.Crawl, m)
		counts := optional((*int64)(items), m)
		from := 0
		for k := range got {
			got[k].Source = unsafe.Slice((*int64)(source), m)[k]
			got[k].Interest = unsafe.Slice((*float64)(interest), m)[k]
			if counts == nil {
				continue
			}
			end := from + int(counts[k])
			for j := from; j < end; j++ {
				got[k].Items = append(got[k].Items, env.Item{
					Age: unsafe.Slice((*float64)(itemAge), end)[j], Interest: unsafe.Slice((*float64)(itemInterest), end)[j],
				})
			}
			from = end
		}
		return c.Update(got, seen(c, age, state))
	})
}
