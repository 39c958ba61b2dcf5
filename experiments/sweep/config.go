package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Config is a sweep: which cells, over which seeds, and how they are compared.
type Config struct {
	Name      string   // file name without .toml
	Question  string   // the comment at the top of the file
	Seeds     []uint64 // every cell runs once with each
	Metric    string   // the figure that cells are compared by
	Reference int      // the cell that others are compared with
	Group     string   // key by whose value cells are pooled; "" for none
	Show      []string // figures of the short tables
	Axes      []string // keys that differ between cells, in the order of the file
	Cells     []Cell
	Inputs    map[string]*Input // files that settings name, by that name

	blocks []block
}

// block is one product of values: what a [[cells]] of the resolved file holds.
type block struct {
	set  *keyset
	axes [][]any // the values of each key of the set
	seq  []int   // keys that the file gives, in its order: the first changes slowest
}

// order returns the keys as the resolved file lists them: the given ones in
// the order of the file, which is that of the cells, then the others.
func (b *block) order() []int {
	out := []int{0}
	out = append(out, b.seq...)
	for k := range b.axes {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// reserved are the keys that are not settings of a cell.
var reserved = []Key{
	{Name: "name", Kind: String, Help: "name of the sweep; by default that of the file"},
	{Name: "seeds", Kind: Int, Help: "number of seeds, from 1, or a list of seeds"},
	{Name: "metric", Kind: String, Help: "figure that cells are compared by"},
	{Name: "reference", Kind: String, Help: "id of the cell that others are compared with"},
	{Name: "show", Kind: String, Help: "figures of the short tables"},
	{Name: "group", Kind: String, Help: "key by whose value cells are pooled"},
}

// maxCells keeps a slip in a grid from filling the memory.
const maxCells = 1_000_000

// maxRuns does the same for the table of runs.
const maxRuns = 10_000_000

// LoadFile reads a configuration from a file; set are overrides, key=value.
func LoadFile(s Schema, r Runner, file string, set []string) (*Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Load(s, r, file, data, set)
}

// Load reads a configuration. Errors say where: file, line, column and key, or
// the flag, what was found and what is allowed.
func Load(s Schema, r Runner, file string, data []byte, set []string) (*Config, error) {
	doc, err := parse(file, data)
	if err != nil {
		return nil, err
	}
	l := loader{schema: s, figures: r.Figures(), file: file, written: writtenFor(data) != "", sets: map[string]*keyset{}, inputs: map[string]*Input{}}
	for _, value := range s.Selector().Allowed {
		l.sets[value] = newKeyset(s, value)
	}
	for _, arg := range set {
		e, err := parseSet(arg)
		if err != nil {
			return nil, err
		}
		doc.base = override(doc.base, e)
		for i := range doc.cells {
			doc.cells[i] = slices.DeleteFunc(doc.cells[i], func(old entry) bool { return old.name == e.name })
		}
	}
	return l.load(doc, len(set) > 0)
}

func override(list []entry, e entry) []entry {
	for i := range list {
		if list[i].name == e.name {
			list[i] = e
			return list
		}
	}
	return append(list, e)
}

type loader struct {
	schema    Schema
	figures   []Figure
	file      string
	written   bool // by a sweep
	sets      map[string]*keyset
	inputs    map[string]*Input
	reference string // id as the file gives it
	refWhere  string
	refSet    bool     // given with -set
	seeds     string   // where the seeds are given
	where     []string // of the block of each cell
}

func (l *loader) load(doc *document, overridden bool) (*Config, error) {
	c := &Config{
		Name:     strings.TrimSuffix(filepath.Base(l.file), ".toml"),
		Question: doc.comment,
		Inputs:   l.inputs,
	}
	base, err := l.reserved(c, doc.base)
	if err != nil {
		return nil, err
	}
	lists, where := doc.cells, doc.where
	if len(lists) == 0 {
		lists, where = [][]entry{nil}, []string{l.file}
	}
	used := map[string]bool{}
	for i, own := range lists {
		if err := l.product(c, base, own, where[i], used); err != nil {
			return nil, err
		}
	}
	for _, e := range base {
		if !used[e.name] {
			return nil, fmt.Errorf("%s: %s is not a setting of any cell here; it belongs to %s %s", e.where, e.name, l.schema.Selector().Name, strings.Join(l.having(e.name), ", "))
		}
	}
	for _, t := range doc.tables { // those without keys, whose names nothing has looked at
		if !slices.ContainsFunc(l.allKeys(false), func(key string) bool { return strings.HasPrefix(key, t.name+".") }) {
			return nil, fmt.Errorf("%s: unknown table %q; allowed are %s", t.where, t.name, strings.Join(l.tables(), ", "))
		}
	}
	if c.Jobs() > maxRuns {
		return nil, fmt.Errorf("%s: %d cells with %d seeds are %d runs; allowed are at most %d", l.seeds, len(c.Cells), len(c.Seeds), c.Jobs(), maxRuns)
	}
	if err := l.identify(c, overridden); err != nil {
		return nil, err
	}
	return c, nil
}

// reserved takes the keys that are not settings out of the list.
func (l *loader) reserved(c *Config, list []entry) ([]entry, error) {
	var rest []entry
	for _, e := range list {
		switch e.name {
		case "seeds":
			l.seeds = e.where
			for _, v := range e.values {
				x, err := convert(Key{Name: "seeds", Kind: Int}, v)
				n, ok := x.(int64)
				if err != nil || !ok || n < 0 || !e.array && n < 1 {
					return nil, fmt.Errorf("%s: seeds is %s; allowed is a number of seeds, 1 or more, or a list of seeds, each 0 or more", e.where, tomlValue(v))
				}
				if slices.Contains(c.Seeds, uint64(n)) {
					return nil, fmt.Errorf("%s: seed %d is there twice", e.where, n)
				}
				c.Seeds = append(c.Seeds, uint64(n))
			}
			if !e.array {
				n := c.Seeds[0]
				if n > maxCells {
					return nil, fmt.Errorf("%s: seeds is %d; allowed are at most %d", e.where, n, maxCells)
				}
				c.Seeds = c.Seeds[:0]
				for s := range n {
					c.Seeds = append(c.Seeds, s+1)
				}
			}
		case "show":
			for _, v := range e.values {
				name, ok := v.(string)
				if !ok {
					return nil, fmt.Errorf("%s: show is %s; allowed are %s", e.where, tomlValue(v), strings.Join(figureNames(l.figures), ", "))
				}
				if err := l.figure(e, name); err != nil {
					return nil, err
				}
				if slices.Contains(c.Show, name) {
					return nil, fmt.Errorf("%s: show has %q twice", e.where, name)
				}
				c.Show = append(c.Show, name)
			}
		case "name", "metric", "reference", "group":
			v, ok := e.values[0].(string)
			if !ok || e.array {
				return nil, fmt.Errorf("%s: %s is %s; allowed is a string", e.where, e.name, tomlValue(e.values[0]))
			}
			switch e.name {
			case "name":
				if !isName(v) {
					return nil, fmt.Errorf("%s: name is %q; allowed is the name of a directory, without separators and control characters", e.where, v)
				}
				c.Name = v
			case "metric":
				c.Metric = v
				if err := l.figure(e, v); err != nil {
					return nil, err
				}
			case "reference":
				l.reference, l.refWhere, l.refSet = v, e.where, e.set
			case "group":
				c.Group = v
				if len(l.having(v)) == 0 {
					return nil, fmt.Errorf("%s: group is %q; allowed are %s", e.where, v, strings.Join(l.allKeys(false), ", "))
				}
			}
		default:
			rest = append(rest, e)
		}
	}
	if !isName(c.Name) {
		return nil, fmt.Errorf("%s: the sweep takes its name from the file, and that would be %q; give it one with name = …", l.file, c.Name)
	}
	if c.Seeds == nil {
		c.Seeds = []uint64{1}
	}
	if c.Metric == "" {
		c.Metric = l.figures[0].Name
	}
	if c.Show == nil {
		for _, f := range l.figures[:min(4, len(l.figures))] {
			c.Show = append(c.Show, f.Name)
		}
		if !slices.Contains(c.Show, c.Metric) {
			c.Show = append(c.Show, c.Metric)
		}
	}
	return rest, nil
}

// isName reports whether a directory can have that name.
func isName(s string) bool {
	return s != "" && s != "." && s != ".." && s == filepath.Base(s) && !strings.ContainsAny(s, `/\`) && s == printable(s)
}

// printable puts a question mark for what TOML's comments do not allow.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) && r != '\t' {
			return '?'
		}
		return r
	}, s)
}

// figure refuses a name that the runner does not have.
func (l *loader) figure(e entry, name string) error {
	if names := figureNames(l.figures); !slices.Contains(names, name) {
		return fmt.Errorf("%s: %s is %q; allowed are %s", e.where, e.name, name, strings.Join(names, ", "))
	}
	return nil
}

// product appends the cells of one list entry: for each selected value, the
// product of all settings that such a cell has.
func (l *loader) product(c *Config, base, own []entry, where string, used map[string]bool) error {
	sel := l.schema.Selector()
	all := slices.Clone(base)
	for _, e := range own {
		all = override(all, e)
	}
	selected := []any{sel.Default}
	for _, e := range all {
		if slices.Contains(keyNames(reserved), e.name) {
			return fmt.Errorf("%s: %s is not a setting of cells; it stands at the top of the file, above the first [[cells]]", e.where, e.name)
		}
		if len(l.having(e.name)) == 0 {
			return fmt.Errorf("%s: unknown key %q%s; allowed are %s", e.where, e.name, l.closest(e.name), strings.Join(l.allKeys(true), ", "))
		}
		if e.name != sel.Name {
			continue
		}
		used[e.name] = true
		selected = nil
		for _, v := range e.values {
			v, err := convert(sel, v)
			if err != nil {
				return fmt.Errorf("%s: %w", e.where, err)
			}
			selected = append(selected, v)
		}
	}
	for _, e := range own {
		if len(selected) > 1 && e.name != sel.Name && !slices.ContainsFunc(selected, func(v any) bool { _, ok := l.sets[v.(string)].index[e.name]; return ok }) {
			return fmt.Errorf("%s: %s is not a setting of any cell here; it belongs to %s %s", e.where, e.name, sel.Name, strings.Join(l.having(e.name), ", "))
		}
	}
	for _, v := range selected {
		set := l.sets[v.(string)]
		b := block{set: set, axes: make([][]any, len(set.keys))}
		at := make([]string, len(set.keys)) // where each value was given
		order := []int{}                    // axes in the order of the file
		b.axes[0] = []any{v}
		for _, e := range all {
			k, ok := set.index[e.name]
			if !ok {
				if slices.ContainsFunc(own, func(o entry) bool { return o.name == e.name }) && len(selected) == 1 {
					return fmt.Errorf("%s: %s %s has no setting %s; it has %s", e.where, sel.Name, v, e.name, strings.Join(keyNames(set.keys[1:]), ", "))
				}
				continue
			}
			used[e.name] = true
			at[k] = e.where
			if k == 0 {
				continue
			}
			seen := make(map[any]bool, len(e.values))
			for _, x := range e.values {
				x, err := convert(set.keys[k], x)
				if err != nil {
					return fmt.Errorf("%s: %w", e.where, err)
				}
				if seen[x] {
					return fmt.Errorf("%s: %s has %s twice; allowed is each value once", e.where, e.name, tomlValue(x))
				}
				seen[x] = true
				if err := l.read(e, set.keys[k], x); err != nil {
					return fmt.Errorf("%s: %s: %w", e.where, e.name, err)
				}
				b.axes[k] = append(b.axes[k], x)
			}
			order = append(order, k)
		}
		for _, e := range own {
			used[e.name] = true
		}
		size := 1
		for k, values := range b.axes {
			if values == nil {
				b.axes[k] = []any{set.keys[k].Default}
			}
			size *= len(b.axes[k])
			if size > maxCells {
				return fmt.Errorf("%s: the grid has more than %d cells", where, maxCells)
			}
		}
		if err := l.cells(c, b, order, size, at, where); err != nil {
			return err
		}
		b.seq = order
		c.blocks = append(c.blocks, b)
	}
	return nil
}

// cells appends the cells of one block, the first axis of the file changing
// slowest.
func (l *loader) cells(c *Config, b block, order []int, size int, at []string, where string) error {
	for n := range size {
		cell := Cell{Index: len(c.Cells), set: b.set, values: make([]any, len(b.axes)), inputs: l.inputs}
		for k := range b.axes {
			cell.values[k] = b.axes[k][0]
		}
		rest := n
		for i := len(order) - 1; i >= 0; i-- {
			k := order[i]
			cell.values[k] = b.axes[k][rest%len(b.axes[k])]
			rest /= len(b.axes[k])
		}
		if err := l.schema.Check(&cell); err != nil {
			place := where
			if ke, ok := err.(*KeyError); ok {
				if k, ok := b.set.index[ke.Key]; ok && at[k] != "" {
					place = at[k]
				}
			}
			return fmt.Errorf("%s: %w", place, err)
		}
		c.Cells = append(c.Cells, cell)
		l.where = append(l.where, where)
	}
	if len(c.Cells) > maxCells {
		return fmt.Errorf("%s: more than %d cells", where, maxCells)
	}
	return nil
}

// identify gives every cell its id, <key>/<value> for each key that differs
// between cells, and refuses cells that are the same.
func (l *loader) identify(c *Config, overridden bool) error {
	sel := l.schema.Selector().Name
	// A key tells cells apart if two with the same selected value have other
	// values of it; a default that only follows the selection does not.
	var keys []string
	first := map[string]map[string]any{} // by key, by selected value
	differs := map[string]bool{}
	for i := range c.Cells {
		cell := &c.Cells[i]
		selected := cell.Text(sel)
		for k, key := range cell.set.keys {
			m := first[key.Name]
			if m == nil {
				m = map[string]any{}
				first[key.Name] = m
				keys = append(keys, key.Name)
			}
			if v, ok := m[selected]; !ok {
				m[selected] = cell.values[k]
			} else if v != cell.values[k] {
				differs[key.Name] = true
			}
		}
	}
	for _, k := range keys {
		if differs[k] || k == sel && len(first[k]) > 1 {
			c.Axes = append(c.Axes, k)
		}
	}
	c.Axes = slices.Clip(c.Axes)
	last := map[string]int{}
	for _, k := range c.Axes {
		last[lastPart(k)]++
	}
	seen := make(map[string]int, len(c.Cells))
	for i := range c.Cells {
		cell := &c.Cells[i]
		var parts []string
		for _, k := range c.Axes {
			if !cell.Has(k) {
				continue
			}
			text := strings.NewReplacer("/", "_", " ", "_", "\n", "_").Replace(FormatValue(cell.Value(k)))
			switch {
			case k == sel:
				parts = append(parts, text)
			case last[lastPart(k)] > 1:
				parts = append(parts, strings.ReplaceAll(k, ".", "-")+"/"+text)
			default:
				parts = append(parts, lastPart(k)+"/"+text)
			}
		}
		if len(parts) == 0 {
			parts = []string{cell.Text(sel)}
		}
		cell.ID = strings.Join(parts, "/")
		if j, ok := seen[cell.ID]; ok {
			if !slices.Equal(c.Cells[j].values, cell.values) {
				return fmt.Errorf("%s: two cells would have the id %s, in which / and blanks are _; give their values names that differ otherwise", l.where[i], cell.ID)
			}
			if l.where[j] == l.where[i] {
				return fmt.Errorf("%s: cell %s is there twice; the same value stands twice in a list", l.where[i], cell.ID)
			}
			return fmt.Errorf("%s: cell %s is the same as one of %s", l.where[i], cell.ID, l.where[j])
		}
		seen[cell.ID] = i
	}
	if l.reference != "" {
		i, ok := seen[l.reference]
		if !ok && (!overridden || l.refSet) {
			ids := make([]string, 0, 10)
			for i := range min(len(c.Cells), 10) {
				ids = append(ids, c.Cells[i].ID)
			}
			if len(c.Cells) > 10 {
				ids = append(ids, fmt.Sprintf("… (%d cells)", len(c.Cells)))
			}
			return fmt.Errorf("%s: reference is %q; allowed are %s", l.refWhere, l.reference, strings.Join(ids, ", "))
		}
		c.Reference = i // 0, the first, where an override took the reference away
	}
	return nil
}

func lastPart(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

func keyNames(keys []Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// having returns the selected values whose cells have a setting.
func (l *loader) having(name string) []string {
	var out []string
	for _, v := range l.schema.Selector().Allowed {
		if _, ok := l.sets[v].index[name]; ok {
			out = append(out, v)
		}
	}
	return out
}

// allKeys returns all keys that a file may have.
func (l *loader) allKeys(withReserved bool) []string {
	var out []string
	if withReserved {
		out = keyNames(reserved)
	}
	for _, v := range l.schema.Selector().Allowed {
		for _, k := range l.sets[v].keys {
			if !slices.Contains(out, k.Name) {
				out = append(out, k.Name)
			}
		}
	}
	return out
}

// tables returns the names before the dots of all keys.
func (l *loader) tables() []string {
	var out []string
	for _, key := range l.allKeys(false) {
		if table, _, ok := strings.Cut(key, "."); ok && !slices.Contains(out, table) {
			out = append(out, table)
		}
	}
	return out
}

// closest returns a hint at the allowed key that is nearest by edits.
func (l *loader) closest(name string) string {
	best, d := "", 4
	for _, k := range l.allKeys(true) {
		if e := min(edits(name, k), edits(name, lastPart(k))+1); e < d {
			best, d = k, e
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (is it %s?)", best)
}

func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diag, row[j+1] = row[j+1], min(diag+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Jobs returns the number of runs: cells times seeds.
func (c *Config) Jobs() int { return len(c.Cells) * len(c.Seeds) }

// Hash names the content of the sweep: its cells, the files that these name,
// and its seeds. Runs of another hash do not belong to it. What cells are compared by is not part of it.
func (c *Config) Hash() string {
	h := sha256.New()
	for _, s := range c.Seeds {
		fmt.Fprintln(h, s)
	}
	for i := range c.Cells {
		cell := &c.Cells[i]
		fmt.Fprintln(h, cell.ID)
		for k, key := range cell.set.keys {
			fmt.Fprintln(h, key.Name, tomlValue(cell.values[k]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		fmt.Fprintf(h, "%s %x\n", name, c.Inputs[name].Sum)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Resolved writes the configuration with every setting spelt out, as a file
// that loads to the same sweep.
func (c *Config) Resolved(provenance string) []byte {
	var b strings.Builder
	for _, text := range []string{c.Question, provenance} {
		if text == "" {
			continue
		}
		for line := range strings.Lines(text) {
			b.WriteString(strings.TrimSpace("# "+printable(strings.TrimSpace(line))) + "\n")
		}
		b.WriteByte('\n') // ends the opening comment, which is the question
	}
	seeds := make([]string, len(c.Seeds))
	upTo := true
	for i, s := range c.Seeds {
		seeds[i] = strconv.FormatUint(s, 10)
		upTo = upTo && s == uint64(i)+1
	}
	if upTo {
		fmt.Fprintf(&b, "name = %s\nseeds = %d\n", tomlString(c.Name), len(c.Seeds))
	} else {
		fmt.Fprintf(&b, "name = %s\nseeds = [%s]\n", tomlString(c.Name), strings.Join(seeds, ", "))
	}
	fmt.Fprintf(&b, "metric = %s\nreference = %s\n", tomlString(c.Metric), tomlString(c.Cells[c.Reference].ID))
	show := make([]string, len(c.Show))
	for i, f := range c.Show {
		show[i] = tomlString(f)
	}
	fmt.Fprintf(&b, "show = [%s]\n", strings.Join(show, ", "))
	if c.Group != "" {
		fmt.Fprintf(&b, "group = %s\n", tomlString(c.Group))
	}
	for _, blk := range c.blocks {
		if len(c.blocks) > 1 {
			b.WriteString("\n[[cells]]\n")
		} else {
			b.WriteString("\n")
		}
		for _, axis := range blk.order() {
			values := make([]string, len(blk.axes[axis]))
			for i, v := range blk.axes[axis] {
				values[i] = tomlValue(v)
			}
			text := values[0]
			if len(values) > 1 {
				text = "[" + strings.Join(values, ", ") + "]"
			}
			line := fmt.Sprintf("%s = %s", blk.set.keys[axis].Name, text)
			if help := blk.set.keys[axis].Help; help != "" {
				line += " # " + help
			}
			b.WriteString(line + "\n")
		}
	}
	return []byte(b.String())
}
