package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// An error is one line and an exit status.
func TestLine(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		line   string
	}{
		{nil, OK, ""},
		{errors.New("a\n  b\tc"), Failure, "train: a; b c"},
		{Usagef("x"), Usage, "train: x"},
		{fmt.Errorf("while: %w", Usagef("x")), Usage, "train: while: x"},
		{AsUsage(nil), OK, ""},
		{fmt.Errorf("learning: %w", context.Canceled), Interrupted, "train: learning: interrupted"},
		{errors.Join(errors.New("a\nb"), errors.New("c")), Failure, "train: a; b; c"},
	} {
		if got := Status(c.err); got != c.status {
			t.Errorf("%.60v: status %d, want %d", c.err, got, c.status)
		}
		if c.err == nil {
			continue
		}
		if got := Line("train", c.err); got != c.line {
			t.Errorf("the line is %q, want %q", got, c.line)
		}
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

// What is done and what is left stands with words.
func TestProgressLine(t *testing.T) {
	for done, want := range map[int]string{0: "0 of 20 runs, 12s", 3: "3 of 20 runs, 12s, about 1m8s left", 20: "20 of 20 runs, 12s, about 0s left"} {
		if got := progressLine(done, 20, "runs", 12*time.Second); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
