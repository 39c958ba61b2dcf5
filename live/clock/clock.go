// Package clock tells steps of the machine's clock from time that passes.
//
// A clock that was ahead or behind is set right by a step. A program that takes a step forward
// for time that passed ends waits too soon, and learns that nothing happened for that long.
package clock

import "time"

const (
	// small is by how much a clock is set forward at most when a program's time falls behind it.
	small = 2 * time.Second
	// Behind is by how much a clock is set back at most when a program's time waits for it. Where a time
	// lies before an earlier one by more, the clock was set.
	Behind = time.Minute
	// little is less than a clock is set by: the two clocks are read one after the other.
	little = 100 * time.Millisecond
)

// Uptime is how long the machine has run, by a clock that nobody sets and that goes on while
// the machine sleeps. It is zero where there is no such clock.
type Uptime struct {
	Boot string        `json:"boot"` // names the start of the machine
	Up   time.Duration `json:"up"`
}

// Reading is what both clocks showed at a moment.
type Reading struct {
	Time   time.Time `json:"time"`
	Uptime Uptime    `json:"uptime"`
}

// Step returns by how much the machine's clock was set forward, or back if it is negative,
// between two readings; 0 where nobody can tell, as the machine was started anew.
func Step(before, after Reading) time.Duration {
	if after.Uptime.Boot == "" || before.Uptime.Boot != after.Uptime.Boot {
		return 0
	}
	return after.Time.Round(0).Sub(before.Time.Round(0)) - (after.Uptime.Up - before.Uptime.Up)
}

// Follow returns the reading that a program goes by from now on, given the one that it went by,
// the time, and by how much the clock was set if all that the program kept has to go with it:
// forward by more than two seconds, or back by more than a minute.
//
// Where it was set forward by less the time falls behind the clock, so that no wait gets
// shorter. Where it was set back by less, a program that takes no time earlier than the last
// one waits for it.
func Follow(kept, read Reading) (by Reading, now time.Time, set time.Duration) {
	step := Step(kept, read)
	switch {
	case step > small || step < -Behind:
		return read, read.Time, step
	case step < -little || kept.Uptime.Boot != read.Uptime.Boot:
		return read, read.Time, 0
	}
	return kept, read.Time.Add(-max(0, step)), 0
}
