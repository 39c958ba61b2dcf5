package env

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const (
	sourceKeys = "name, rate, decay, interest, window, cost, law, shape and batch"
	fileKeys   = "id, budget, [[source]] with " + sourceKeys + ", and [[change]] with at, shuffle and [[change.source]]; id, name and law are strings, shuffle is true or false, the others are numbers"
)

// Load reads an instance file: TOML with the keys of [Instance], [Source] and
// [Change] and no others. A source may leave out window (inf), cost (1), law, shape
// and batch; one of a change keeps what the file leaves out. The ID is the file's
// name if it is left out. Errors are one line with the file, the key, what was found,
// and what is allowed.
func Load(path string) (Instance, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Instance{}, err
	}
	return Unmarshal(path, data)
}

// Unmarshal is Load for the contents of a file; path is what errors call it.
func Unmarshal(path string, data []byte) (in Instance, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := DecodeTOML(path, data, &in, fileKeys); err != nil {
		return Instance{}, err
	}
	var has struct { // what the file has, which tells what is absent from what is 0
		ID, Budget any
		Source     []map[string]any
		Change     []struct{ Source []map[string]any }
	}
	if err := toml.Unmarshal(data, &has); err != nil {
		return Instance{}, fmt.Errorf("%s: %w", path, err)
	}
	if has.Budget == nil || len(has.Source) == 0 {
		return Instance{}, fmt.Errorf("%s: needed are the key budget and at least one [[source]]", path)
	}
	if has.ID == nil {
		in.ID = strings.TrimSuffix(filepath.Base(path), ".toml")
	}
	seen := make(map[string]int, len(in.Sources))
	for i, given := range has.Source {
		s := &in.Sources[i]
		if given["name"] == nil || given["rate"] == nil || given["decay"] == nil || given["interest"] == nil {
			return Instance{}, fmt.Errorf("%s: source %d lacks a key; needed are name, rate, decay and interest", path, i+1)
		}
		if j, ok := seen[s.Name]; ok {
			return Instance{}, fmt.Errorf("%s: sources %d and %d have the same name, %.60q; each name is allowed once", path, j+1, i+1, s.Name)
		}
		seen[s.Name] = i
		if given["window"] == nil && s.Window == 0 {
			s.Window = math.Inf(1)
		}
		if given["cost"] == nil && s.Cost == 0 {
			s.Cost = 1
		}
	}
	changes := in.Changes
	in.Changes = nil
	for k, c := range changes {
		phases := in.Phases()
		before := phases[len(phases)-1].Instance.Sources
		for j, s := range c.Sources {
			if i, ok := seen[s.Name]; ok {
				c.Sources[j] = before[i]
			}
			text, err := toml.Marshal(has.Change[k].Source[j])
			if err == nil {
				err = toml.Unmarshal(text, &c.Sources[j])
			}
			if err != nil {
				return Instance{}, fmt.Errorf("%s: %w", path, err)
			}
		}
		in.Changes = append(in.Changes, c)
	}
	if err := in.Validate(); err != nil {
		return Instance{}, fmt.Errorf("%s: %w", path, err)
	}
	return in, nil
}

// DecodeTOML reads TOML strictly into a pointer to a struct. Its errors are one line
// with where, line, column and key; allowed says what a file may hold.
func DecodeTOML(where string, text []byte, into any, allowed string) error {
	err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(into)
	if err == nil {
		return nil
	}
	what, bad, unknown := "unknown key", new(toml.DecodeError), new(toml.StrictMissingError)
	if errors.As(err, &unknown) {
		bad = &unknown.Errors[0]
	} else if errors.As(err, &bad) {
		what, _, _ = strings.Cut(strings.TrimPrefix(bad.Error(), "toml: "), " into struct field")
	} else {
		return fmt.Errorf("%s: %w", where, err)
	}
	line, column := bad.Position()
	key := ""
	if len(bad.Key()) > 0 {
		key = fmt.Sprintf("key %.60q: ", strings.Join(bad.Key(), "."))
	}
	// What is quoted from the file is cut, as that may be a megabyte.
	return fmt.Errorf("%s:%d:%d: %s%.150s; allowed are %s", where, line, column, key, what, allowed)
}
