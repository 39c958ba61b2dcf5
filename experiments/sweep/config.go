package sweep

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ephemera/env"
	"ephemera/experiments/result"
)

// Config is a sweep: which cells, over which seeds, and how they are compared.
type Config struct {
	Name      string // file name without .toml
	Question  string
	Seeds     []uint64 // every cell runs once with each
	Metric    string   // the figure that cells are compared by
	Reference int      // the cell that others are compared with
	Group     string   // key by whose value cells are pooled; "" for none
	Show      []string // figures of the short tables
	Axes      []string // keys that differ between cells
	Cells     []Cell
	Inputs    map[string]*Input // files that settings name, by that name

	x     Experiment
	grids []*grid
}

// Input is a file that a setting names, as it was when the configuration was
// loaded.
type Input struct {
	Data []byte
	Sum  [sha256.Size]byte
}

// maxRuns keeps a slip in a grid from filling the memory.
const maxRuns = 1_000_000

// reserved are the keys of a configuration that are not settings of cells.
var reserved = []string{"name", "question", "seeds", "metric", "show", "reference", "group"}

// LoadFile reads a configuration from a file; set are overrides, key=value. Of
// a config.toml that a sweep wrote the copies count that stand beside it.
func LoadFile(x Experiment, file string, set []string) (*Config, error) {
	var copies map[string]string
	if dir, name := filepath.Split(file); name == configFile {
		meta, err := read(filepath.Join(dir, MetaFile), ParseMeta)
		if err == nil {
			copies = meta.copies(dir)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	data, err := env.ReadFile(file, maxConfig)
	if err != nil {
		return nil, err
	}
	return load(x, file, data, set, copies)
}

// Load reads a configuration. Errors say where: file, line, column and key, or
// the flag, what was found and what is allowed.
func Load(x Experiment, file string, data []byte, set []string) (*Config, error) {
	return load(x, file, data, set, nil)
}

// loader makes a Config. Its methods give up by a panic with a failure, which is
// the error of Load.
type loader struct {
	file     string
	sel      Key
	keys     map[string][]Key  // of cells, by their selected value
	settings []string          // that cells may have
	copies   map[string]string // of files, by the names of the configuration
	c        *Config
}

type failure struct{ error }

func (f failure) Error() string { return result.Shorten(f.error.Error()) }

func (f failure) Unwrap() error { return f.error }

// failf gives up; it is not about one place.
func (l *loader) failf(format string, args ...any) { given{place: l.file}.failf(format, args...) }

func load(x Experiment, file string, data []byte, set []string, copies map[string]string) (c *Config, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			c, err = nil, p
		default:
			panic(p)
		}
	}()
	c = &Config{Inputs: map[string]*Input{}, x: x}
	l := &loader{file: file, sel: x.Selector(), keys: map[string][]Key{}, copies: copies, c: c}
	for _, value := range l.sel.Allowed {
		l.keys[value] = append([]Key{l.sel}, x.Keys(value)...)
		l.settings = names(l.settings, l.keys[value])
	}
	base, cells := l.decode(file, data)
	for _, arg := range set {
		one := l.parseSet(arg)
		maps.Copy(base, one)
		for _, own := range cells {
			maps.DeleteFunc(own, func(key string, _ given) bool { _, ok := one[key]; return ok })
		}
	}
	l.head(base)
	if cells == nil {
		cells = []table{{}}
	}
	for _, own := range cells {
		before := len(c.grids)
		all := maps.Clone(base)
		maps.Copy(all, own)
		l.product(all)
		l.used(own, c.grids[before:])
	}
	l.used(base, c.grids)
	l.identify()
	l.reference(base, len(set) > 0)
	return c, nil
}

// names appends the names of keys that are not there yet.
func names(to []string, keys []Key) []string {
	for _, key := range keys {
		if !slices.Contains(to, key.Name) {
			to = append(to, key.Name)
		}
	}
	return to
}

// used fails for a setting that no cell of these grids has.
func (l *loader) used(t table, grids []*grid) {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		has := func(g *grid) bool { return place(g.keys, name) >= 0 }
		if slices.Contains(reserved, name) || slices.ContainsFunc(grids, has) {
			continue
		}
		var having []string // selected values
		for _, v := range l.sel.Allowed {
			if place(l.keys[v], name) >= 0 {
				having = append(having, v)
			}
		}
		t[name].failf("%s is not a setting of any cell here; it belongs to %s %s", name, l.sel.Name, strings.Join(having, ", "))
	}
}

// head reads the keys that are not settings.
func (l *loader) head(base table) {
	c, figures := l.c, figureNames(l.c.x.Figures())
	text := func(name, usual string, allowed []string) string {
		if g, ok := base[name]; ok {
			return g.convert(Key{Name: name, Default: "", Allowed: allowed}, g.value).(string)
		}
		return usual
	}
	c.Name = text("name", strings.TrimSuffix(filepath.Base(l.file), ".toml"), nil)
	if name, ok := base["name"]; !isName(c.Name) && ok {
		name.failf("name is %q; allowed is the name of a directory, without separators and control characters", c.Name)
	} else if !isName(c.Name) {
		l.failf("the sweep takes its name from the file, and that would be %q; give it one with name = …", c.Name)
	}
	c.Question = text("question", "", nil)
	c.Metric = text("metric", figures[0], figures)
	c.Group = text("group", "", l.settings)
	if _, ok := base["show"]; ok {
		for _, v := range l.values(Key{Name: "show", Default: "", Allowed: figures}, base) {
			c.Show = append(c.Show, v.(string))
		}
	} else if c.Show = slices.Clone(figures[:min(4, len(figures))]); !slices.Contains(c.Show, c.Metric) {
		c.Show = append(c.Show, c.Metric)
	}
	g := base["seeds"]
	_, many := g.value.([]any)
	for _, v := range l.values(Key{Name: "seeds", Default: int64(1)}, base) {
		n := v.(int64)
		if n < 0 || !many && (n < 1 || n > maxRuns) {
			g.failf("seeds is %d; allowed is a number of seeds, 1 to %d, or a list of seeds, each 0 or more", n, maxRuns)
		}
		if many {
			c.Seeds = append(c.Seeds, uint64(n))
			continue
		}
		for s := range uint64(n) {
			c.Seeds = append(c.Seeds, s+1)
		}
	}
}

// isName reports whether a directory can have that name.
func isName(s string) bool {
	odd := func(r rune) bool { return r == utf8.RuneError || r == '/' || r == '\\' || unicode.IsControl(r) }
	return s != "" && s != "." && s != ".." && s == filepath.Base(s) && !strings.ContainsFunc(s, odd)
}

// product appends the cells of one [[cells]]: for each selected value, the
// product of the lists of all settings that such a cell has.
func (l *loader) product(all table) {
	for _, selected := range l.values(l.sel, all) {
		g := &grid{keys: l.keys[selected.(string)], lists: [][]any{{selected}}, quiet: []bool{false}, inputs: l.c.Inputs}
		size := 1
		for _, key := range g.keys[1:] {
			values := l.values(key, all)
			_, given := all[key.Name]
			g.lists, g.quiet = append(g.lists, values), append(g.quiet, key.Follows != "" && !given)
			if size *= len(values); (len(l.c.Cells)+size)*len(l.c.Seeds) > maxRuns {
				l.failf("cells and seeds are more than %d runs", maxRuns)
			}
		}
		l.c.grids = append(l.c.grids, g)
		for i := range size {
			l.cell(all, g, i)
		}
	}
}

// values returns what is given for a key, or its default.
func (l *loader) values(key Key, all table) (out []any) {
	g, ok := all[key.Name]
	if !ok {
		return []any{key.Default}
	}
	items, many := g.value.([]any)
	if !many {
		items = []any{g.value}
	}
	if len(items) == 0 {
		g.failf("%s is an empty list; at least one value is needed", key.Name)
	}
	seen := map[any]bool{}
	for _, item := range items {
		v := g.convert(key, item)
		if seen[v] {
			g.failf("%s has %s twice; allowed is each value once", key.Name, show(v))
		}
		seen[v], out = true, append(out, v)
		if name, ok := v.(string); ok && key.File != nil && key.File(name) {
			l.read(key, name, g)
		}
	}
	return out
}

// read reads a file that a setting names: where the config.toml of a sweep names
// it, the copy, or else what the name leads to from the working directory.
func (l *loader) read(key Key, name string, g given) {
	if l.c.Inputs[name] != nil {
		return
	}
	var data []byte
	err := fs.ErrNotExist
	if copied, ok := l.copies[name]; ok && !g.flag() {
		data, err = env.ReadFile(copied, maxInput)
	}
	if err != nil {
		data, err = env.ReadFile(name, maxInput)
	}
	if err != nil {
		g.failf("%s: %w", key.Name, err)
	}
	l.c.Inputs[name] = &Input{data, sha256.Sum256(data)}
}

// reference finds the cell that others are compared with. It is the first where
// a flag took the given one away.
func (l *loader) reference(base table, flags bool) {
	g, ok := base["reference"]
	if !ok {
		return
	}
	ids := make([]string, len(l.c.Cells))
	for i, cell := range l.c.Cells {
		ids[i] = cell.ID
	}
	id, _ := g.value.(string)
	i := slices.Index(ids, id)
	if i < 0 && (!flags || g.flag()) {
		g.failf("reference is %s; allowed are %s", show(g.value), some(ids))
	}
	l.c.Reference = max(0, i)
}

// Jobs returns the number of runs: cells times seeds.
func (c *Config) Jobs() int { return len(c.Cells) * len(c.Seeds) }

// at returns the cell and the seed of a job; those of one cell stand together.
func (c *Config) at(job int) (*Cell, uint64) {
	return &c.Cells[job/len(c.Seeds)], c.Seeds[job%len(c.Seeds)]
}

// Hash names what is run: cells, the files that these name, and seeds. What
// cells are compared by is not part of it.
func (c *Config) Hash() string {
	h := sha256.New()
	fmt.Fprintln(h, c.Seeds)
	for i := range c.Cells {
		fmt.Fprintln(h, c.Cells[i].Hash)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
