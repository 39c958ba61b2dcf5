package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

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

// Progress returns a function that shows how many of a total of things are done,
// and one that clears the line. Nothing is shown unless stderr is a terminal.
func (o *Output) Progress(stderr io.Writer, things string) (show func(done, total int), clear func()) {
	file, ok := stderr.(*os.File)
	if o.progress == "off" || !ok || !isTerminal(file) {
		return func(int, int) {}, func() {}
	}
	const every = 100 * time.Millisecond
	began := time.Now()
	var shown time.Time
	show = func(done, total int) {
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

// TimingFile is the one file of -out that is not the same from run to run, and
// CommandFile has the command that repeats what the directory holds.
const (
	TimingFile  = "timing.json"
	CommandFile = "command.txt"
)

// Results are the files of -out in the making.
type Results struct {
	files []files.File
	err   error
}

// Add adds a file.
func (r *Results) Add(name string, data []byte, err error) {
	r.files, r.err = append(r.files, files.File{Name: name, Data: data}), errors.Join(r.err, err)
}

// Printed is a report or a table.
type Printed interface {
	Write(io.Writer, result.Format) error
}

// Print adds a report or a table.
func (r *Results) Print(name string, x Printed, f result.Format) {
	var b bytes.Buffer
	err := x.Write(&b, f)
	r.Add(name, b.Bytes(), err)
}

// Timing adds the TimingFile.
func (r *Results) Timing(t *result.Timing) {
	data, err := json.MarshalIndent(t, "", "  ")
	r.Add(TimingFile, append(data, '\n'), err)
}

// Command adds the CommandFile of a command that was called with args. What
// changes no result is left out.
func (r *Results) Command(name string, args []string) {
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
	r.Add(CommandFile, []byte(Quote(words...)+"\n"), nil)
}

// Put puts all files into the directory, in place of those that are there.
func (r *Results) Put(dir string) error {
	if r.err != nil {
		return r.err
	}
	return files.Put(dir, r.files...)
}
