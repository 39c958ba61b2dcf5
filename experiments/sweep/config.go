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

	"github.com/pelletier/go-toml/v2"

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

// maxRuns keeps a slip in a grid from filling the memory.
const maxRuns = 1_000_000

// configFile is the name under which a sweep keeps its configuration.
const configFile = "config.toml"

// reserved are the keys of a configuration that are not settings of cells.
var reserved = []string{"name", "question", "seeds", "metric", "show", "reference", "group"}

// LoadFile reads a configuration from a file; set are overrides, key=value.
func LoadFile(x Experiment, file string, set []string) (*Config, error) {
	var copies map[string]string
	if dir, name := filepath.Split(file); name == configFile { // beside which the files are that it names
		meta, err := readMeta(filepath.Join(dir, MetaFile))
		if err == nil {
			copies = meta.copies(dir)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return loadFile(x, file, set, copies)
}

// loadFile is LoadFile with the copies of files that are named.
func loadFile(x Experiment, file string, set []string, copies map[string]string) (*Config, error) {
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

func load(x Experiment, file string, data []byte, set []string, copies map[string]string) (_ *Config, err error) {
	l := &loader{file: file, copies: copies, sel: x.Selector(), keys: map[string][]Key{}, c: &Config{Inputs: map[string]*Input{}, x: x}}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p
		default:
			panic(p)
		}
	}()
	for _, value := range l.sel.Allowed {
		l.keys[value] = append([]Key{l.sel}, x.Keys(value)...)
		for _, key := range l.keys[value] {
			if !slices.Contains(l.settings, key.Name) {
				l.settings = append(l.settings, key.Name)
			}
		}
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
	ever := slices.Clone(reserved)
	for _, own := range cells {
		all := maps.Clone(base)
		maps.Copy(all, own)
		used := l.product(all)
		l.allUsed(own, used)
		ever = append(ever, used...)
	}
	l.allUsed(base, ever)
	l.identify()
	l.reference(base, len(set) > 0)
	return l.c, nil
}

// loader makes a Config. Its methods give up by a panic with a failure, which is
// the error of Load.
type loader struct {
	file     string
	sel      Key
	keys     map[string][]Key  // of cells, by their selected value
	settings []string          // that cells may have
	copies   map[string]string // files that the sweep kept, by the names of the configuration
	c        *Config
}

type failure struct{ error }

func (f failure) Error() string { return result.Shorten(f.error.Error()) }

func (f failure) Unwrap() error { return f.error }

// failf gives up; it is not about one place.
func (l *loader) failf(format string, args ...any) {
	panic(failure{fmt.Errorf("%s: %w", l.file, fmt.Errorf(format, args...))})
}

// allUsed fails for a setting that no cell has.
func (l *loader) allUsed(t table, used []string) {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if slices.Contains(used, name) {
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
	text := func(name, otherwise string, allowed []string) string {
		if g, ok := base[name]; ok {
			return g.convert(Key{Name: name, Default: "", Allowed: allowed}, g.value).(string)
		}
		return otherwise
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
	for _, v := range l.values(Key{Name: "show", Default: "", Allowed: figures}, base) {
		c.Show = append(c.Show, v.(string))
	}
	if _, ok := base["show"]; !ok {
		c.Show = slices.Clone(figures[:min(4, len(figures))])
		if !slices.Contains(c.Show, c.Metric) {
			c.Show = append(c.Show, c.Metric)
		}
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
// product of the lists of all settings that such a cell has. It returns these
// settings.
func (l *loader) product(all table) (used []string) {
	for _, v := range l.values(l.sel, all) {
		g := &grid{keys: l.keys[v.(string)], lists: [][]any{{v}}, quiet: []bool{false}, inputs: l.c.Inputs}
		used = append(used, l.sel.Name)
		size := 1
		for _, key := range g.keys[1:] {
			values := l.values(key, all)
			_, given := all[key.Name]
			g.lists, g.quiet = append(g.lists, values), append(g.quiet, key.Follows != "" && !given)
			used = append(used, key.Name)
			if size *= len(values); (len(l.c.Cells)+size)*len(l.c.Seeds) > maxRuns {
				l.failf("cells and seeds are more than %d runs", maxRuns)
			}
		}
		l.c.grids = append(l.c.grids, g)
		for i := range size {
			l.cell(all, g, i)
		}
	}
	return used
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
		seen[v] = true
		if err := l.read(key, v, g); err != nil {
			g.failf("%s: %w", key.Name, err)
		}
		out = append(out, v)
	}
	return out
}

// reference finds the cell that others are compared with. It is the first where
// a flag took the given one away.
func (l *loader) reference(base table, flags bool) {
	g, ok := base["reference"]
	if !ok {
		return
	}
	i := slices.IndexFunc(l.c.Cells, func(c Cell) bool { return c.ID == g.value })
	if i < 0 && (!flags || g.flag()) {
		var ids []string
		for _, cell := range l.c.Cells {
			ids = append(ids, cell.ID)
		}
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

// resolved writes the configuration with every setting spelt out but those that
// follow another one, as a file that loads to the same sweep.
func (c *Config) resolved() ([]byte, error) {
	file := map[string]any{
		"name": c.Name, "question": c.Question, "metric": c.Metric, "show": c.Show,
		"reference": c.Cells[c.Reference].ID, "seeds": c.Seeds,
	}
	if c.Seeds[0] == 1 && c.Seeds[len(c.Seeds)-1] == uint64(len(c.Seeds)) && slices.IsSorted(c.Seeds) {
		file["seeds"] = len(c.Seeds)
	}
	if c.Group != "" {
		file["group"] = c.Group
	}
	var grids []map[string]any
	for _, g := range c.grids {
		top := map[string]any{}
		for k, key := range g.keys {
			if g.quiet[k] {
				continue
			}
			to := top
			table, name := split(key.Name)
			if table != "" {
				if top[table] == nil {
					top[table] = map[string]any{}
				}
				to = top[table].(map[string]any)
			}
			if to[name] = g.lists[k]; len(g.lists[k]) == 1 {
				to[name] = g.lists[k][0]
			}
		}
		grids = append(grids, top)
	}
	file[cellsTable] = grids
	return toml.Marshal(file)
}
