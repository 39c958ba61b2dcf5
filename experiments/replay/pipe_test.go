//go:build unix

package replay

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe into which nobody writes is not waited for when the context ends.
func TestFeedbackFromPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := ReadFeedback(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v; want that of the context", err)
	}
}
