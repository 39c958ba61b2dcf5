package sweep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ephemera/experiments/files"
)

// recordsDir holds what has been finished so far, and locks.
const recordsDir = "records"

// enter makes the directory this sweep's own: it locks it against other
// processes and refuses one that holds something else, leaving that as it is.
func enter(ctx context.Context, c *Config, o Options) (unlock func(), err error) {
	if err := inspect(c, o.Dir); err != nil {
		return nil, err
	}
	records := filepath.Join(o.Dir, recordsDir)
	if err := os.MkdirAll(records, 0o777); err != nil {
		return nil, err
	}
	var held []*os.File
	unlock = func() {
		for _, f := range held {
			f.Close()
		}
	}
	// One process may have all of the work, or several one shard each.
	take := func(name string, exclusive bool, on string) error {
		f, err := files.Lock(filepath.Join(records, name), exclusive)
		if errors.Is(err, files.ErrLocked) {
			return fmt.Errorf("%s: another process is at work here on %s; wait for it or stop it", o.Dir, on)
		}
		if err == nil {
			held = append(held, f)
		}
		return err
	}
	if o.Shard == Whole {
		err = take("lock", true, "all of the sweep or a shard of it")
	} else if err = take("lock", false, "all of the sweep"); err == nil {
		err = take(o.Shard.file()+".lock", true, "shard "+o.Shard.String())
	}
	if err == nil {
		err = claim(ctx, c, o)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// claim writes config.toml, meta.json and inputs/, or compares what is there.
// Shards that begin together take turns, so that all are of one configuration.
func claim(ctx context.Context, c *Config, o Options) error {
	held, err := await(ctx, filepath.Join(o.Dir, recordsDir, "claim.lock"))
	if err != nil {
		return err
	}
	defer held.Close()
	if err := inspect(c, o.Dir); err != nil {
		return err
	}
	temp := filepath.Join(o.Dir, recordsDir, "claim")
	os.RemoveAll(temp) // what a killed process left
	defer os.RemoveAll(temp)
	if err := c.writeInputs(temp, o.Dir); err != nil {
		return err
	}
	m := c.Meta()
	m.Program, m.Command = o.Revision, o.Command
	if err := replace(temp, filepath.Join(o.Dir, MetaFile), func(w *bufio.Writer) error { return writeJSON(w, m) }); err != nil {
		return err
	}
	return replace(temp, filepath.Join(o.Dir, configFile), func(w *bufio.Writer) error {
		text, err := c.resolved()
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
}

// inspect refuses a directory that holds something else than this sweep or a
// beginning of it.
func inspect(c *Config, dir string) error {
	path := filepath.Join(dir, configFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		for _, name := range []string{RunsFile, CurvesFile, LearnedFile, "summary.json", "summary.csv", "summary.md"} {
			_, err := os.Stat(filepath.Join(dir, name))
			logs, listErr := recordFiles(dir)
			if err == nil && len(logs) == 0 && listErr == nil {
				return fmt.Errorf("%s: holds %s but neither config.toml nor records, so it is not of a sweep; name another directory with -out", dir, name)
			}
		}
		return nil // records of another sweep are refused when they are read
	}
	if _, err := ReadMeta(dir); err != nil {
		return fmt.Errorf("%s: holds a config.toml that no sweep of this version wrote (%w); name another directory with -out", dir, err)
	}
	old, err := LoadFile(c.x, path, nil)
	if err != nil {
		return fmt.Errorf("%w; name another directory with -out", err)
	}
	if what := c.lacks(old); what != "" {
		return fmt.Errorf("%s: holds another configuration, %s: %s; name another directory with -out", dir, old.Name, what)
	}
	return nil
}

// lacks says which runs of another configuration are not of this one, "" if all
// are: then this one goes on where the other ended.
func (c *Config) lacks(old *Config) string {
	var says []string
	differ := func(what string, there, here []string) {
		if slices.ContainsFunc(there, func(v string) bool { return !slices.Contains(here, v) }) {
			says = append(says, fmt.Sprintf("%s: %s there, %s here", what, some(there), some(here)))
		}
	}
	keys, there := old.values()
	_, here := c.values()
	for _, key := range keys {
		if here[key] != nil || says == nil { // else it went with the learner that had it
			differ(key, there[key], here[key])
		}
	}
	differ("seeds", seedNames(old.Seeds), seedNames(c.Seeds))
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
	for i := range old.Cells {
		if cell := &old.Cells[i]; !have[cell.Hash] {
			return fmt.Sprintf("cell %s is there and not here", cell.ID)
		}
	}
	return ""
}

// values returns the settings of the cells, and the values that each has.
func (c *Config) values() (keys []string, values map[string][]string) {
	values = map[string][]string{}
	for i := range c.Cells {
		for k, key := range c.Cells[i].set.keys {
			if values[key.Name] == nil {
				keys = append(keys, key.Name)
			}
			if v := show(c.Cells[i].values[k]); !slices.Contains(values[key.Name], v) {
				values[key.Name] = append(values[key.Name], v)
			}
		}
	}
	return keys, values
}

func seedNames(seeds []uint64) []string {
	names := make([]string, len(seeds))
	for i, s := range seeds {
		names[i] = fmt.Sprint(s)
	}
	return names
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
