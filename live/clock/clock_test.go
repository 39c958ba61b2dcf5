package clock

import (
	"runtime"
	"testing"
	"time"
)

// TestStep: the machine's clock was set by what it went on and the uptime did not; another
// start of the machine tells nothing.
func TestStep(t *testing.T) {
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		wall, up time.Duration
		boots    [2]string
		want     time.Duration
	}{
		{time.Hour, time.Hour, [2]string{"a", "a"}, 0},
		{31 * time.Hour, time.Hour, [2]string{"a", "a"}, 30 * time.Hour},
		{-5 * time.Hour, time.Hour, [2]string{"a", "a"}, -6 * time.Hour},
		{31 * time.Hour, time.Hour, [2]string{"a", "b"}, 0},
		{31 * time.Hour, time.Hour, [2]string{"", ""}, 0},
	} {
		before := Reading{at, Uptime{tt.boots[0], 5 * time.Hour}}
		after := Reading{at.Add(tt.wall), Uptime{tt.boots[1], 5*time.Hour + tt.up}}
		if got := Step(before, after); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestNow: the uptime goes on as fast as time, where there is one.
func TestNow(t *testing.T) {
	before := Reading{time.Now(), Now()}
	time.Sleep(50 * time.Millisecond)
	after := Reading{time.Now(), Now()}
	if step := Step(before, after); step.Abs() > 20*time.Millisecond {
		t.Errorf("the clock was set by %v", step)
	}
	if passed := after.Uptime.Up - before.Uptime.Up; runtime.GOOS == "linux" && passed < 50*time.Millisecond {
		t.Errorf("%v passed, by %+v", passed, after.Uptime)
	}
}
