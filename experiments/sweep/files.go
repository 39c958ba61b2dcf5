package sweep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ephemera/experiments/files"
)

// Limits of what is read whole.
const (
	maxConfig = 16 << 20
	maxInput  = 1 << 30
	maxResult = 1 << 30
)

// replace writes a file so that at any moment either the old one or the new one
// is there, whole. Until then it is in temp, which one process uses at a time.
func replace(temp, path string, write func(w *bufio.Writer) error) error {
	if err := os.MkdirAll(temp, 0o777); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := files.Create(path, temp)
	if err != nil {
		return err
	}
	defer f.Cleanup()
	w := bufio.NewWriterSize(f, 1<<16)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// await takes a lock that others hold for a short time.
func await(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := files.Lock(path, true)
		if !errors.Is(err, files.ErrLocked) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Dirs returns dir if it is of a sweep, or else the directories of sweeps in it,
// of which there must be one.
func Dirs(dir string) ([]string, error) {
	is := func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, configFile))
		return err == nil
	}
	if is(dir) {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		if sub := filepath.Join(dir, e.Name()); is(sub) {
			dirs = append(dirs, sub)
		}
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%s: holds no config.toml of a sweep, nor do the directories in it", dir)
	}
	return dirs, nil
}
