// Package cli is what the commands share: flags in groups, one line per error,
// exit statuses, and progress on a terminal.
package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"ephemera/experiments/files"
)

// Exit statuses.
const (
	OK          = 0
	Failure     = 1
	Usage       = 2
	Interrupted = 130
)

// usageError is a mistake in how a command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usagef returns an error for which the command exits with status 2.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// AsUsage marks err, if it is one, as a mistake in how the command was called.
func AsUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// Status returns the exit status for err.
func Status(err error) int {
	var u usageError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &u):
		return Usage
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failure
}

// Cores is how many runs are made at once unless a flag says otherwise.
var Cores = runtime.GOMAXPROCS(0)

// Command is what a command does.
type Command func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Main runs a command to its end: run gets a context that Ctrl-C cancels, and
// an error becomes one line on stderr and an exit status. A second Ctrl-C ends the
// process.
func Main(name string, run Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, Line(name, err))
	}
	os.Exit(Status(err))
}

// GoOn adds to the error of an interrupted command how to go on.
func GoOn(err error, how string) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w; %s", err, how)
}

// Line is the one line that tells of an error.
func Line(name string, err error) string {
	text := strings.Replace(err.Error(), context.Canceled.Error(), "interrupted", 1)
	return name + ": " + strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", "; ")), " ")
}

// Flags is a flag set whose help is printed in groups.
type Flags struct {
	*flag.FlagSet
	about  string
	titles []string          // of the groups
	title  map[string]string // of the group of a flag
}

// NewFlags returns the flag set of a command; about is what its help says
// first.
func NewFlags(name, about string) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), about: about, title: map[string]string{}}
	f.SetOutput(io.Discard) // errors are printed once, by Main
	return f
}

const others = "Others" // the group of flags that have none

// Group begins a group: flags defined by define belong to it.
func (f *Flags) Group(title string, define func()) {
	rest := func(title string) {
		f.VisitAll(func(x *flag.Flag) { f.title[x.Name] = cmp.Or(f.title[x.Name], title) })
	}
	rest(others) // those defined before
	define()
	rest(title)
	f.titles = append(f.titles, title)
}

// Count defines a flag for a whole number from least on.
func (f *Flags) Count(to *int, name string, usual, least int, usage string) {
	*to = usual
	f.Func(name, fmt.Sprintf("%s (default %d)", usage, usual), func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			return fmt.Errorf("allowed is a whole number, %d or more", least)
		}
		*to = n
		return nil
	})
}

// Choice defines a flag for one of the words that are allowed.
func (f *Flags) Choice(to *string, name, usual, usage string, allowed ...string) {
	if *to = usual; usual != "" {
		usage += fmt.Sprintf(" (default %s)", usual)
	}
	f.Func(name, usage, func(text string) error {
		if !slices.Contains(allowed, text) {
			return fmt.Errorf("allowed are %s", strings.Join(allowed, ", "))
		}
		*to = text
		return nil
	})
}

// ParseAll parses the arguments. It prints the help and returns done for -h,
// and refuses what is left over unless operands are allowed.
func (f *Flags) ParseAll(args []string, operands bool, stdout io.Writer) (done bool, err error) {
	switch err = f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		f.help(stdout)
		return true, nil
	case err != nil:
		return false, Usagef("%w; -h lists the flags", err)
	case !operands && f.NArg() > 0:
		return false, Usagef("unexpected argument %q; this command takes flags only, -h lists them", f.Arg(0))
	}
	return false, nil
}

// ParseMixed parses flags that stand before, between and behind the operands,
// and returns these.
func (f *Flags) ParseMixed(args []string, stdout io.Writer) (operands []string, done bool, err error) {
	for {
		if done, err := f.ParseAll(args, true, stdout); done || err != nil {
			return nil, done, err
		}
		if f.NArg() == 0 {
			return operands, false, nil
		}
		operands = append(operands, f.Arg(0))
		args = f.Args()[1:]
	}
}

// Only refuses all flags but those that are allowed together with what another
// one asks for.
func (f *Flags) Only(why string, allowed ...string) error {
	var err error
	f.Visit(func(x *flag.Flag) {
		if err == nil && !slices.Contains(allowed, x.Name) {
			err = Usagef("%s; leave out -%s", why, x.Name)
		}
	})
	return err
}

// Given reports whether the flag was given.
func (f *Flags) Given(name string) bool {
	given := false
	f.Visit(func(x *flag.Flag) { given = given || x.Name == name })
	return given
}

func (f *Flags) help(w io.Writer) {
	fmt.Fprintf(w, "%s\n", strings.TrimSpace(f.about))
	for _, title := range append(f.titles, others) {
		fmt.Fprintf(w, "\n%s\n", title)
		f.VisitAll(func(x *flag.Flag) {
			if cmp.Or(f.title[x.Name], others) != title {
				return
			}
			arg, usage := flag.UnquoteUsage(x)
			head := "-" + x.Name
			if arg != "" {
				head += " " + arg
			}
			fmt.Fprintf(w, "  %-22s %s", head, usage)
			if x.DefValue != "" && x.DefValue != "false" {
				fmt.Fprintf(w, " (default %s)", x.DefValue)
			}
			fmt.Fprintln(w)
		})
	}
}

// PutCommand keeps in a directory of results the line that makes them again.
func PutCommand(dir, name string, args []string) error {
	return files.Put(filepath.Join(dir, "command.txt"), []byte("go run ./cmd/"+name+" "+Quote(args...)+"\n"))
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./=:,+@%-]+$`)

// Quote returns words as a shell's command line has them.
func Quote(words ...string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; !plainWord.MatchString(w) {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
