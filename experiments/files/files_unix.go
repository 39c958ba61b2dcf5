//go:build unix

package files

import (
	"errors"
	"os"
	"syscall"

	"github.com/google/renameio/v2"
)

// Lock takes a lock on a file, shared or exclusive, or returns ErrLocked. The
// kernel releases it when the process ends, however it ends.
func Lock(path string, exclusive bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	return flock(f, exclusive)
}

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
	if err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return f, nil
}

// Create begins a file that takes the place of path when it is complete. Until
// then it is in tempDir, on the same file system; "" for beside path.
func Create(path, tempDir string) (Pending, error) {
	with := []renameio.Option{renameio.WithPermissions(0o644)}
	if tempDir != "" {
		with = append(with, renameio.WithTempDir(tempDir))
	}
	return renameio.NewPendingFile(path, with...)
}
