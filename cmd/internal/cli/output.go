package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"ephemera/experiments/files"
	"ephemera/experiments/result"
)

// Output are the flags of how a command prints.
type Output struct {
	format, progress string
}

// Define adds the flags to f as a group.
func (o *Output) Define(f *Flags, more func()) {
	f.Group("Output", func() {
		f.Choice(&o.format, "format", "table", "`form` of the results on stdout: table, markdown, csv or json", "table", "markdown", "csv", "json")
		f.Choice(&o.progress, "progress", "auto", "`when` to show progress on stderr: auto (on a terminal) or off", "auto", "off")
		if more != nil {
			more()
		}
	})
}

// Format returns the format that was asked for.
func (o *Output) Format() result.Format { return result.Format(o.format) }

// Progress returns a function that shows how much is done of a total, and one
// that clears the line. Nothing is shown unless stderr is a terminal.
func (o *Output) Progress(stderr io.Writer, what string) (show func(done, total int), clear func()) {
	file, ok := stderr.(*os.File)
	if o.progress == "off" || !ok || !term.IsTerminal(int(file.Fd())) {
		return func(int, int) {}, func() {}
	}
	var bar *progressbar.ProgressBar
	show = func(done, total int) {
		if bar == nil {
			bar = progressbar.NewOptions(total,
				progressbar.OptionSetWriter(stderr),
				progressbar.OptionSetDescription(what),
				progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionShowCount(),
				progressbar.OptionShowIts(),
				progressbar.OptionSetPredictTime(true),
				progressbar.OptionClearOnFinish())
		}
		_ = bar.Set(done)
	}
	return show, func() {
		if bar != nil {
			_ = bar.Clear()
		}
	}
}

// OpenDir opens the directory of -out, checks that none of the files is there,
// before work is spent on what they will hold, and keeps other processes out.
// It returns nil where none is named.
func OpenDir(path string, names ...string) (*files.Dir, error) {
	if path == "" {
		return nil, nil
	}
	d, err := files.Open(path)
	if err == nil {
		if err = d.Fresh(names...); err != nil {
			d.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("-out: %w", err)
	}
	return d, nil
}

// File renders a file of -out.
func File(name string, write func(io.Writer) error) (files.File, error) {
	var b bytes.Buffer
	err := write(&b)
	return files.File{Name: name, Data: b.Bytes()}, err
}

// TimingFile is the one file of -out that is not the same from run to run.
const TimingFile = "timing.json"

// Timing renders it.
func Timing(t *result.Timing) (files.File, error) {
	data, err := json.MarshalIndent(t, "", "  ")
	return files.File{Name: TimingFile, Data: append(data, '\n')}, err
}

// CommandFile has the command that repeats what a directory of results holds.
const CommandFile = "command.txt"

// Command is the CommandFile of a command that was called with args. What
// changes no result is left out.
func Command(name string, args []string) files.File {
	words := []string{"go", "run", "./cmd/" + name}
	for k := 0; k < len(args); k++ {
		flag, _, whole := strings.Cut(strings.TrimLeft(args[k], "-"), "=")
		if slices.Contains([]string{"out", "workers", "progress", "format"}, flag) && strings.HasPrefix(args[k], "-") {
			if !whole {
				k++ // its value
			}
			continue
		}
		words = append(words, args[k])
	}
	return files.File{Name: CommandFile, Data: []byte(Quote(words...) + "\n")}
}

// Positive refuses a flag's value that is not a finite number above 0.
func Positive(name string, v float64) error {
	if !(v > 0) || math.IsInf(v, 0) {
		return Usagef("-%s is %v; allowed is a finite number above 0", name, v)
	}
	return nil
}
