// Package files writes files that nobody sees before they are complete, and reads
// what they hold.
package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Put writes a file in place of one that is there, as [Write] does.
func Put(path string, data []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// ReadJSON reads what a file holds as JSON.
func ReadJSON[T any](path string) (*T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	x := new(T)
	if err := json.Unmarshal(data, x); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// Write has a function write a file in place of one that is there. Its directory is
// made if it is missing. The file is written next to its place, under a hidden name
// that is its own, and then renamed. Of processes that write the same file the last
// one wins. [Tidy] removes what a process leaves that is killed meanwhile.
func Write(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
		if errors.Is(err, fs.ErrNotExist) && exists(path) {
			return nil // another process has written the file since, and removed this one
		}
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Tidy removes from a directory the hidden files of [Write] whose place is taken by
// now: a process that writes such a file has lost to the one that wrote the other.
func Tidy(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name, hidden := strings.CutPrefix(e.Name(), ".")
		k := strings.LastIndexByte(name, '-')
		if !hidden || k < 0 || strings.Trim(name[k+1:], "0123456789") != "" || !exists(filepath.Join(dir, name[:k])) {
			continue
		}
		if gone := os.Remove(filepath.Join(dir, e.Name())); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
