package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"ephemera/experiments/result"
)

// DefineFormat adds the flag for how a command prints.
func DefineFormat(f *Flags, to *result.Format) {
	Choice(f, to, "format", result.Text, "`form` of the results on stdout: table, markdown, csv or json", result.Text, result.Markdown, result.CSV, result.JSON)
}

// Progress returns a function that shows how many of a total of things are done,
// and one that clears the line. Nothing is shown unless stderr is a terminal.
func Progress(stderr io.Writer, things string) (show func(done, total int), clear func()) {
	file, ok := stderr.(*os.File)
	if !ok || !isTerminal(file) {
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
