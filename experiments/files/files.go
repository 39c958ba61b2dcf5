// Package files writes files that nobody sees before they are complete, and
// locks directories against other processes.
package files

import (
	"errors"
	"os"
)

// ErrLocked is returned where another process holds the lock.
var ErrLocked = errors.New("locked by another process")

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

// Pending is a file in the making.
type Pending struct {
	*os.File
	path string
}

// Create begins a file that takes the place of path when it is complete. Until
// then it is in tempDir, on the same file system.
func Create(path, tempDir string) (*Pending, error) {
	f, err := os.CreateTemp(tempDir, ".pending")
	if err != nil {
		return nil, err
	}
	return &Pending{f, path}, f.Chmod(0o644)
}

// Replace puts the file, which is complete, into its place.
func (p *Pending) Replace() error {
	if err := errors.Join(p.Sync(), p.Close()); err != nil {
		return err
	}
	return os.Rename(p.Name(), p.path)
}

// Cleanup removes the file if it was not put into its place.
func (p *Pending) Cleanup() {
	p.Close()
	os.Remove(p.Name())
}
