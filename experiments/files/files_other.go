//go:build !unix

package files

import (
	"errors"
	"os"
	"path/filepath"
)

// Lock opens the file without locking it: on this system two processes on one
// directory are not noticed.
func Lock(path string, exclusive bool) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
}

// lockDir does not lock, and is no file.
func lockDir(string) (*os.File, error) { return nil, nil }

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

// Create begins a file that takes the place of path when it is complete. Until
// then it is in tempDir, on the same file system; "" for beside path.
func Create(path, tempDir string) (Pending, error) {
	if tempDir == "" {
		tempDir = filepath.Dir(path)
	}
	f, err := os.CreateTemp(tempDir, ".pending")
	if err != nil {
		return nil, err
	}
	return renamed{f, path}, nil
}
