//go:build unix

package files

import (
	"errors"
	"os"
	"syscall"
)

// lockDir takes an exclusive lock on a directory.
func lockDir(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return flock(f, true)
}

func flock(f *os.File, exclusive bool) (*os.File, error) {
	how := syscall.LOCK_SH | syscall.LOCK_NB
	if exclusive {
		how = syscall.LOCK_EX | syscall.LOCK_NB
	}
	err := syscall.Flock(int(f.Fd()), how)
	for err == syscall.EINTR {
		err = syscall.Flock(int(f.Fd()), how)
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return nil, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
}
