package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"ephemera/experiments/files"
)

// Result is what a directory of results gives.
type Result struct {
	Page    *Page
	Figures []string                // names of all figures that such a directory may have
	Text    func(w io.Writer) error // prints the results
}

// kinds are the files that tell what a directory holds, and what reads it.
var kinds = []kind{{"result.json", readResult}, {"config.toml", readSweep}}

type kind struct {
	file string
	read func(dir fs.FS, at string) (*Result, error)
}

// Load reads a directory of results: that of a sweep, of train or of bench. Its
// page has the commands that make it again, in which the directory is at.
func Load(dir, at string) (*Result, error) {
	return within(dir, func(dir fs.FS) (*Result, error) { return Read(dir, at) })
}

// within reads a directory, and nothing that links in it lead to.
func within[T any](dir string, read func(fs.FS) (T, error)) (v T, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return v, err
	}
	defer root.Close()
	if v, err = read(root.FS()); err != nil {
		return v, fmt.Errorf("%s: %w", dir, err)
	}
	return v, nil
}

// Read reads the files of a directory of results. It takes nothing in them for
// granted: it returns an error, or a page that can be written.
func Read(dir fs.FS, at string) (*Result, error) {
	for _, k := range kinds {
		if _, err := fs.Stat(dir, k.file); err != nil {
			continue
		}
		r, err := k.read(dir, at)
		if err == nil && r.Page.Command != "" {
			r.Page.Command += "\ngo run ./cmd/report " + at
		}
		return r, err
	}
	return nil, errors.New("holds no results: there is neither result.json nor config.toml in it")
}

// Dirs returns dir if it holds results, or else the directories in it that do,
// of which there must be one.
func Dirs(dir string) ([]string, error) {
	return files.Dirs(dir, "results", kinds[0].file, kinds[1].file)
}

// maxFile bounds what is read of a file, in bytes.
const maxFile = 1 << 30

// open opens a file. An error that there is none is fs.ErrNotExist. It looks
// before it opens: a pipe that nobody writes to would never open.
func open(dir fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(dir, name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a file", name)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s: is larger than %d bytes", name, maxFile)
	}
	return dir.Open(name)
}

func readFile(dir fs.FS, name string) ([]byte, error) {
	f, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// rows calls use for each row of a CSV file behind its heading, which it returns.
// There are so many columns, or for 0 as many as in the heading.
func rows(dir fs.FS, name string, columns int, use func(row []string) error) (head []string, err error) {
	f, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := csv.NewReader(f)
	c.FieldsPerRecord = columns
	for n := 1; ; n++ {
		row, err := c.Read()
		switch {
		case err == io.EOF && n == 1:
			err = errors.New("there is no heading")
		case err == io.EOF:
			return head, nil
		case err == nil && n == 1:
			head = row
		case err == nil:
			err = use(row)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", name, n, err)
		}
	}
}
