package env

import "time"

// SetPipeWait sets how long a pipe without a writer is waited for, until restore
// is called.
func SetPipeWait(d time.Duration) (restore func()) {
	old := pipeWait
	pipeWait = d
	return func() { pipeWait = old }
}
