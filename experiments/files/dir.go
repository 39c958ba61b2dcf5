package files

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Dir is a directory of results that this process alone writes to.
//
// A set of files appears whole or not at all. It is written into the directory
// ".new", which is then renamed to ".set": from there on the set is there, and
// what is left is to move its files to their places. A process that is killed
// in between leaves ".set", and the next to open the directory moves what is
// left in it; ".new" it removes. The process holds the file ".lock" while it is at
// work.
type Dir struct {
	path string
	lock *os.File
}

const (
	fresh  = ".new"
	whole  = ".set"
	locked = ".lock"
)

// Open opens a directory of results, made if it is missing, and keeps other
// processes out. It returns an error that is ErrLocked if another one is in.
func Open(path string) (*Dir, error) {
	d, err := Enter(path)
	if err != nil {
		return nil, err
	}
	if err := d.Settle(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Enter is Open for one that looks first whose directory it is: what a process
// that was killed left is as it was until Settle.
func Enter(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	name := filepath.Join(path, locked)
	lock, err := Lock(name, true)
	for err == nil && !current(lock, name) {
		lock.Close()
		lock, err = Lock(name, true)
	}
	if errors.Is(err, ErrLocked) {
		return nil, fmt.Errorf("%s is in use: %w", path, err)
	}
	if err != nil {
		return nil, err
	}
	return &Dir{path, lock}, nil
}

// Close lets other processes in. It does nothing for a nil Dir.
func (d *Dir) Close() error {
	if d == nil || d.lock == nil {
		return nil
	}
	return drop(d.lock)
}

// Path returns the path of a file in the directory.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, name) }

// Find returns where a file is: in a set that is not settled, or in its place.
func (d *Dir) Find(name string) string {
	if at, err := os.Lstat(d.Path(whole)); err == nil && at.IsDir() {
		path := filepath.Join(d.Path(whole), name)
		if _, err := os.Lstat(path); err == nil {
			return path
		}
	}
	return d.Path(name)
}

// Fresh returns an error if one of the files is there already.
func (d *Dir) Fresh(names ...string) error {
	for _, n := range names {
		if _, err := os.Lstat(d.Path(n)); err == nil {
			return fmt.Errorf("%s is there already and would be replaced; name another directory", d.Path(n))
		}
	}
	return nil
}

// Put puts files into the directory, in place of those that are there: all of
// them or, as when the disk is full, none.
func (d *Dir) Put(files ...File) error {
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return d.Write(func(w []*bufio.Writer) error {
		for k, f := range files {
			if _, err := w[k].Write(f.Data); err != nil {
				return err
			}
		}
		return nil
	}, names...)
}

// Write is Put for files that are too large for the memory or written side by
// side: write gets a writer of each.
func (d *Dir) Write(write func(w []*bufio.Writer) error, names ...string) error {
	stage := d.Path(fresh)
	if err := os.Mkdir(stage, 0o755); err != nil {
		return err
	}
	err := fill(stage, write, names)
	switch {
	case err != nil:
	case len(names) == 1: // is there at once
		err = os.Rename(filepath.Join(stage, names[0]), d.Path(names[0]))
	default:
		err = errors.Join(syncDir(stage), os.Rename(stage, d.Path(whole)))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(stage))
	}
	return d.Settle()
}

// fill makes the files in a directory and has what is written reach the disk.
func fill(dir string, write func(w []*bufio.Writer) error, names []string) (err error) {
	var open []*os.File
	defer func() {
		for _, f := range open {
			err = errors.Join(err, f.Close())
		}
	}()
	var w []*bufio.Writer
	for _, name := range names {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		open, w = append(open, f), append(w, bufio.NewWriterSize(f, 1<<16))
	}
	if err := write(w); err != nil {
		return err
	}
	for k, f := range open {
		if err := errors.Join(w[k].Flush(), f.Sync()); err != nil {
			return err
		}
	}
	return nil
}

// Settle moves the files of a set that is whole to their places, and removes
// one that is not.
func (d *Dir) Settle() error {
	set := d.Path(whole)
	if at, err := os.Lstat(set); err == nil && !at.IsDir() {
		return fmt.Errorf("%s is no directory of this program; remove it", set)
	}
	entries, err := os.ReadDir(set)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(set, e.Name()), d.Path(e.Name())); err != nil {
			return err
		}
	}
	if err == nil {
		if err := errors.Join(syncDir(d.path), os.Remove(set), syncDir(d.path)); err != nil {
			return err
		}
	}
	return os.RemoveAll(d.Path(fresh))
}

// syncDir has the entries of a directory reach the disk.
func syncDir(path string) error {
	if runtime.GOOS == "windows" { // where a directory cannot be synced
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// ErrLocked is returned where another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// Lock takes a lock on a file, which is made if it is missing, shared or
// exclusive, or returns ErrLocked. The kernel releases it when the process ends,
// however it ends. It holds between machines too where their network file system
// carries locks.
func Lock(path string, exclusive bool) (*os.File, error) { return lock(path, exclusive) }
