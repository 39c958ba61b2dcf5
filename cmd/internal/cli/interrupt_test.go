package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A file that cannot be written keeps the others from their places too.
func TestWriteFilesAllOrNone(t *testing.T) {
	dir := t.TempDir()
	if err := WriteFiles(dir, []File{{"a", []byte("1")}, {"missing/b", []byte("2")}}); err == nil {
		t.Fatal("a file in a directory that does not exist was written")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left behind", left)
	}
	if err := WriteFiles(dir, []File{{"a", []byte("1")}, {"b", []byte("2")}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "1", "b": "2"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("the directory holds %v", left)
	}
}

func TestInterruptedLine(t *testing.T) {
	err := fmt.Errorf("learning: %w", context.Canceled)
	if got := Line("train", err); got != "train: interrupted; no results were written" {
		t.Errorf("the line is %q", got)
	}
	if Status(err) != Interrupted {
		t.Errorf("the status is %d", Status(err))
	}
}
