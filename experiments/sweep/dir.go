package sweep

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments/files"
)

// Files in the directory of a sweep that others read.
const (
	// MetaFile is there from the first run on and says what the others hold.
	MetaFile    = "meta.json"
	CurvesFile  = "curves.csv"
	LearnedFile = "learned.csv"
)

// finalFiles are those that a sweep leaves at its end.
var finalFiles = []string{"runs.csv", CurvesFile, LearnedFile, "summary.json", "summary.csv", "summary.md"}

const (
	configFile = "config.toml"
	recordsDir = "records" // what has been finished so far, and locks
	inputsDir  = "inputs"  // copies of the files that config.toml names, so that the directory says all
)

// Limits of what is read whole.
const (
	maxConfig = 16 << 20
	maxInput  = 1 << 30
	maxResult = 1 << 30
)

// Dirs returns dir if it is of a sweep, or else the directories of sweeps in it,
// of which there must be one.
func Dirs(dir string) ([]string, error) {
	return files.Dirs(dir, "config.toml of a sweep", configFile)
}

// Meta is what MetaFile holds.
type Meta struct {
	Format     int               `json:"format"` // of the files of a sweep; 1
	Program    string            `json:"program"`
	Command    string            `json:"command"`    // that repeats the sweep; "" if unknown
	Arithmetic string            `json:"arithmetic"` // in which it was begun; others differ in the last digits
	Name       string            `json:"name"`
	Question   string            `json:"question"`
	Figures    []Figure          `json:"figures"` // columns of runs.csv, in their order
	Curves     []Figure          `json:"curves"`  // columns of curves.csv
	Axes       []string          `json:"axes"`    // settings that differ between cells
	Seeds      []uint64          `json:"seeds"`
	Cells      []MetaCell        `json:"cells"`
	Inputs     map[string]string `json:"inputs,omitempty"` // files in inputs/ by the names that the configuration has for them
}

// MetaCell is a cell with those of the axes that it has.
type MetaCell struct {
	ID       string         `json:"id"`
	Settings map[string]any `json:"settings"`
}

// metaFormat is the version of the files that this program writes and reads.
const metaFormat = 1

// ParseMeta reads what MetaFile holds.
func ParseMeta(b []byte) (*Meta, error) {
	m := &Meta{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, err
	}
	if m.Format != metaFormat {
		return nil, fmt.Errorf("format is %d; this program reads %d", m.Format, metaFormat)
	}
	return m, nil
}

// read reads a file that sweeps write.
func read[T any](path string, parse func([]byte) (*T, error)) (*T, error) {
	b, err := env.ReadFile(path, maxResult)
	if err != nil {
		return nil, err
	}
	v, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

// copies returns the copies of files that a sweep kept in its directory, by the
// names that its configuration has for them.
func (m *Meta) copies(dir string) map[string]string {
	paths := map[string]string{}
	for name, copied := range m.Inputs {
		paths[name] = filepath.Join(dir, inputsDir, filepath.Base(copied))
	}
	return paths
}

// copied is the name of a file's copy.
func (in *Input) copied() string { return fmt.Sprintf("%x", in.Sum[:8]) }

// Meta says what the results of a sweep are.
func (c *Config) Meta() *Meta {
	m := &Meta{
		Format: metaFormat, Name: c.Name, Question: c.Question,
		Figures: c.x.Figures(), Curves: c.x.CurveFigures(), Axes: c.Axes, Seeds: c.Seeds,
		Inputs: map[string]string{},
	}
	for i := range c.Cells {
		m.Cells = append(m.Cells, MetaCell{c.Cells[i].ID, c.settings(&c.Cells[i])})
	}
	for name, in := range c.Inputs {
		m.Inputs[name] = in.copied()
	}
	return m
}

// settings returns the axes that a cell has, as JSON can hold them: text where a
// number is infinite.
func (c *Config) settings(cell *Cell) map[string]any {
	set := map[string]any{}
	for _, a := range c.Axes {
		if !cell.Has(a) {
			continue
		}
		set[a] = cell.Value(a)
		if f, ok := set[a].(float64); ok && math.IsInf(f, 0) {
			set[a] = FormatValue(f)
		}
	}
	return set
}

// writeJSON writes a value for machines and people.
func writeJSON(w *bufio.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// alone calls f while no other process writes files of the sweep but records;
// others wait. What a process that was killed left is for f to settle.
func alone(ctx context.Context, dir string, f func(d *files.Dir) error) error {
	d, err := files.Enter(dir)
	for errors.Is(err, files.ErrLocked) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
		d, err = files.Enter(dir)
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return f(d)
}

// enter makes the directory this sweep's own: it refuses one that holds something
// else, leaving that as it is, locks it against other processes and says in it
// what it is of.
func enter(ctx context.Context, c *Config, o Options) (unlock func(), err error) {
	var held []*os.File
	unlock = func() {
		for _, f := range held {
			f.Close()
		}
	}
	lock := func(name string, exclusive bool, on string) error {
		f, err := files.Lock(filepath.Join(o.Dir, recordsDir, name), exclusive)
		if errors.Is(err, files.ErrLocked) {
			return fmt.Errorf("%s: another process is at work here on %s; wait for it or stop it", o.Dir, on)
		}
		if err == nil {
			held = append(held, f)
		}
		return err
	}
	// Shards that begin together take turns, so that all are of one configuration.
	err = alone(ctx, o.Dir, func(d *files.Dir) error {
		if err := inspect(c, o.Dir, d.Find); err != nil {
			return err
		}
		if err := d.Settle(); err != nil {
			return err
		}
		if err := os.MkdirAll(d.Path(recordsDir), 0o777); err != nil {
			return err
		}
		// One process may have all of the work, or several one shard each.
		var err error
		if o.Shard == whole {
			err = lock("lock", true, "all of the sweep or a shard of it")
		} else if err = lock("lock", false, "all of the sweep"); err == nil {
			err = lock(o.Shard.file()+".lock", true, "shard "+o.Shard.String())
		}
		if err != nil {
			return err
		}
		return c.claim(d, o)
	})
	if err != nil {
		unlock()
	}
	return unlock, err
}

// inspect refuses a directory that holds something else than this sweep or a
// beginning of it; find says where its files are.
func inspect(c *Config, dir string, find func(name string) string) error {
	const another = "name another directory with -out"
	path := find(configFile)
	text, err := env.ReadFile(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		for _, name := range finalFiles {
			if _, err := os.Stat(find(name)); err == nil && len(recordFiles(dir)) == 0 {
				return fmt.Errorf("%s: holds %s but neither config.toml nor records, so it is not of a sweep; %s", dir, name, another)
			}
		}
		return nil // records of another sweep are refused when they are read
	}
	if err != nil {
		return err
	}
	meta, err := read(find(MetaFile), ParseMeta)
	if err != nil {
		return fmt.Errorf("%s: holds a config.toml that no sweep of this version wrote (%w); %s", dir, err, another)
	}
	old, err := load(c.x, path, text, nil, meta.copies(dir))
	if err != nil {
		return fmt.Errorf("%w; %s", err, another)
	}
	if what := c.lacks(old); what != "" {
		return fmt.Errorf("%s: holds another configuration, %s: %s; %s", dir, old.Name, what, another)
	}
	if there, here := meta.Arithmetic, arithmetic(); there != "" && there != here {
		return fmt.Errorf("%s: was begun on %s, and this is %s: their figures differ in the last digits; go on where it was begun, or %s", dir, there, here, another)
	}
	return nil
}

// lacks says which runs of another configuration are not of this one, "" if all
// are: then this one goes on where the other ended.
func (c *Config) lacks(old *Config) string {
	var says []string
	for _, key := range append(old.keys(), "seeds") {
		there, here := old.given(key), c.given(key)
		if here == nil && says != nil {
			continue // it went with the learner that had it
		}
		have := map[string]bool{}
		for _, v := range here {
			have[v] = true
		}
		if slices.ContainsFunc(there, func(v string) bool { return !have[v] }) {
			says = append(says, fmt.Sprintf("%s: %s there, %s here", key, some(there), some(here)))
		}
	}
	for name, in := range old.Inputs {
		if now := c.Inputs[name]; now != nil && now.Sum != in.Sum {
			says = append(says, "what "+name+" holds")
		}
	}
	if says != nil {
		return strings.Join(says, "; ")
	}
	have := map[string]bool{}
	for i := range c.Cells {
		have[c.Cells[i].Hash] = true
	}
	for _, cell := range old.Cells {
		if !have[cell.Hash] {
			return fmt.Sprintf("cell %s is there and not here", cell.ID)
		}
	}
	return ""
}

// given returns the values of a setting, or the seeds.
func (c *Config) given(key string) (values []string) {
	seen := map[string]bool{}
	add := func(text string) {
		if !seen[text] {
			seen[text], values = true, append(values, text)
		}
	}
	if key == "seeds" {
		for _, seed := range c.Seeds {
			add(fmt.Sprint(seed))
		}
	}
	for _, g := range c.grids {
		if k := place(g.keys, key); k >= 0 {
			for _, v := range g.lists[k] {
				add(show(v))
			}
		}
	}
	return values
}

// some names the first three.
func some(names []string) string {
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > 3:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

// claim writes config.toml, meta.json and copies of the files that the settings
// name.
func (c *Config) claim(d *files.Dir, o Options) error {
	if err := c.keepInputs(d.Path(inputsDir)); err != nil {
		return err
	}
	m := c.Meta()
	m.Program, m.Command, m.Arithmetic = o.Revision, o.Command, arithmetic()
	text, err := c.resolved()
	if err != nil {
		return err
	}
	return d.Write(func(w []*bufio.Writer) error {
		_, err := w[1].Write(text)
		return cmp.Or(err, writeJSON(w[0], m))
	}, MetaFile, configFile)
}

// keepInputs copies the files that the settings name.
func (c *Config) keepInputs(dir string) error {
	if len(c.Inputs) == 0 {
		return nil
	}
	d, err := files.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		in := c.Inputs[name]
		if old, err := os.ReadFile(d.Path(in.copied())); err == nil && bytes.Equal(old, in.Data) {
			continue
		}
		if err := d.Put(files.File{Name: in.copied(), Data: in.Data}); err != nil {
			return err
		}
	}
	return nil
}
