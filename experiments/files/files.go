// Package files writes files that nobody sees before they are complete, and
// locks directories against other processes.
package files

import (
	"errors"
	"io"
	"os"
)

// ErrLocked is returned where another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// Pending is a file in the making. Cleanup does nothing once it is in its place.
type Pending interface {
	io.Writer
	CloseAtomicallyReplace() error
	Cleanup() error
}

// Lock takes a lock on a file, shared or exclusive, or returns ErrLocked. The
// kernel releases it when the process ends, however it ends. Outside Unix it
// does not lock: two processes on one directory are not noticed there.
func Lock(path string, exclusive bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	return flock(f, exclusive)
}
