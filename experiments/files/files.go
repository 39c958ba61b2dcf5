// Package files writes files that nobody sees before they are complete.
package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// File is a file to write.
type File struct {
	Name string // without a directory
	Data []byte
}

// Put writes files into a directory, which is made if it is missing, in place of
// those that are there. Each is written beside its place, under a hidden name that
// is its own, and then renamed. Of processes that write the same file the last one
// wins.
func Put(dir string, files ...File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := put(filepath.Join(dir, f.Name), f.Data); err != nil {
			return err
		}
	}
	return nil
}

func put(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

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
