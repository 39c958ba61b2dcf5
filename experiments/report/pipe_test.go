//go:build unix

package report

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe in place of a file of results is refused, and not waited for.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "result.json"), 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := Load(dir, dir); err == nil || !strings.Contains(err.Error(), "result.json: is not a file") {
		t.Error(err)
	}
}
