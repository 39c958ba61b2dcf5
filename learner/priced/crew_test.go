package priced

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// TestPricedWorkers: any number of workers gives the same bytes.
func TestPricedWorkers(t *testing.T) {
	in := env.Lognormal(2*blockSize+100, 500, 1)
	var want string
	for _, workers := range []int{1, 2, 3, 7} {
		set := DefaultSettings()
		set.Workers = workers
		l := New(in, &set, stream.New(1, stream.Policy))
		reward := earn(t, in, l, 40)
		state, err := json.Marshal(l.State())
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(reward, string(state))
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%d workers give another result than 1", workers)
		}
		streams := map[string]bool{}
		for _, b := range l.State().Rand {
			streams[string(b)] = true
		}
		if blocks := (len(in.Sources) + blockSize - 1) / blockSize; len(streams) != blocks {
			t.Errorf("%d streams for %d blocks", len(streams), blocks)
		}
		// And a learner that takes up the state goes on alike.
		m := New(in, nil, stream.New(2, stream.Policy))
		if err := m.SetState(l.State()); err != nil {
			t.Fatal(err)
		}
		if x, y := earn(t, in, l, 10), earn(t, in, m, 10); x != y {
			t.Errorf("%d workers: resumed learner earns %v; the other %v", workers, y, x)
		}
	}
}

// TestPricedManyAllocs: many workers allocate nothing either.
func TestPricedManyAllocs(t *testing.T) {
	in := env.Lognormal(manyFrom, 100, 1)
	set := DefaultSettings()
	set.Workers = 2
	l := New(in, &set, stream.New(1, stream.Policy))
	w, err := env.NewMean(in, false)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]int, 0, manyFrom)
	step := func() {
		dst = l.Select(dst[:0], &w.View().Model)
		got, err := w.Step(dst)
		if err != nil {
			t.Fatal(err)
		}
		l.Update(got, &w.View().Model)
	}
	for range 10 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n >= 1 {
		t.Errorf("%v allocations per epoch; want 0", n)
	}
}

// TestPricedMemory: 128 bytes of state per source, costs included, and what an
// epoch needs besides: x, age, key, push, the mark of a crawl and the
// selector's order.
func TestPricedMemory(t *testing.T) {
	const n = 200_000
	const state, scratch = 128, 8 + 4 + 8 + 4 + 1 + 16
	in := env.Lognormal(n, 1000, 1)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := New(in, nil, stream.New(1, stream.Policy))
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := float64(after.HeapAlloc-before.HeapAlloc) / n; got > state+scratch+1 {
		t.Errorf("%.1f bytes per source; want %d and %d for the epoch", got, state, scratch)
	}
	runtime.KeepAlive(l)
	runtime.KeepAlive(in)
}
