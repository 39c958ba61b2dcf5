package env

import "testing"

// What waits at a source that is never crawled takes memory for what is not
// negligible yet, however long the recording.
func TestQueueIsBounded(t *testing.T) {
	var q []published
	for k := range 100_000 {
		at := float64(k)
		q = push(q, published{at: at, utility: 1}, at-100)
	}
	if first := q[0].at; first > 99_999-100 || first < 99_999-400 {
		t.Errorf("the items from %v on wait, want the last 101 and some before", first)
	}
	if c := cap(q); c > 1024 {
		t.Errorf("%d items are held for 101 that wait", c)
	}
}
