package env

import "testing"

// What waits at a source that is never crawled takes memory for what is not
// negligible yet, however long the recording.
func TestQueueIsBounded(t *testing.T) {
	var q queue
	for k := range 100_000 {
		at := float64(k)
		q.push(published{at: at, utility: 1}, at-100)
	}
	if waiting := len(q.item) - q.head; waiting != 101 {
		t.Errorf("%d items wait, want the last 101", waiting)
	}
	if c := cap(q.item); c > 1024 {
		t.Errorf("%d items are held for 101 that wait", c)
	}
}
