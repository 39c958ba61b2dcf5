package files

import (
	"errors"
	"os"
	"syscall"
)

// lock opens the file so that others can open it not at all, or for reading.
func lock(path string, exclusive bool) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	access, share := uint32(syscall.GENERIC_READ), uint32(syscall.FILE_SHARE_READ)
	if exclusive {
		access, share = syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0
	}
	h, err := syscall.CreateFile(name, access, share, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	const sharingViolation = syscall.Errno(32)
	if errors.Is(err, sharingViolation) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// current is true: nobody removes a file that is open.
func current(*os.File, string) bool { return true }

// drop releases a locked file and removes it, unless another process has it by
// then.
func drop(f *os.File) error {
	err := f.Close()
	_ = os.Remove(f.Name())
	return err
}

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
