package env

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// fileInstance is an instance as its TOML file has it. Pointers tell what is
// absent from what is 0.
type fileInstance struct {
	ID     *string      `toml:"id,omitempty"`
	Budget *float64     `toml:"budget"`
	Source []fileSource `toml:"source"`
	Change []fileChange `toml:"change"`
}

type fileChange struct {
	At      int          `toml:"at"`
	Shuffle bool         `toml:"shuffle"`
	Source  []fileSource `toml:"source"`
}

type fileSource struct {
	Name     *string  `toml:"name"`
	Rate     *float64 `toml:"rate"`
	Decay    *float64 `toml:"decay"`
	Interest *float64 `toml:"interest"`
	Window   *float64 `toml:"window"`
	Cost     *float64 `toml:"cost"`
	Law      *Law     `toml:"law"`
	Shape    *float64 `toml:"shape"`
	Batch    *int     `toml:"batch"`
}

// set overwrites the parameters that the file has.
func (f *fileSource) set(s *Source) {
	overwrite(&s.Name, f.Name)
	overwrite(&s.Rate, f.Rate)
	overwrite(&s.Decay, f.Decay)
	overwrite(&s.Interest, f.Interest)
	overwrite(&s.Window, f.Window)
	overwrite(&s.Cost, f.Cost)
	overwrite(&s.Law, f.Law)
	overwrite(&s.Shape, f.Shape)
	overwrite(&s.Batch, f.Batch)
}

func overwrite[V any](to, from *V) {
	if from != nil {
		*to = *from
	}
}

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
func Unmarshal(path string, data []byte) (Instance, error) {
	var f fileInstance
	if err := DecodeTOML(path, bytes.TrimPrefix(data, []byte("\ufeff")), &f, fileKeys); err != nil {
		return Instance{}, err
	}
	if f.Budget == nil || len(f.Source) == 0 {
		return Instance{}, fmt.Errorf("%s: needed are the key budget and at least one [[source]]", path)
	}
	in := Instance{
		ID:      strings.TrimSuffix(filepath.Base(path), ".toml"),
		Sources: make([]Source, len(f.Source)),
		Budget:  *f.Budget,
	}
	overwrite(&in.ID, f.ID)
	seen := make(map[string]int, len(f.Source))
	for i, s := range f.Source {
		if s.Name == nil || s.Rate == nil || s.Decay == nil || s.Interest == nil {
			return Instance{}, fmt.Errorf("%s: source %d lacks a key; needed are name, rate, decay and interest", path, i+1)
		}
		if j, ok := seen[*s.Name]; ok {
			return Instance{}, fmt.Errorf("%s: sources %d and %d have the same name, %.60q; each name is allowed once", path, j+1, i+1, *s.Name)
		}
		seen[*s.Name] = i
		in.Sources[i] = NewSource("", 0, 0, 0)
		s.set(&in.Sources[i])
	}
	for _, c := range f.Change {
		phases := in.Phases()
		before := phases[len(phases)-1].Instance.Sources
		change := Change{At: c.At, Shuffle: c.Shuffle}
		for _, s := range c.Source {
			var changed Source
			overwrite(&changed.Name, s.Name)
			if i, ok := seen[changed.Name]; ok {
				changed = before[i]
			}
			s.set(&changed)
			change.Sources = append(change.Sources, changed)
		}
		in.Changes = append(in.Changes, change)
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
