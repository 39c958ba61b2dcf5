package files

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Files are whole whenever they are looked at, whoever writes at the same time, and
// nothing else stays.
func TestPut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	old, now := bytes.Repeat([]byte{'1'}, 1<<16), bytes.Repeat([]byte{'2'}, 1<<15)
	if err := Put(dir, File{"one", old}, File{"two", nil}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for range 50 {
				if err := Put(dir, File{"one", [][]byte{old, now}[k%2]}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		if b, err := os.ReadFile(filepath.Join(dir, "one")); err != nil || !bytes.Equal(b, old) && !bytes.Equal(b, now) {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
	}
	wg.Wait()
	if err := Put(dir, File{"missing/b", nil}); err == nil {
		t.Error("a file in a directory that does not exist was written")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}
