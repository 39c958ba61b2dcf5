package sweep

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ephemera/experiments/files"
)

// recordsDir holds what has been finished so far, and locks.
const recordsDir = "records"

// Limits of what is read whole.
const (
	maxConfig = 16 << 20
	maxInput  = 1 << 30
	maxResult = 1 << 30
)

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
	// One process may have all of the work, or several one shard each.
	type lock struct {
		name      string
		exclusive bool
		on        string
	}
	locks := []lock{{"lock", true, "all of the sweep or a shard of it"}}
	if o.Shard != Whole {
		locks = []lock{{"lock", false, "all of the sweep"}, {o.Shard.file() + ".lock", true, "shard " + o.Shard.String()}}
	}
	var held []*os.File
	unlock = func() {
		for _, f := range held {
			f.Close()
		}
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
		for _, l := range locks {
			f, err := files.Lock(filepath.Join(d.Path(recordsDir), l.name), l.exclusive)
			if errors.Is(err, files.ErrLocked) {
				err = fmt.Errorf("%s: another process is at work here on %s; wait for it or stop it", o.Dir, l.on)
			}
			if err != nil {
				return err
			}
			held = append(held, f)
		}
		return c.claim(d, o)
	})
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
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

// inspect refuses a directory that holds something else than this sweep or a
// beginning of it; find says where its files are.
func inspect(c *Config, dir string, find func(name string) string) error {
	path := find(configFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		for _, name := range finalFiles {
			if _, err := os.Stat(find(name)); err == nil && len(recordFiles(dir)) == 0 {
				return fmt.Errorf("%s: holds %s but neither config.toml nor records, so it is not of a sweep; name another directory with -out", dir, name)
			}
		}
		return nil // records of another sweep are refused when they are read
	}
	meta, err := readMeta(find(MetaFile))
	if err != nil {
		return fmt.Errorf("%s: holds a config.toml that no sweep of this version wrote (%w); name another directory with -out", dir, err)
	}
	old, err := loadFile(c.x, path, nil, meta.copies(dir))
	if err != nil {
		return fmt.Errorf("%w; name another directory with -out", err)
	}
	if what := c.lacks(old); what != "" {
		return fmt.Errorf("%s: holds another configuration, %s: %s; name another directory with -out", dir, old.Name, what)
	}
	if there, here := meta.Arithmetic, arithmetic(); there != "" && there != here {
		return fmt.Errorf("%s: was begun on %s, and this is %s: their figures differ in the last digits; go on where it was begun, or name another directory with -out", dir, there, here)
	}
	return nil
}

// lacks says which runs of another configuration are not of this one, "" if all
// are: then this one goes on where the other ended.
func (c *Config) lacks(old *Config) string {
	var says []string
	keys, there := old.values()
	_, here := c.values()
	for _, key := range keys {
		if here[key] == nil && says != nil {
			continue // it went with the learner that had it
		}
		if slices.ContainsFunc(there[key], func(v string) bool { return !slices.Contains(here[key], v) }) {
			says = append(says, fmt.Sprintf("%s: %s there, %s here", key, some(there[key]), some(here[key])))
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

// values returns the settings of the cells, and the seeds, with the values that
// each has.
func (c *Config) values() (keys []string, values map[string][]string) {
	values = map[string][]string{}
	for _, g := range c.grids {
		for k, key := range g.keys {
			if values[key.Name] == nil {
				keys = append(keys, key.Name)
			}
			for _, v := range g.lists[k] {
				if text := show(v); !slices.Contains(values[key.Name], text) {
					values[key.Name] = append(values[key.Name], text)
				}
			}
		}
	}
	for _, seed := range c.Seeds {
		values["seeds"] = append(values["seeds"], fmt.Sprint(seed))
	}
	return append(keys, "seeds"), values
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

// Dirs returns dir if it is of a sweep, or else the directories of sweeps in it,
// of which there must be one.
func Dirs(dir string) ([]string, error) {
	return files.Dirs(dir, "config.toml of a sweep", configFile)
}
