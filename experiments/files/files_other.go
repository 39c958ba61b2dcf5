//go:build !unix

package files

import (
	"errors"
	"os"
)

func lockDir(string) (*os.File, error) { return nil, nil }

func flock(f *os.File, _ bool) (*os.File, error) { return f, nil }

// Create begins a file that takes the place of path when it is complete. Until
// then it is in tempDir, on the same file system.
func Create(path, tempDir string) (Pending, error) {
	f, err := os.CreateTemp(tempDir, ".pending")
	if err != nil {
		return nil, err
	}
	return pending{f, path}, nil
}

// pending does without renameio, which is for Unix alone.
type pending struct {
	*os.File
	path string
}

func (p pending) CloseAtomicallyReplace() error {
	if err := errors.Join(p.Sync(), p.Close()); err != nil {
		return err
	}
	return os.Rename(p.Name(), p.path)
}

func (p pending) Cleanup() error {
	p.Close()
	if err := os.Remove(p.Name()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
