package files

import (
	"bytes"
	"os"
	"path/filepath"
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
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, old) && !bytes.Equal(b, now) {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
	}
	wg.Wait()
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}
