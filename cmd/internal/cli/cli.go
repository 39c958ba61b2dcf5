// Package cli is what the commands share: flags, one line per error, exit
// statuses, and progress on a terminal.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ephemera/internal/build"
	"ephemera/internal/plain"
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

// NeedState returns an error unless there is the directory of a state that a flag is to read: where -dir is
// misspelt, a new one would be begun, and nothing be read without a word.
func NeedState(flag, dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("%s: %w; needed is the -dir of a state", flag, err)
	}
	return nil
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

// GoOn adds to the error of an interrupted command how to go on, if there is a
// directory for runs; it may be that none is done yet.
func GoOn(err error, dir string) error {
	if dir == "" || !errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w; the same command makes the runs that are missing in %s", err, dir)
}

// Line is the one line that reports an error.
func Line(name string, err error) string {
	text := strings.Replace(err.Error(), context.Canceled.Error(), "interrupted", 1)
	return plain.Text(name + ": " + strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", "; ")), " "))
}

// Flags is the flag set of a command.
type Flags struct {
	*flag.FlagSet
	First   string // the flag that the help names before the others; empty for none
	about   string
	service bool
	version bool
}

// NewFlags returns the flag set of a command; about is what its help says
// first.
func NewFlags(name, about string) *Flags {
	f := &Flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), about: strings.TrimSpace(about)}
	f.SetOutput(io.Discard) // errors are printed once, by Main
	return f
}

// Service defines what the commands share that run for long: -version, and -log, the form of
// what they say on stderr. An empty value turns some of their flags off.
func (f *Flags) Service(log *LogFormat) {
	f.service = true
	f.BoolVar(&f.version, "version", false, "print which build this is, and end")
	Choice(f, log, "log", "text", "`form` of the lines of the log, text or json", "text", "json")
}

// LogFormat is the form of the lines of a log.
type LogFormat string

// Handler returns what writes a log in that form.
func (l LogFormat) Handler(w io.Writer, o *slog.HandlerOptions) slog.Handler {
	if l == "json" {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
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

// The next three stand for those of the flag set, whose errors do not say what is allowed.

// Uint64Var defines a flag for a whole number, up to the greatest that TOML has.
func (f *Flags) Uint64Var(to *uint64, name string, usual uint64, usage string) {
	parse := func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 63) }
	parsed(f, to, name, usual, usage, fmt.Sprintf("a whole number from 0 to %d", int64(math.MaxInt64)), parse)
}

// Float64Var defines a flag for a number.
func (f *Flags) Float64Var(to *float64, name string, usual float64, usage string) {
	parse := func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
	parsed(f, to, name, usual, usage, "a number", parse)
}

// DurationVar defines a flag for a length of time.
func (f *Flags) DurationVar(to *time.Duration, name string, usual time.Duration, usage string) {
	parsed(f, to, name, usual, usage, "a length of time such as 30m or 1h", time.ParseDuration)
}

// parsed defines a flag for what parse reads.
func parsed[T comparable](
	f *Flags, to *T, name string, usual T, usage, allowed string, parse func(text string) (T, error),
) {
	if *to = usual; usual != *new(T) {
		usage += fmt.Sprintf(" (default %v)", usual)
	}
	f.Func(name, usage, func(text string) error {
		v, err := parse(text)
		if err != nil {
			return errors.New("allowed is " + allowed)
		}
		*to = v
		return nil
	})
}

// Choice defines a flag for one of the words that are allowed.
func Choice[Word ~string](f *Flags, to *Word, name string, usual Word, usage string, allowed ...Word) {
	if *to = usual; usual != "" {
		usage += fmt.Sprintf(" (default %s)", usual)
	}
	f.Func(name, usage, func(text string) error {
		if !slices.Contains(allowed, Word(text)) {
			return fmt.Errorf("allowed are %v", allowed)
		}
		*to = Word(text)
		return nil
	})
}

// ParseAll parses the arguments and returns the operands, most of them at most; flags
// may stand before, between and behind them. It prints the help and returns done for
// -h, and which build it is for -version.
func (f *Flags) ParseAll(args []string, most int, stdout io.Writer) (operands []string, done bool, err error) {
	if err := f.full(args); err != nil {
		return nil, false, err
	}
	for {
		switch err = f.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			fmt.Fprintf(stdout, "%s\n\n", f.about)
			f.printFlags(stdout)
			return nil, true, nil
		case err != nil:
			return nil, false, Usagef("%w; -h lists the flags", err)
		case f.version:
			_, err := fmt.Fprintln(stdout, f.Name(), build.Read())
			return nil, true, err
		case f.NArg() == 0:
			return operands, false, nil
		case len(operands) == most:
			return nil, false, Usagef("unexpected argument %q; -h says what is allowed", f.Arg(0))
		}
		operands = append(operands, f.Arg(0))
		args = f.Args()[1:]
	}
}

// full refuses an empty argument, which a shell makes of a variable that is not set: it would
// stand for what a flag is by default.
func (f *Flags) full(args []string) error {
	before := f.Name()
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") && strings.IndexByte(arg, '=') == len(arg)-1 {
			before, arg = arg, ""
		}
		if arg == "" && !f.service {
			return Usagef("an empty text follows %s; give a value, or leave it out", before)
		}
		before = arg
	}
	return nil
}

// printFlags prints what the flags mean, by name, the first one before the others.
func (f *Flags) printFlags(w io.Writer) {
	for _, first := range []bool{true, false} {
		some := flag.NewFlagSet(f.Name(), flag.ContinueOnError)
		some.SetOutput(w)
		f.VisitAll(func(x *flag.Flag) {
			if (x.Name == f.First) == first {
				some.Var(x.Value, x.Name, x.Usage)
				some.Lookup(x.Name).DefValue = x.DefValue
			}
		})
		some.PrintDefaults()
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

// IsSet reports whether the flag was given.
func (f *Flags) IsSet(name string) bool {
	given := false
	f.Visit(func(x *flag.Flag) { given = given || x.Name == name })
	return given
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

// Progress returns a function that shows how many of a total of things are done,
// and one that clears the line. Nothing is shown unless stderr is a terminal. Runs that go on
// at once may call the first.
func Progress(stderr io.Writer, things string) (show func(done, total int), clear func()) {
	file, ok := stderr.(*os.File)
	if !ok || !isTerminal(file) {
		return func(int, int) {}, func() {}
	}
	const every = 100 * time.Millisecond
	began := time.Now()
	var shown time.Time
	var mu sync.Mutex
	show = func(done, total int) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(shown) >= every {
			shown = now
			fmt.Fprintf(stderr, "\r\x1b[K%s", progressLine(done, total, things, now.Sub(began)))
		}
	}
	return show, func() { fmt.Fprint(stderr, "\r\x1b[K") }
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progressLine says how much is done and how long the rest may take.
func progressLine(done, total int, things string, spent time.Duration) string {
	line := fmt.Sprintf("%d of %d %s, %v", done, total, things, spent.Round(time.Second))
	if done > 0 {
		left := time.Duration(float64(spent) * float64(total-done) / float64(done))
		line += fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	return line
}
