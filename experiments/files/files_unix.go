//go:build unix

package files

import (
	"errors"
	"os"
	"syscall"
)

// lock opens the file for writing: NFS takes an exclusive lock on no other, and
// so on no directory.
func lock(path string, exclusive bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_SH | syscall.LOCK_NB
	if exclusive {
		how = syscall.LOCK_EX | syscall.LOCK_NB
	}
	err = syscall.Flock(int(f.Fd()), how)
	for err == syscall.EINTR {
		err = syscall.Flock(int(f.Fd()), how)
	}
	if err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return f, nil
}

// current reports whether a locked file is still the one of that name, which the
// holder before may have removed meanwhile.
func current(f *os.File, path string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(held, now)
}

// drop removes a locked file and releases it.
func drop(f *os.File) error { return errors.Join(os.Remove(f.Name()), f.Close()) }
