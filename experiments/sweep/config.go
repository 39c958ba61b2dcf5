package sweep

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
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
	grids []grid
}

// grid is one product of lists.
type grid struct {
	set   *keyset
	lists [][]any // the values of each key of the set
	given []bool  // whether the file has the key
}

// maxRuns keeps a slip in a grid from filling the memory.
const maxRuns = 1_000_000

// configFile is the name under which a sweep keeps its configuration.
const configFile = "config.toml"

// The keys of a configuration that are not settings of cells.
var reserved = []Key{
	{Name: "name", Default: ""}, {Name: "question", Default: ""}, {Name: "seeds", Default: int64(0)},
	{Name: "metric", Default: ""}, {Name: "show", Default: ""}, {Name: "reference", Default: ""}, {Name: "group", Default: ""},
}

// LoadFile reads a configuration from a file; set are overrides, key=value.
func LoadFile(x Experiment, file string, set []string) (*Config, error) {
	data, err := env.ReadFile(file, maxConfig)
	if err != nil {
		return nil, err
	}
	return Load(x, file, data, set)
}

// Load reads a configuration. Errors say where: file, line, column and key, or
// the flag, what was found and what is allowed.
func Load(x Experiment, file string, data []byte, set []string) (*Config, error) {
	l := &loader{x: x, file: file, data: data, sets: map[string]*keyset{}, flags: map[string]string{}, inputs: map[string]*Input{}}
	for _, value := range x.Selector().Allowed {
		s := &keyset{keys: append([]Key{x.Selector()}, x.Keys(value)...), index: map[string]int{}}
		for i, key := range s.keys {
			s.index[key.Name] = i
		}
		l.sets[value] = s
	}
	var err error
	if l.base, l.cells, err = l.decode(file, data); err != nil {
		return nil, err
	}
	for _, arg := range set {
		given, err := l.parseSet(arg)
		if err != nil {
			return nil, err
		}
		for key, v := range given {
			l.base[key], l.flags[key] = v, "-set "+arg
			for _, own := range l.cells {
				delete(own, key)
			}
		}
	}
	if l.copies, err = copied(file); err != nil {
		return nil, err
	}
	return l.load()
}

type loader struct {
	x      Experiment
	file   string
	data   []byte
	base   table
	cells  []table
	flags  map[string]string // -set flags by their key
	sets   map[string]*keyset
	copies map[string]string // files that the sweep kept, by the names of the configuration
	inputs map[string]*Input
}

// settings returns the keys that cells may have.
func (l *loader) settings() []string {
	var out []string
	for _, v := range l.x.Selector().Allowed {
		for _, k := range l.sets[v].keys {
			if !slices.Contains(out, k.Name) {
				out = append(out, k.Name)
			}
		}
	}
	return out
}

// having returns the selected values whose cells have a setting.
func (l *loader) having(name string) []string {
	return slices.DeleteFunc(slices.Clone(l.x.Selector().Allowed), func(v string) bool {
		_, ok := l.sets[v].index[name]
		return !ok
	})
}

func (l *loader) load() (*Config, error) {
	c := &Config{x: l.x, Inputs: l.inputs}
	if err := l.head(c); err != nil {
		return nil, err
	}
	if len(l.cells) == 0 {
		l.cells = []table{{}}
	}
	unused := maps.Clone(l.base)
	for n := range l.cells {
		if err := l.product(c, n, unused); err != nil {
			return nil, err
		}
	}
	for _, k := range reserved {
		delete(unused, k.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(unused)) {
		return nil, l.foreign(-1, key)
	}
	return c, l.identify(c)
}

// foreign is the error for a setting that no cell has.
func (l *loader) foreign(n int, key string) error {
	return fmt.Errorf("%s: %s is not a setting of any cell here; it belongs to %s %s", l.place(n, key), key, l.x.Selector().Name, strings.Join(l.having(key), ", "))
}

// head reads the keys that are not settings.
func (l *loader) head(c *Config) error {
	figures := figureNames(l.x.Figures())
	*c = Config{x: c.x, Inputs: c.Inputs, Name: strings.TrimSuffix(filepath.Base(l.file), ".toml"), Metric: figures[0], Seeds: []uint64{1}}
	for key, to := range map[string]*string{"name": &c.Name, "question": &c.Question, "metric": &c.Metric, "group": &c.Group} {
		if v, ok := l.base[key]; ok {
			text, ok := v.(string)
			if !ok {
				return fmt.Errorf("%s: %s is %s; allowed is a string", l.place(-1, key), key, show(v))
			}
			*to = text
		}
	}
	if !isName(c.Name) {
		if _, ok := l.base["name"]; !ok {
			return fmt.Errorf("%s: the sweep takes its name from the file, and that would be %q; give it one with name = …", l.file, c.Name)
		}
		return fmt.Errorf("%s: name is %q; allowed is the name of a directory, without separators and control characters", l.place(-1, "name"), c.Name)
	}
	if c.Group != "" && len(l.having(c.Group)) == 0 {
		return fmt.Errorf("%s: group is %q; allowed are %s", l.place(-1, "group"), c.Group, strings.Join(l.settings(), ", "))
	}
	shown, _ := several(l.base["show"])
	for _, v := range shown {
		name, _ := v.(string)
		if !slices.Contains(figures, name) {
			return fmt.Errorf("%s: show is %s; allowed are %s", l.place(-1, "show"), show(v), strings.Join(figures, ", "))
		}
		if slices.Contains(c.Show, name) {
			return fmt.Errorf("%s: show has %q twice", l.place(-1, "show"), name)
		}
		c.Show = append(c.Show, name)
	}
	if !slices.Contains(figures, c.Metric) {
		return fmt.Errorf("%s: metric is %q; allowed are %s", l.place(-1, "metric"), c.Metric, strings.Join(figures, ", "))
	}
	if c.Show == nil {
		c.Show = slices.Clone(figures[:min(4, len(figures))])
		if !slices.Contains(c.Show, c.Metric) {
			c.Show = append(c.Show, c.Metric)
		}
	}
	return l.seeds(c)
}

// seeds reads a number of seeds, or a list of them.
func (l *loader) seeds(c *Config) error {
	given, ok := l.base["seeds"]
	if !ok {
		return nil
	}
	c.Seeds = nil
	values, many := several(given)
	for _, v := range values {
		x, err := convert(Key{Name: "seeds", Default: int64(0)}, v)
		n, _ := x.(int64)
		switch {
		case err != nil || n < 0 || !many && n < 1:
			return fmt.Errorf("%s: seeds is %s; allowed is a number of seeds, 1 or more, or a list of seeds, each 0 or more", l.place(-1, "seeds"), show(v))
		case !many && n > maxRuns:
			return fmt.Errorf("%s: seeds is %d; allowed are at most %d", l.place(-1, "seeds"), n, maxRuns)
		case !many:
			for s := range uint64(n) {
				c.Seeds = append(c.Seeds, s+1)
			}
		case slices.Contains(c.Seeds, uint64(n)):
			return fmt.Errorf("%s: seed %d is there twice", l.place(-1, "seeds"), n)
		default:
			c.Seeds = append(c.Seeds, uint64(n))
		}
	}
	if c.Seeds == nil {
		return fmt.Errorf("%s: seeds is an empty list; at least one value is needed", l.place(-1, "seeds"))
	}
	return nil
}

// several returns the values of a key, and whether the file gives a list.
func several(v any) (values []any, many bool) {
	if values, many = v.([]any); many || v == nil {
		return values, many
	}
	return []any{v}, false
}

// isName reports whether a directory can have that name.
func isName(s string) bool {
	odd := func(r rune) bool { return r == utf8.RuneError || r == '/' || r == '\\' || unicode.IsControl(r) }
	return s != "" && s != "." && s != ".." && s == filepath.Base(s) && !strings.ContainsFunc(s, odd)
}

// product appends the cells of [[cells]] n: for each selected value, the
// product of the lists of all settings that such a cell has.
func (l *loader) product(c *Config, n int, unused table) error {
	sel := l.x.Selector()
	own := l.cells[n]
	given := maps.Clone(l.base)
	maps.Copy(given, own)
	selected, err := l.values(n, sel, given)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for _, v := range selected {
		g := grid{set: l.sets[v.(string)], lists: [][]any{{v}}, given: []bool{true}}
		size := 1
		for _, key := range g.set.keys[1:] {
			values, err := l.values(n, key, given)
			if err != nil {
				return err
			}
			_, ok := given[key.Name]
			g.lists, g.given = append(g.lists, values), append(g.given, ok)
			if size *= len(values); (len(c.Cells)+size)*len(c.Seeds) > maxRuns {
				return fmt.Errorf("%s: cells and seeds are more than %d runs", l.file, maxRuns)
			}
		}
		for _, key := range g.set.keys {
			used[key.Name] = true
		}
		c.grids = append(c.grids, g)
		for i := range size {
			if err := l.cell(c, n, g, i); err != nil {
				return err
			}
		}
	}
	for key := range used {
		delete(unused, key)
	}
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if !used[key] {
			return l.foreign(n, key)
		}
	}
	return nil
}

// values returns what is given for a key, or its default.
func (l *loader) values(n int, key Key, given table) ([]any, error) {
	raw, ok := given[key.Name]
	if !ok {
		return []any{key.Default}, nil
	}
	wrong := func(format string, args ...any) ([]any, error) {
		return nil, fmt.Errorf("%s: %w", l.place(n, key.Name), fmt.Errorf(format, args...))
	}
	var out []any
	seen := map[any]bool{}
	items, _ := several(raw)
	for _, item := range items {
		v, err := convert(key, item)
		if err != nil {
			return wrong("%w", err)
		}
		if seen[v] {
			return wrong("%s has %s twice; allowed is each value once", key.Name, show(v))
		}
		seen[v] = true
		if err := l.read(key, v); err != nil {
			return wrong("%s: %w", key.Name, err)
		}
		out = append(out, v)
	}
	if out == nil {
		return wrong("%s is an empty list; at least one value is needed", key.Name)
	}
	return out, nil
}

// cell appends cell i of a grid, the first key changing slowest.
func (l *loader) cell(c *Config, n int, g grid, i int) error {
	cell := Cell{Index: len(c.Cells), set: g.set, values: make([]any, len(g.lists)), inputs: l.inputs}
	for k := len(g.lists) - 1; k >= 0; k-- {
		cell.values[k] = g.lists[k][i%len(g.lists[k])]
		i /= len(g.lists[k])
	}
	for k, key := range g.set.keys {
		if key.Follows == "" || g.given[k] {
			continue
		}
		if cell.quiet == nil {
			cell.quiet = map[string]bool{}
		}
		cell.quiet[key.Name] = true
		if v, ok := key.Then[cell.Text(key.Follows)]; ok {
			cell.values[k] = v
		}
	}
	if err := l.x.Check(&cell); err != nil {
		place := l.file
		if e, ok := err.(*KeyError); ok {
			place = l.place(n, e.Key)
		}
		return fmt.Errorf("%s: %w", place, err)
	}
	h := sha256.New()
	for k, key := range g.set.keys {
		fmt.Fprintf(h, "%s %#v\n", key.Name, cell.values[k])
		if in := cell.Input(key.Name); in != nil {
			h.Write(in.Sum[:])
		}
	}
	cell.Hash = fmt.Sprintf("%x", h.Sum(nil)[:8])
	c.Cells = append(c.Cells, cell)
	return nil
}

// identify gives every cell its id, <key>/<value> for each key that differs
// between cells, refuses cells that are the same, and finds the reference.
func (l *loader) identify(c *Config) error {
	sel := l.x.Selector().Name
	c.Axes = axes(c.Cells, sel)
	last := map[string]int{}
	for _, k := range c.Axes {
		_, name := split(k)
		last[name]++
	}
	seen := make(map[string]int, len(c.Cells))
	clean := func(r rune) rune {
		if strings.ContainsRune("/ <>|", r) || unicode.IsControl(r) || r == utf8.RuneError {
			return '_'
		}
		return r
	}
	for i := range c.Cells {
		cell := &c.Cells[i]
		var parts []string
		for _, k := range c.Axes {
			if !cell.Has(k) || cell.quiet[k] {
				continue
			}
			_, name := split(k)
			if last[name] > 1 {
				name = strings.ReplaceAll(k, ".", "-")
			}
			text := strings.Map(clean, FormatValue(cell.Value(k)))
			if k != sel {
				text = name + "/" + text
			}
			parts = append(parts, text)
		}
		if len(parts) == 0 {
			parts = []string{cell.Text(sel)}
		}
		cell.ID = strings.Join(parts, "/")
		if j, ok := seen[cell.ID]; ok {
			if c.Cells[j].Hash == cell.Hash {
				return fmt.Errorf("%s: cell %s is there twice", l.file, cell.ID)
			}
			return fmt.Errorf("%s: two cells would have the id %s, in which / and blanks are _; give their values names that differ otherwise", l.file, cell.ID)
		}
		seen[cell.ID] = i
	}
	given, ok := l.base["reference"]
	if !ok {
		return nil
	}
	id, _ := given.(string)
	i, ok := seen[id]
	if _, flag := l.flags["reference"]; !ok && (len(l.flags) == 0 || flag) {
		ids := make([]string, 0, 10)
		for i := range min(len(c.Cells), 10) {
			ids = append(ids, c.Cells[i].ID)
		}
		if len(c.Cells) > 10 {
			ids = append(ids, fmt.Sprintf("… (%d cells)", len(c.Cells)))
		}
		return fmt.Errorf("%s: reference is %s; allowed are %s", l.place(-1, "reference"), show(given), strings.Join(ids, ", "))
	}
	c.Reference = i // 0, the first, where an override took the reference away
	return nil
}

// axes returns the keys that tell cells apart: of two with the same selected
// value one has another value. A default that only follows the selection does
// not.
func axes(cells []Cell, sel string) []string {
	type at struct{ key, selected string }
	first := map[at]any{}
	var keys []string
	differs := map[string]bool{}
	for i := range cells {
		cell := &cells[i]
		for k, key := range cell.set.keys {
			of := at{key.Name, cell.Text(sel)}
			if key.Name == sel {
				of.selected = ""
			}
			if key.Follows != "" {
				of.selected += " " + cell.Text(key.Follows)
			}
			if !slices.Contains(keys, key.Name) {
				keys = append(keys, key.Name)
			}
			if v, ok := first[of]; !ok {
				first[of] = cell.values[k]
			} else if v != cell.values[k] {
				differs[key.Name] = true
			}
		}
	}
	return slices.DeleteFunc(keys, func(k string) bool { return !differs[k] })
}

func keyNames(keys []Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
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
		out := map[string]any{}
		for k, key := range g.set.keys {
			if key.Follows != "" && !g.given[k] {
				continue
			}
			to, name := out, key.Name
			if t, rest := split(key.Name); t != "" {
				if out[t] == nil {
					out[t] = map[string]any{}
				}
				to, name = out[t].(map[string]any), rest
			}
			if to[name] = any(g.lists[k]); len(g.lists[k]) == 1 {
				to[name] = g.lists[k][0]
			}
		}
		grids = append(grids, out)
	}
	file[cellsTable] = grids
	return toml.Marshal(file)
}
