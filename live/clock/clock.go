// Package clock tells steps of the machine's clock from time that passes.
//
// A clock that was ahead or behind is set right by a step. A program that takes a step forward
// for time that passed ends waits too soon, and learns that nothing happened for that long.
package clock

import "time"

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
