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
