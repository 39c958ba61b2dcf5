// Package files writes files that nobody sees before they are complete, and
// locks directories against other processes.
package files

import (
	"errors"
	"io"
)

// Pending is a file in the making. Cleanup does nothing once it is in its place.
type Pending interface {
	io.Writer
	Sync() error
	CloseAtomicallyReplace() error
	Cleanup() error
}

// ErrLocked is returned where another process holds the lock.
var ErrLocked = errors.New("locked by another process")
