package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
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
		f.StringVar(&o.format, "format", "table", "`form` of the results on stdout: "+result.Formats)
		f.StringVar(&o.progress, "progress", "auto", "`when` to show progress on stderr: auto (on a terminal) or off")
		if more != nil {
			more()
		}
	})
}

// Format returns the format that was asked for.
func (o *Output) Format() (result.Format, error) {
	f, err := result.ParseFormat(o.format)
	return f, AsUsage(err)
}

// Progress returns a function that shows how much is done of a total, and one
// that clears the line. Nothing is shown unless stderr is a terminal.
func (o *Output) Progress(stderr io.Writer, what string) (show func(done, total int), clear func(), err error) {
	nothing := func(int, int) {}
	if o.progress != "auto" && o.progress != "off" {
		return nil, nil, Usagef("-progress is %q; allowed are auto or off", o.progress)
	}
	file, ok := stderr.(*os.File)
	if o.progress == "off" || !ok || !term.IsTerminal(int(file.Fd())) {
		return nothing, func() {}, nil
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
	}, nil
}

// File is a file to write.
type File struct {
	Name string
	Data []byte
}

// NewDir checks that files can be written into dir without replacing any,
// before work is spent on what they will hold.
func NewDir(dir string, names ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, n := range names {
		if _, err := os.Lstat(filepath.Join(dir, n)); err == nil {
			return fmt.Errorf("%s is there already and would be replaced; name another directory", filepath.Join(dir, n))
		}
	}
	probe, err := files.Create(filepath.Join(dir, names[0]), "")
	if err != nil {
		return err
	}
	return probe.Cleanup()
}

// WriteFiles writes all files or, as when the disk is full, none: each is
// written beside its place, and put there when all are whole.
func WriteFiles(dir string, all []File) error {
	ready := make([]files.Pending, 0, len(all))
	defer func() {
		for _, p := range ready {
			_ = p.Cleanup() // does nothing for a file that is in its place
		}
	}()
	for _, f := range all {
		p, err := files.Create(filepath.Join(dir, f.Name), "")
		if err != nil {
			return err
		}
		ready = append(ready, p)
		if _, err := p.Write(f.Data); err != nil {
			return err
		}
		if err := p.Sync(); err != nil {
			return err
		}
	}
	for _, p := range ready {
		if err := p.CloseAtomicallyReplace(); err != nil {
			return err
		}
	}
	return nil
}

// Positive refuses a flag's value that is not a finite number above 0.
func Positive(name string, v float64) error {
	if !(v > 0) || math.IsInf(v, 0) {
		return Usagef("-%s is %v; allowed is a finite number above 0", name, v)
	}
	return nil
}
