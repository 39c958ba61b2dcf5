package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// holds checks what a directory holds, as name=content.
func holds(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if e.Name() == locked {
			continue
		}
		b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		got = append(got, e.Name()+"="+string(b))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the directory holds %q, want %q", got, want)
	}
}

func TestPutSet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d := open(t, path)
	holds(t, path)
	if err := d.Put(File{"a", []byte("1")}, File{"missing/b", nil}); err == nil {
		t.Error("a file in a directory that does not exist was written")
	}
	holds(t, path)
	if err := d.Put(File{"a", []byte("1")}, File{"b", []byte("2")}); err != nil {
		t.Fatal(err)
	}
	if err := d.Put(File{"b", []byte("3")}, File{"c", nil}); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "a=1", "b=3", "c=")
	if err := d.Fresh("x", "b"); err == nil || !strings.Contains(err.Error(), "b is there already") {
		t.Errorf("a file that is there: %v", err)
	}
	if err := d.Fresh("x"); err != nil {
		t.Error(err)
	}
	if _, err := Open(d.Path("a")); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// What a killed process left is put right by the next one: a set that was whole
// is completed, one that was not is removed.
func TestSettle(t *testing.T) {
	for _, x := range []struct {
		left []string // files that are there
		want []string
	}{
		{[]string{".new/a", ".new/b"}, nil},
		{[]string{".set/a", ".set/b"}, []string{"a=.set/a", "b=.set/b"}},
		{[]string{"a", ".set/b"}, []string{"a=a", "b=.set/b"}},           // a is moved
		{[]string{"a", ".set/a"}, []string{"a=.set/a"}},                  // an old one is replaced
		{[]string{"a", ".set/b", ".new/a"}, []string{"a=a", "b=.set/b"}}, // cannot be, and does no harm
	} {
		dir := t.TempDir()
		for _, name := range x.left {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		// Who only looks finds the files where they are, and moves none.
		d, err := Enter(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range x.want {
			name, content, _ := strings.Cut(want, "=")
			if b, err := os.ReadFile(d.Find(name)); err != nil || string(b) != content {
				t.Errorf("%q: %s is found with %q, %v; want %q", x.left, name, b, err, content)
			}
		}
		for _, name := range x.left {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("%q: %v", x.left, err)
			}
		}
		d.Close()
		open(t, dir)
		holds(t, dir, x.want...)
	}
}

// A link in place of a set is not followed: the files behind it are another's.
func TestSettleLink(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(dir, whole)); err != nil {
		t.Skip(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), whole) {
		t.Errorf("a link: %v", err)
	}
	holds(t, other, "a=")
}

func TestLock(t *testing.T) {
	path := t.TempDir()
	for range 2 { // a killed process leaves the file, without its lock
		d := open(t, path)
		if _, err := Open(path); !errors.Is(err, ErrLocked) {
			t.Errorf("a second time: %v", err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if entries, _ := os.ReadDir(path); len(entries) > 0 {
			t.Errorf("left behind: %v", entries)
		}
		if err := os.WriteFile(filepath.Join(path, locked), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Of many that open and close a directory at once one is in at a time, although
// each removes the file that it locked.
func TestOneAtATime(t *testing.T) {
	path := t.TempDir()
	var in, entered atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for entered.Load() < 300 {
				d, err := Open(path)
				if errors.Is(err, ErrLocked) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if in.Add(1) != 1 {
					t.Error("two at once")
				}
				entered.Add(1)
				in.Add(-1)
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestSharedLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for _, exclusive := range []bool{true, false} {
		f, err := Lock(path, exclusive)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Lock(path, true); !errors.Is(err, ErrLocked) {
			t.Errorf("exclusive beside exclusive %v: %v", exclusive, err)
		}
		g, err := Lock(path, false)
		if exclusive != errors.Is(err, ErrLocked) {
			t.Errorf("shared beside exclusive %v: %v", exclusive, err)
		}
		g.Close()
		f.Close()
	}
}
