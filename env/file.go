package env

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env/strict"
)

// fileInstance is an instance as its TOML file has it. Pointers tell what is
// absent from what is 0.
type fileInstance struct {
	ID     *string      `toml:"id,omitempty"`
	Budget *float64     `toml:"budget"`
	Source []fileSource `toml:"source"`
}

type fileSource struct {
	Name     *string  `toml:"name"`
	Rate     *float64 `toml:"rate"`
	Decay    *float64 `toml:"decay"`
	Interest *float64 `toml:"interest"`
	Window   *float64 `toml:"window,omitempty"`
	Cost     *float64 `toml:"cost,omitempty"`
}

const (
	fileKeys   = "id, budget and [[source]]"
	sourceKeys = "name, rate, decay, interest, window and cost"
)

// Load reads an instance file. It is TOML:
//
//	id = "two"              # the file's name if it is left out
//	budget = 1              # budget units per epoch
//
//	[[source]]
//	name = "a"
//	rate = 250              # λ, items per epoch
//	decay = 0.7             # c, 1/epoch
//	interest = 1.0          # ξ̄, mean initial interest of an item
//	window = 20             # M, epochs; inf if it is left out
//	cost = 1                # C, budget units; 1 if it is left out
//
// Keys that are not listed here are refused. Errors are one line with the
// file, the line and column, the key, and what is allowed.
func Load(path string) (Instance, error) {
	data, err := ReadFile(path, maxFile)
	if err != nil {
		return Instance{}, err
	}
	return Unmarshal(path, data)
}

// maxFile is the greatest size of an instance file, bytes: some 2·10⁶ sources.
const maxFile = 1 << 28

// OpenRegular opens a file for reading. It refuses what is none: a pipe that
// nobody writes to would never open, and a device never end.
func OpenRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		kind := "special file"
		switch m := info.Mode(); {
		case m.IsDir():
			kind = "directory"
		case m&os.ModeNamedPipe != 0:
			kind = "pipe"
		case m&os.ModeDevice != 0:
			kind = "device"
		}
		return nil, fmt.Errorf("%s is a %s; allowed is a file", path, kind)
	}
	return os.Open(path)
}

// ReadFile reads a file of at most limit bytes. It refuses what is no file, such
// as a device or a pipe, which may have no end.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes; allowed are that many", path, limit)
	}
	return data, nil
}

// Unmarshal is Load for the contents of a file; path is what errors call it.
func Unmarshal(path string, data []byte) (Instance, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var f fileInstance
	if err := strict.Decode(data, &f); err != nil {
		return Instance{}, tomlError(path, err)
	}
	if f.Budget == nil {
		return Instance{}, fmt.Errorf("%s: key \"budget\" is missing; needed are budget and at least one [[source]]", path)
	}
	if len(f.Source) == 0 {
		return Instance{}, fmt.Errorf("%s: there is no [[source]]; needed are budget and at least one [[source]]", path)
	}
	in := Instance{
		ID:      strings.TrimSuffix(filepath.Base(path), ".toml"),
		Sources: make([]Source, len(f.Source)),
		Budget:  *f.Budget,
	}
	if f.ID != nil {
		in.ID = *f.ID
	}
	lines := sourceLines(data, len(f.Source))
	seen := make(map[string]int, len(f.Source))
	for i, s := range f.Source {
		where := fmt.Sprintf("%s%s: source %d", path, lines[i], i+1)
		if s.Name != nil {
			where += fmt.Sprintf(" (%.60q)", *s.Name)
		}
		if s.Name == nil {
			return Instance{}, missing(where, "name")
		}
		if j, ok := seen[*s.Name]; ok {
			return Instance{}, fmt.Errorf("%s: source %d has the same name; each name is allowed once", where, j+1)
		}
		seen[*s.Name] = i
		src := NewSource(*s.Name, 0, 0, 0)
		for _, field := range []struct {
			key    string
			from   *float64
			to     *float64
			needed bool
		}{
			{"rate", s.Rate, &src.Rate, true}, {"decay", s.Decay, &src.Decay, true}, {"interest", s.Interest, &src.Interest, true},
			{"window", s.Window, &src.Window, false}, {"cost", s.Cost, &src.Cost, false},
		} {
			if field.from != nil {
				*field.to = *field.from
			} else if field.needed {
				return Instance{}, missing(where, field.key)
			}
		}
		if err := src.Validate(); err != nil {
			return Instance{}, fmt.Errorf("%s: %w", where, err)
		}
		in.Sources[i] = src
	}
	if err := in.Validate(); err != nil {
		return Instance{}, fmt.Errorf("%s: %w", path, err)
	}
	return in, nil
}

func missing(where, key string) error {
	return fmt.Errorf("%s: key %q is missing; needed are name, rate, decay and interest, allowed also window and cost", where, key)
}

// tomlError makes one line of a decoder's error: file, line, column, key. What
// it quotes from the file is cut, as that may be a megabyte.
func tomlError(path string, err error) error {
	var unknown *strict.UnknownError
	if errors.As(err, &unknown) {
		allowed := fileKeys
		if len(unknown.Path) > 1 && unknown.Path[0] == "source" {
			allowed = sourceKeys
		}
		return fmt.Errorf("%s:%d:%d: %w; allowed are %s", path, unknown.Line, unknown.Column, err, allowed)
	}
	var e *toml.DecodeError
	if errors.As(err, &e) {
		line, col := e.Position()
		what, _, _ := strings.Cut(strings.TrimPrefix(e.Error(), "toml: "), " into struct field")
		if key := e.Key(); len(key) > 0 {
			return fmt.Errorf("%s:%d:%d: key %.60q: %.300s; id and name are strings, the other keys numbers, source is [[source]] tables", path, line, col, strings.Join(key, "."), what)
		}
		return fmt.Errorf("%s:%d:%d: not TOML: %.300s; allowed are %s", path, line, col, what, fileKeys)
	}
	return fmt.Errorf("%s: %.300s; allowed are %s", path, strings.TrimPrefix(err.Error(), "toml: "), fileKeys)
}

// sourceLines returns ":LINE" for each [[source]] table, or empty strings if
// the sources were written in another form.
func sourceLines(data []byte, n int) []string {
	at := make([]string, 0, n)
	for key := range strict.Keys(data) {
		if len(key.Path) == 1 && key.Path[0] == "source" {
			at = append(at, fmt.Sprintf(":%d", key.Line))
		}
	}
	if len(at) != n {
		return make([]string, n)
	}
	return at
}
