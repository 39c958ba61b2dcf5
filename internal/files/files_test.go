package files

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// A file is whole whenever it is looked at, whoever writes at the same time, and
// nothing else stays.
func TestPut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	old, now := bytes.Repeat([]byte{'1'}, 1<<16), bytes.Repeat([]byte{'2'}, 1<<15)
	if err := Put(path, old); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for range 50 {
				if err := Put(path, [][]byte{old, now}[k%2]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		if err := Tidy(filepath.Dir(path)); err != nil { // what it removes has lost
			t.Error(err)
		}
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, old) && !bytes.Equal(b, now) {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
	}
	wg.Wait()
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

// Of a process that was killed while it wrote a file nothing stays once that is there.
func TestTidy(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"a.json", ".a.json-123", ".a.json-9", ".b.json-123", ".a.json-mine", ".hidden", "a.json-1",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Tidy(dir); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".a.json-mine", ".b.json-123", ".hidden", "a.json", "a.json-1"}; !slices.Equal(left, want) {
		t.Errorf("left are %q; want %q", left, want)
	}
	if err := Tidy(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// An error of what writes a file is returned, whatever it is, and the file stays as it was.
func TestWriteFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := Put(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	failed := Write(path, func(io.Writer) error { return fs.ErrNotExist })
	text, err := os.ReadFile(path)
	if !errors.Is(failed, fs.ErrNotExist) || err != nil || string(text) != "old" {
		t.Errorf("the error is %v, and the file holds %q (%v); want %v and %q",
			failed, text, err, fs.ErrNotExist, "old")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}
