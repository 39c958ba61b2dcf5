//go:build unix

package env_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ephemera/env"
)

// A pipe is read once, whenever its writer comes; one without a writer, and one
// whose writer is silent, do not hang.
func TestRecordingFromPipe(t *testing.T) {
	fifo := func() string {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		return path
	}
	path := fifo()
	done := make(chan error, 1)
	go func() {
		time.Sleep(50 * time.Millisecond)
		w, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = w.Write(gzipped(t, []byte(header+"a,0,1\nb,3600,2\n")))
			err = errors.Join(err, w.Close())
		}
		done <- err
	}()
	rec, err := env.ReadRecording(context.Background(), path)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	if rec.Rows != 2 || rec.Last != 3600 {
		t.Errorf("recording %+v", rec)
	}

	defer env.SetPipeWait(30 * time.Millisecond)()
	path = fifo()
	if _, err := env.ReadRecording(context.Background(), path); err == nil || !strings.Contains(err.Error(), "nobody wrote into the pipe") {
		t.Errorf("pipe without a writer: %v", err)
	}

	path = fifo()
	w, err := os.OpenFile(path, os.O_RDWR, 0) // a writer that writes nothing
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := env.ReadRecording(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("pipe with a silent writer: %v", err)
	}
}
