//go:build unix

package sweep

import (
	"errors"
	"os"
	"syscall"

	"github.com/google/renameio/v2"
)

// errLocked is returned where another process holds the lock.
var errLocked = errors.New("locked by another process")

// lock takes a lock on a file, shared or exclusive. The kernel releases it when
// the process ends, however it ends.
func lock(path string, exclusive, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}

// create begins a file that takes the place of path when it is complete.
func create(path, tempDir string) (pending, error) {
	return renameio.NewPendingFile(path, renameio.WithTempDir(tempDir), renameio.WithPermissions(0o644))
}
