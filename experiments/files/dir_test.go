package files

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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
		b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		got = append(got, e.Name()+"="+string(b))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the directory holds %q, want %q", got, want)
	}
}

func TestPut(t *testing.T) {
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
		open(t, dir)
		holds(t, dir, x.want...)
	}
}

func TestLock(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no locks on this system")
	}
	path := t.TempDir()
	d := open(t, path)
	if _, err := Open(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second time: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}
