// Package storetest helps tests of what is built on live/store.
package storetest

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is a disk that is nearly full when the test says, and has no byte left.
type Disk struct {
	vfs.FS
	Full, Spent atomic.Bool
}

// GetDiskUsage implements [vfs.FS].
func (d *Disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	if d.Spent.Load() {
		return vfs.DiskUsage{TotalBytes: 1 << 40}, nil
	}
	if d.Full.Load() {
		return vfs.DiskUsage{AvailBytes: 128 << 20, TotalBytes: 1 << 40}, nil
	}
	return vfs.DiskUsage{AvailBytes: 1 << 39, TotalBytes: 1 << 40}, nil
}
