package sweep

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"

	"ephemera/env"
)

// MetaFile stands beside the results of a sweep from its first run on and says
// what they are.
const MetaFile = "meta.json"

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

// readMeta reads a MetaFile.
func readMeta(path string) (*Meta, error) { return read(path, ParseMeta) }

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

// Meta says what the results of a sweep are.
func (c *Config) Meta() *Meta {
	m := &Meta{
		Format: metaFormat, Name: c.Name, Question: c.Question,
		Figures: c.x.Figures(), Curves: c.x.CurveFigures(), Axes: c.Axes, Seeds: c.Seeds,
	}
	for i := range c.Cells {
		m.Cells = append(m.Cells, MetaCell{c.Cells[i].ID, c.settings(&c.Cells[i])})
	}
	for name, in := range c.Inputs {
		if m.Inputs == nil {
			m.Inputs = map[string]string{}
		}
		m.Inputs[name] = in.file()
	}
	return m
}

// settings returns the axes that a cell has, as JSON can hold them: text where a
// number is infinite.
func (c *Config) settings(cell *Cell) map[string]any {
	set := map[string]any{}
	for _, a := range c.Axes {
		if cell.Has(a) {
			set[a] = cell.Value(a)
			if f, ok := set[a].(float64); ok && math.IsInf(f, 0) {
				set[a] = FormatValue(f)
			}
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
