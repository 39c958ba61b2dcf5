//go:build unix

package files

import (
	"errors"
	"os"
	"syscall"

	"github.com/google/renameio/v2"
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
// then it is in tempDir, on the same file system.
func Create(path, tempDir string) (Pending, error) {
	return renameio.NewPendingFile(path, renameio.WithPermissions(0o644), renameio.WithTempDir(tempDir))
}
