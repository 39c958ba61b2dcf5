package sweep

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// entry is one key of the file with its values: one of a plain value, more or
// fewer of an array.
type entry struct {
	name   string
	values []any
	array  bool
	where  string // file:line:column, or the flag
	set    bool   // from -set
}

// document is a file as it stands, before the schema is asked.
type document struct {
	comment string    // the opening comment without its marks
	base    []entry   // keys outside of [[cells]]
	cells   [][]entry // one list per [[cells]]
	where   []string  // where each [[cells]] begins
	tables  []entry   // [tables]: name and where
}

// parse reads a TOML file into entries that know where they stand.
func parse(file string, data []byte) (*document, error) {
	// The decoder checks what the parser alone does not: keys and tables that
	// are defined twice.
	var ignored map[string]any
	if err := toml.Unmarshal(data, &ignored); err != nil {
		var de *toml.DecodeError
		if errors.As(err, &de) {
			line, col := de.Position()
			return nil, fmt.Errorf("%s:%d:%d: %s", file, line, col, strings.TrimPrefix(de.Error(), "toml: "))
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}

	doc := &document{comment: openingComment(string(data))}
	var p unstable.Parser
	p.Reset(data)
	prefix, list := "", -1
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			name, where := dotted(&p, file, e.Key())
			if e.Kind == unstable.Table {
				if name == "cells" || strings.HasPrefix(name, "cells.") && list < 0 {
					return nil, fmt.Errorf("%s: a list of cells is written [[cells]]", where)
				}
				prefix = name + "."
				if rest, ok := strings.CutPrefix(name, "cells."); ok {
					prefix = rest + "." // [cells.learner] belongs to the last [[cells]]
				} else {
					list = -1
				}
				doc.tables = append(doc.tables, entry{name: strings.TrimSuffix(prefix, "."), where: where})
				continue
			}
			if name != "cells" {
				return nil, fmt.Errorf("%s: [[%s]]; the one list of tables is [[cells]]", where, name)
			}
			prefix = ""
			doc.cells = append(doc.cells, nil)
			doc.where = append(doc.where, where)
			list = len(doc.cells) - 1
		case unstable.KeyValue:
			to := &doc.base
			if list >= 0 {
				to = &doc.cells[list]
			}
			if err := flatten(&p, file, prefix, e, to); err != nil {
				return nil, err
			}
		}
	}
	if err := p.Error(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return doc, nil
}

// flatten appends the entries of a key and its value; an inline table has
// several.
func flatten(p *unstable.Parser, file, prefix string, kv *unstable.Node, to *[]entry) error {
	name, where := dotted(p, file, kv.Key())
	v := kv.Value()
	if v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			if err := flatten(p, file, prefix+name+".", it.Node(), to); err != nil {
				return err
			}
		}
		return nil
	}
	e := entry{name: prefix + name, where: where}
	if v.Kind == unstable.Array {
		e.array = true
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.Comment {
				continue
			}
			x, err := scalar(it.Node())
			if err != nil {
				return fmt.Errorf("%s: %s: value %d: %w", where, e.name, len(e.values)+1, err)
			}
			e.values = append(e.values, x)
		}
		if len(e.values) == 0 {
			return fmt.Errorf("%s: %s is an empty list; at least one value is needed", where, e.name)
		}
	} else {
		x, err := scalar(v)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", where, e.name, err)
		}
		e.values = []any{x}
	}
	// The decoder does not see that "a.b" and a.b are one setting.
	if slices.ContainsFunc(*to, func(old entry) bool { return old.name == e.name }) {
		return fmt.Errorf("%s: %s is there twice", where, e.name)
	}
	*to = append(*to, e)
	return nil
}

func dotted(p *unstable.Parser, file string, it unstable.Iterator) (name, where string) {
	for it.Next() {
		k := it.Node()
		if name == "" {
			at := p.Shape(k.Raw).Start
			where = fmt.Sprintf("%s:%d:%d", file, at.Line, at.Column)
		} else {
			name += "."
		}
		name += string(k.Data)
	}
	return name, where
}

func scalar(n *unstable.Node) (any, error) {
	text := string(n.Data)
	switch n.Kind {
	case unstable.String:
		return text, nil
	case unstable.Bool:
		return text == "true", nil
	case unstable.Integer:
		i, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is not a whole number of 64 bits", text)
		}
		return i, nil
	case unstable.Float:
		f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		if err != nil {
			return nil, fmt.Errorf("%s is not a number of 64 bits", text)
		}
		return f, nil
	}
	return nil, fmt.Errorf("found a value of kind %v; allowed are numbers, strings, true and false, and lists of these", n.Kind)
}

// openingComment returns the comment at the top of a file.
func openingComment(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") {
			if line == "" && len(lines) == 0 {
				continue
			}
			break
		}
		if hashLine.MatchString(line) { // the provenance of a sweep that asks nothing
			break
		}
		lines = append(lines, strings.TrimSpace(strings.TrimLeft(line, "#")))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// parseSet reads one -set flag, key=value, where the value is TOML; a word that
// is no TOML value is taken as a string.
func parseSet(arg string) (entry, error) {
	where := "-set " + arg
	name, value, ok := strings.Cut(arg, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok || name == "" || value == "" {
		return entry{}, fmt.Errorf("%s: want key=value, such as learner.kappa=4 or learner.kappa=[1,2,4]", where)
	}
	if strings.ContainsAny(arg, "\r\n") {
		return entry{}, fmt.Errorf("-set %s=…: one line is allowed", name)
	}
	doc, err := parse("-set", []byte("x = "+value+"\n"))
	switch {
	case err == nil && len(doc.base) == 1 && doc.base[0].name == "x":
		e := doc.base[0]
		e.name, e.where, e.set = name, where, true
		return e, nil
	case !strings.ContainsAny(value, "[]{}\"'"):
		return entry{name: name, values: []any{value}, where: where, set: true}, nil
	case err == nil:
		err = errors.New("one value or a list of values is allowed")
	}
	return entry{}, fmt.Errorf("%s: %s", where, strings.Replace(strings.TrimPrefix(err.Error(), "-set:1:1: "), "x is", name+" is", 1))
}

// convert turns a value as read into the kind of the key.
func convert(k Key, v any) (any, error) {
	switch k.Kind {
	case Float:
		switch v := v.(type) {
		case float64:
			if !math.IsNaN(v) { // NaN differs from itself, so cells could not be told apart
				return v, nil
			}
		case int64:
			return float64(v), nil
		}
	case Int:
		switch v := v.(type) {
		case int64:
			return v, nil
		case float64: // 1e5 is a float in TOML
			if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
				return int64(v), nil
			}
		}
	case Bool:
		if v, ok := v.(bool); ok {
			return v, nil
		}
	case String:
		if v, ok := v.(string); ok {
			for _, a := range k.Allowed {
				if v == a {
					return v, nil
				}
			}
			if k.Allowed == nil {
				return v, nil
			}
			return nil, fmt.Errorf("%s is %q; allowed are %s", k.Name, v, strings.Join(k.Allowed, ", "))
		}
	}
	return nil, fmt.Errorf("%s is %s; allowed is %s", k.Name, tomlValue(v), k.Kind)
}
