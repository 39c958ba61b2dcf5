package crawl

import (
	"io"
	"math"
	"net/http/httptest"
	"runtime/debug"
	"testing"
)

// TestLimitMemory: the limit of memory grows with the feeds, and an operator's holds.
func TestLimitMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	server := httptest.NewServer(nil)
	defer server.Close()
	for _, tt := range []struct {
		name, set string
		want      int64
	}{
		{"by feeds", "", 128<<20 + 3*16<<10},
		{"of an operator", "1GiB", math.MaxInt64}, // the runtime has read it before
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", tt.set)
			debug.SetMemoryLimit(math.MaxInt64)
			c := newLife(t, server, 1, address(0), address(1), address(2)).open(io.Discard)
			defer c.Close()
			if got := c.LimitMemory(); got != tt.want {
				t.Errorf("the limit is %d; want %d", got, tt.want)
			}
		})
	}
}
