package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// An error is one line, which is short enough to be read and cannot steer the
// terminal, and an exit status.
func TestLine(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		line   string // … stands for the middle of one that is too long
	}{
		{nil, OK, ""},
		{errors.New("a\n  b\tc\n"), Failure, "train: a b c"},
		{Usagef("x"), Usage, "train: x"},
		{fmt.Errorf("while: %w", Usagef("x")), Usage, "train: while: x"},
		{AsUsage(nil), OK, ""},
		{fmt.Errorf("learning: %w", context.Canceled), Interrupted, "train: learning: interrupted"},
		{errors.Join(errors.New("a\nb"), errors.New("c")), Failure, "train: a b; c"},
		{errors.New("name \x1b]0;pwned\x07"), Failure, `train: name \u001b]0;pwned\u0007`},
		{fmt.Errorf("a.toml:3: unknown key %q; allowed are b", strings.Repeat("k", 1<<20)), Failure, "train: a.toml:3:…; allowed are b"},
	} {
		if got := Status(c.err); got != c.status {
			t.Errorf("%.60v: status %d, want %d", c.err, got, c.status)
		}
		if c.err == nil {
			continue
		}
		got := Line("train", c.err)
		begin, end, long := strings.Cut(c.line, "…")
		if got != c.line && !(long && len(got) < 2000 && strings.HasPrefix(got, begin) && strings.HasSuffix(got, end)) {
			t.Errorf("the line is %.200q, want %q", got, c.line)
		}
	}
}

func TestVersion(t *testing.T) {
	f, _ := flags()
	var b bytes.Buffer
	done, err := f.ParseAll([]string{"-version"}, false, &b)
	if !done || err != nil || !strings.HasPrefix(b.String(), "x ") || !strings.Contains(b.String(), "go1.") {
		t.Errorf("done %v, %v: %q", done, err, b.String())
	}
}

func flags() (*Flags, *int) {
	f := NewFlags("x", "X does something.")
	var n int
	f.Group("Numbers", func() { f.IntVar(&n, "n", 3, "`count` of things") })
	f.Group("Others", func() { f.Bool("quiet", false, "say nothing") })
	return f, &n
}

func TestFlags(t *testing.T) {
	f, n := flags()
	if done, err := f.ParseAll([]string{"-n", "5"}, false, nil); done || err != nil || *n != 5 {
		t.Errorf("n %d, done %v, %v", *n, done, err)
	}
	if !f.Given("n") || f.Given("quiet") {
		t.Error("-n was given and -quiet was not")
	}
	for _, args := range [][]string{{"-m"}, {"-n", "x"}, {"rest"}} {
		f, _ := flags()
		if _, err := f.ParseAll(args, false, nil); Status(err) != Usage {
			t.Errorf("%v: %v", args, err)
		}
	}
	f, _ = flags()
	if _, err := f.ParseAll([]string{"rest"}, true, nil); err != nil || f.Arg(0) != "rest" {
		t.Errorf("an operand: %v", err)
	}
}

func TestHelpIsGrouped(t *testing.T) {
	f, _ := flags()
	var b bytes.Buffer
	if done, err := f.ParseAll([]string{"-h"}, false, &b); !done || err != nil {
		t.Fatalf("done %v, %v", done, err)
	}
	text := b.String()
	last := -1
	for _, want := range []string{"X does something.", "Numbers", "-n count", "(default 3)", "Others", "-quiet"} {
		at := strings.Index(text, want)
		if at <= last {
			t.Errorf("%q stands at %d, behind %d:\n%s", want, at, last, text)
		}
		last = at
	}
}
