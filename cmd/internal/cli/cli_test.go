package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, OK},
		{errors.New("x"), Failure},
		{Usagef("x"), Usage},
		{fmt.Errorf("while: %w", Usagef("x")), Usage},
		{AsUsage(nil), OK},
		{fmt.Errorf("stopped: %w", context.Canceled), Interrupted},
	} {
		if got := Status(c.err); got != c.want {
			t.Errorf("%v: status %d, want %d", c.err, got, c.want)
		}
	}
}

func TestLineIsOneLine(t *testing.T) {
	if got := Line("train", errors.New("a\n  b\tc\n")); got != "train: a b c" {
		t.Errorf("%q", got)
	}
}

// What a line holds cannot steer the terminal, and is short enough to be read.
func TestLineIsPrintable(t *testing.T) {
	if got := Line("x", errors.New("name \x1b]0;pwned\x07 of a source")); strings.ContainsAny(got, "\x1b\x07") || !strings.Contains(got, "pwned") {
		t.Errorf("%q", got)
	}
	if got := Line("x", fmt.Errorf("a.toml:3: unknown key %q; allowed are b", strings.Repeat("k", 1<<20))); len(got) > 2000 || !strings.Contains(got, "a.toml:3") || !strings.HasSuffix(got, "allowed are b") {
		t.Errorf("%d bytes: %.100s", len(got), got)
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

func TestProgressOffATerminal(t *testing.T) {
	f := NewFlags("x", "")
	var o Output
	o.Define(f, nil)
	if _, err := f.ParseAll(nil, false, nil); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	show, clear := o.Progress(&b, "x")
	show(1, 2)
	clear()
	if b.Len() != 0 {
		t.Errorf("printed %q", &b)
	}
}

func TestFormat(t *testing.T) {
	parse := func(format string) error {
		f := NewFlags("x", "")
		var o Output
		o.Define(f, nil)
		_, err := f.ParseAll([]string{"-format", format}, false, nil)
		return err
	}
	if err := parse("xml"); Status(err) != Usage || !strings.Contains(err.Error(), "json") {
		t.Errorf("xml: %v", err)
	}
	for _, n := range []string{"table", "markdown", "csv", "json"} {
		if err := parse(n); err != nil {
			t.Error(err)
		}
	}
}
