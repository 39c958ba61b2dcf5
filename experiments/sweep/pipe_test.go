//go:build unix

package sweep

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe among the records is refused, and not waited for.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "records"), 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "records", "0001-of-0002.jsonl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Run(context.Background(), mustLoad(t, kappaTOML), Options{Dir: dir})
	refused(t, err, path+" is a pipe")
}
