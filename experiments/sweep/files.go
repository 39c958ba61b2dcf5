package sweep

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ephemera/experiments/files"
)

// tempDirName holds final files while they are written. Only the holder of the
// merge lock uses it, and empties it before and after.
const tempDirName = "records/pending"

// replace writes a final file so that at any moment either the old one or the
// new one is there, whole.
func replace(dir, name string, write func(w *bufio.Writer) error) error {
	temp := filepath.Join(dir, filepath.FromSlash(tempDirName))
	if err := os.MkdirAll(temp, 0o777); err != nil {
		return err
	}
	return replaceVia(temp, dir, name, write)
}

// replaceVia is replace with another directory for the file in the making.
func replaceVia(temp, dir, name string, write func(w *bufio.Writer) error) error {
	f, err := files.Create(filepath.Join(dir, name), temp)
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

// Dirs returns dir if it is of a sweep, or else the directories of sweeps in it,
// of which there must be one.
func Dirs(dir string) ([]string, error) {
	is := func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "config.toml"))
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

// sweepUp removes what a killed process left half written.
func sweepUp(dir string) { os.RemoveAll(filepath.Join(dir, filepath.FromSlash(tempDirName))) }

// oneLine makes a message fit into a table row.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
