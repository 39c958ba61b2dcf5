package env

import (
	"fmt"

	"github.com/pelletier/go-toml/v2"
)

// fileSource is a source as a file may have it: one of items, or a page.
type fileSource struct {
	Source
	Change     *float64 `toml:"change"`     // Δ, changes per epoch
	Importance *float64 `toml:"importance"` // μ, of an epoch in which the copy is fresh
}

// decodeFile reads an instance file without what follows from keys that are absent.
func decodeFile(path string, data []byte) (in Instance, err error) {
	var file struct {
		ID      string       `toml:"id"`
		Budget  float64      `toml:"budget"`
		PerHost int          `toml:"per_host"`
		Sources []fileSource `toml:"source"`
		Changes []struct {
			At      int          `toml:"at"`
			Shuffle bool         `toml:"shuffle"`
			Sources []fileSource `toml:"source"`
		} `toml:"change"`
	}
	if err := DecodeTOML(path, data, &file, fileKeys); err != nil {
		return in, err
	}
	in.ID, in.Budget, in.PerHost = file.ID, file.Budget, file.PerHost
	for _, s := range file.Sources {
		in.Sources = append(in.Sources, s.source())
	}
	for _, c := range file.Changes {
		change := Change{At: c.At, Shuffle: c.Shuffle}
		for _, s := range c.Sources {
			change.Sources = append(change.Sources, s.source())
		}
		in.Changes = append(in.Changes, change)
	}
	return in, nil
}

// source returns the source with what a page has in other words.
func (f *fileSource) source() Source {
	s := f.Source
	if f.Change != nil {
		s.Law, s.Rate, s.Decay = LawFreshness, 1, *f.Change
	}
	if f.Importance != nil {
		s.Interest = *f.Importance
	}
	return s
}

// isPage reports whether a source with these keys is a page.
func isPage(given map[string]any) bool { return given["change"] != nil }

// complete reports which key a source lacks that it needs, and which belong to one of another
// kind.
func complete(given map[string]any) error {
	needed, list := []string{"name", "rate", "decay", "interest"}, "name, rate, decay and interest"
	if isPage(given) {
		needed, list = []string{"name", "change", "importance"}, "name, change and importance"
	}
	for _, key := range needed {
		if given[key] == nil {
			return fmt.Errorf("lacks the key %s; needed are %s", key, list)
		}
	}
	return fits(given, isPage(given))
}

// fits refuses keys that belong to a source of another kind, and a 0 that would stand for what
// is left out.
func fits(given map[string]any, page bool) error {
	other := []string{"change", "importance"}
	if page {
		other = []string{"rate", "decay", "interest", "window", "law", "shape", "batch", "fails", "host"}
	}
	for _, key := range other {
		if given[key] != nil {
			return fmt.Errorf("has the key %s; a page has change and importance, "+
				"and a source of items rate, decay and interest", key)
		}
	}
	for _, key := range []string{"batch", "shape"} {
		if v := given[key]; v == int64(0) || v == 0. {
			return fmt.Errorf("has %s = %v; allowed is a number above 0", key, v)
		}
	}
	return nil
}

// overlay gives a source the values that a change has of it.
func overlay(s *Source, given map[string]any) error {
	text, err := toml.Marshal(given)
	if err != nil {
		return err
	}
	f := fileSource{Source: *s}
	if err := toml.Unmarshal(text, &f); err != nil {
		return err
	}
	if given["shape"] == nil && f.Law != s.Law {
		f.Shape = 0 // the shape was that of another law
	}
	*s = f.source()
	return nil
}
