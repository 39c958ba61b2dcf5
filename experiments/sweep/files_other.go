//go:build !unix

package sweep

import (
	"errors"
	"os"
)

// errLocked is returned where another process holds the lock.
var errLocked = errors.New("locked by another process")

// lock opens the file without locking it: on this system two processes on one
// directory are not noticed.
func lock(path string, exclusive, wait bool) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
}

type renamed struct {
	*os.File
	path string
}

func (r renamed) CloseAtomicallyReplace() error {
	if err := errors.Join(r.Sync(), r.Close()); err != nil {
		return err
	}
	return os.Rename(r.Name(), r.path)
}

func (r renamed) Cleanup() error {
	r.Close()
	err := os.Remove(r.Name())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// create begins a file that takes the place of path when it is complete.
func create(path, tempDir string) (pending, error) {
	f, err := os.CreateTemp(tempDir, ".pending")
	return renamed{f, path}, err
}
