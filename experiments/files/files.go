// Package files writes files that nobody sees before they are complete, and
// locks directories against other processes.
package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// ErrLocked is returned where another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// Lock takes a lock on a file, which is made if it is missing, shared or
// exclusive, or returns ErrLocked. The kernel releases it when the process ends,
// however it ends. It holds between machines too where their network file system
// carries locks.
func Lock(path string, exclusive bool) (*os.File, error) { return lock(path, exclusive) }

// Dirs returns dir if one of the files is in it, or else the directories in it
// of which that is so; of these there must be one. What says in an error what
// was looked for.
func Dirs(dir, what string, names ...string) ([]string, error) {
	holds := func(dir string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err == nil
		})
	}
	if holds(dir) {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		if sub := filepath.Join(dir, e.Name()); holds(sub) {
			dirs = append(dirs, sub)
		}
	}
	if dirs == nil {
		return nil, fmt.Errorf("%s: holds no %s, nor do the directories in it", dir, what)
	}
	return dirs, nil
}
