package store

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ephemera/live/schedule"
)

// killed returns a directory as a kill leaves a store of so many crawls with a URL each, all
// of which were waited for.
func killed(t *testing.T, crawls int) string {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range crawls {
		c, err := s.Put(schedule.ID{Crawl: fmt.Sprint("c", i), Key: "k", URL: "http://k/"}, 1000, 1000, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i%100 == 99 || i == crawls-1 {
			c.Wait()
		}
		if i == crawls/2 {
			s.db.Flush() // so that there is a table
		}
	}
	copied := filepath.Join(t.TempDir(), "copied")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return copied
}

// last returns the last file of a pattern.
func last(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatal(pattern, err)
	}
	return files[len(files)-1]
}

func cut(file string, n int64) error {
	st, err := os.Stat(file)
	if err != nil {
		return err
	}
	return os.Truncate(file, st.Size()-n)
}

// flip changes 50 bytes.
func flip(file string, at int64) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for k := range 50 {
		b[int(at)+k] ^= 0xff
	}
	return os.WriteFile(file, b, 0o600)
}

// TestDamage: a store of which a part is missing says what was acknowledged and what was
// found, and one that does not open says what can be done.
func TestDamage(t *testing.T) {
	const n = 3000
	tests := []struct {
		name  string
		do    func(dir string) error
		lost  bool
		opens bool
	}{
		{"nothing", func(string) error { return nil }, false, true},
		{"log cut by 100 bytes", func(dir string) error { return cut(last(t, dir, "*.log"), 100) }, true, true},
		{"log removed", func(dir string) error { return os.Remove(last(t, dir, "*.log")) }, true, true},
		{"log damaged at its end", func(dir string) error {
			file := last(t, dir, "*.log")
			st, err := os.Stat(file)
			return errors.Join(err, flip(file, st.Size()-60))
		}, true, true},
		{"receipt cut", func(dir string) error { return cut(filepath.Join(dir, receiptName), 10) }, false, true},
		{"receipt removed", func(dir string) error { return os.Remove(filepath.Join(dir, receiptName)) }, false, true},
		{"log damaged at its start", func(dir string) error { return flip(last(t, dir, "*.log"), 0) }, false, false},
		{"manifest removed", func(dir string) error { return os.Remove(last(t, dir, "MANIFEST*")) }, false, false},
		{"table removed", func(dir string) error { return os.Remove(last(t, dir, "*.sst")) }, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := killed(t, n)
			if err := tt.do(dir); err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir, nil)
			if !tt.opens {
				if err == nil || !strings.Contains(err.Error(), "What can be done") ||
					strings.Contains(err.Error(), "\n") {
					t.Errorf("the error is %v", err)
				}
				if err == nil {
					s.Close()
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var found int
			s.View(func(sched *schedule.Schedule) { found = len(sched.Crawls()) })
			said := fmt.Sprint(s.Lost())
			want := []string{
				fmt.Sprintf("%d URLs in %d crawls; ", n, n),
				fmt.Sprintf("with %d URLs in %d crawls.", found, found),
			}
			switch {
			case (s.Lost() != nil) != tt.lost || tt.lost != (found < n):
				t.Errorf("%d of %d crawls are found: %s", found, n, said)
			case tt.lost && (!strings.Contains(said, want[0]) || !strings.Contains(said, want[1])):
				t.Errorf("it says %q, and not %q", said, want)
			}
		})
	}
}

// TestDamagedTable: what cannot be read of a table is said when it is asked for, and the
// queues of other tables are served.
func TestDamagedTable(t *testing.T) {
	dir := killed(t, 3000)
	if err := flip(last(t, dir, "*.sst"), 2000); err != nil {
		t.Fatal(err)
	}
	now := int64(5000)
	s, err := Open(dir, &Options{Now: showing(&now)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var got, failed int
	for got+failed < 3000 {
		taken, err := s.Take(&schedule.Request{Hold: 1000, Queues: 100}, math.MaxInt)
		if got += len(taken); err != nil {
			failed++
			if !strings.Contains(err.Error(), "What can be done") {
				t.Fatal(err)
			}
		}
	}
	if got == 0 || failed == 0 {
		t.Errorf("%d URLs are handed out, and %d errors are said, of 3000 queues", got, failed)
	}
}

// TestMovedLog: what the error of a damaged log advises opens the store.
func TestMovedLog(t *testing.T) {
	dir := killed(t, 3000)
	log := last(t, dir, "*.log")
	if err := flip(log, 0); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(dir, nil); err == nil {
		s.Close()
		t.Fatal("a damaged log is taken up")
	}
	if err := os.Rename(log, filepath.Join(t.TempDir(), "log")); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Lost() == nil {
		t.Error("nothing is said to be lost")
	}
}

// TestInUse: a second program is refused, and knows why.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Open(dir, nil); !errors.Is(err, ErrInUse) {
		t.Error(err)
	}
}

// TestNoDirectory: a directory that cannot be made is not taken for one of which a file is missing.
func TestNoDirectory(t *testing.T) {
	for _, dir := range []string{"", "/dev/null/state"} {
		s, err := Open(dir, nil)
		if err == nil {
			s.Close()
		}
		if text := fmt.Sprint(err); !strings.Contains(text, "mkdir") || strings.Contains(text, "damaged") {
			t.Errorf("%q: %v", dir, err)
		}
	}
}
