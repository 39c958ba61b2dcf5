package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
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
		{fmt.Errorf("learning: %w", context.Canceled), Interrupted, "train: learning: interrupted"},
		{errors.Join(errors.New("a\nb"), errors.New("c")), Failure, "train: a; b; c"},
		{errors.New("a\x1b[2J.toml is missing"), Failure, `train: a\x1b[2J.toml is missing`},
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

// Flags stand before, between and behind the operands, and -h lists them.
func TestFlags(t *testing.T) {
	for _, x := range []struct {
		args, operands string
		n              int
		status         int
	}{
		{"-n 5", "", 5, OK},
		{"a -n 5 b", "a b", 5, OK},
		{"a b c", "", 3, Usage},
		{"-m", "", 3, Usage},
		{"-n x", "", 0, Usage},
	} {
		f := NewFlags("x", "X does something.")
		n := f.Int("n", 3, "`count` of things")
		operands, done, err := f.ParseAll(strings.Fields(x.args), 2, nil)
		if done || Status(err) != x.status || *n != x.n || strings.Join(operands, " ") != x.operands ||
			f.IsSet("n") != (x.n == 5) {
			t.Errorf("%s: n %d, operands %q, done %v, %v", x.args, *n, operands, done, err)
		}
	}
	f := NewFlags("x", "X does something.")
	f.Int("n", 3, "`count` of things")
	var b bytes.Buffer
	_, done, err := f.ParseAll([]string{"-h"}, 0, &b)
	want := "X does something.\n\n  -n count\n    \tcount of things (default 3)\n"
	if !done || err != nil || b.String() != want {
		t.Errorf("done %v, %v\n%s", done, err, &b)
	}
}

// An empty argument is refused, but by what runs for long, where it turns a flag off.
func TestEmptyArguments(t *testing.T) {
	var log LogFormat
	for _, service := range []bool{false, true} {
		for args, want := range map[string]string{"-s|": "-s", "-s=|a": "-s=", "a|": "a", "": "x"} {
			f := NewFlags("x", "X does something.")
			f.String("s", "usual", "`text`")
			if service {
				f.Service(&log)
			}
			_, _, err := f.ParseAll(strings.Split(args, "|"), 2, nil)
			if service && err != nil ||
				!service && (Status(err) != Usage || !strings.Contains(err.Error(), "follows "+want+";")) {
				t.Errorf("%q: %v", args, err)
			}
		}
		f := NewFlags("x", "X does something.")
		key := f.String("set", "", "`key=value`")
		if _, _, err := f.ParseAll([]string{"-set=k="}, 0, nil); err != nil || *key != "k=" {
			t.Errorf("-set=k=: %q, %v", *key, err)
		}
	}
}

// A flag that is no number or time says what is allowed.
func TestFlagErrors(t *testing.T) {
	f := NewFlags("x", "X does something.")
	f.Uint64Var(new(uint64), "n", 1, "`number`")
	f.Float64Var(new(float64), "v", 0, "`number`")
	f.DurationVar(new(time.Duration), "d", time.Hour, "`time`")
	for args, want := range map[string]string{
		"-n -1":  "for flag -n: allowed is a whole number from 0 to 9223372036854775807;",
		"-v x":   "for flag -v: allowed is a number;",
		"-d 30":  "for flag -d: allowed is a length of time such as 30m or 1h;",
		"-n 1e3": "for flag -n: allowed is a whole number from 0 to 9223372036854775807;",
		// 2⁶³, which config.toml could not hold
		"-n 9223372036854775808": "for flag -n: allowed is a whole number from 0 to 9223372036854775807;",
	} {
		if _, _, err := f.ParseAll(strings.Fields(args), 0, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", args, err, want)
		}
	}
}

// What is done and what is left stands with words.
func TestProgressLine(t *testing.T) {
	for _, tt := range []struct {
		done int
		want string
	}{
		{0, "0 of 20 runs, 12s"},
		{3, "3 of 20 runs, 12s, about 1m8s left"},
		{20, "20 of 20 runs, 12s, about 0s left"},
	} {
		if got := progressLine(tt.done, 20, "runs", 12*time.Second); got != tt.want {
			t.Errorf("%d done: %q, want %q", tt.done, got, tt.want)
		}
	}
}

// TestFirst: the help names one flag before the others, each once and with its default.
func TestFirst(t *testing.T) {
	f := NewFlags("x", "about")
	f.First = "main"
	f.Int("all", 3, "`number` of all")
	f.Bool("main", false, "is it")
	f.String("zoo", "a", "animals")
	var out bytes.Buffer
	if _, done, err := f.ParseAll([]string{"-all", "4", "-h"}, 0, &out); !done || err != nil {
		t.Fatal(done, err)
	}
	want := "about\n\n  -main\n    \tis it\n  -all number\n    \tnumber of all (default 3)\n" +
		"  -zoo string\n    \tanimals (default \"a\")\n"
	if out.String() != want {
		t.Errorf("the help is %q; want %q", out.String(), want)
	}
}

// TestProgressOfRunsAtOnce: under the race detector, runs that go on at once may show how far they are.
func TestProgressOfRunsAtOnce(t *testing.T) {
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	show, clear := Progress(terminal, "epochs")
	var runs sync.WaitGroup
	for range 2 {
		runs.Go(func() {
			for n := range 100 {
				show(n, 100)
			}
		})
	}
	runs.Wait()
	clear()
}
