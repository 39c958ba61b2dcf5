package sweep

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// MetaFile stands beside the results of a sweep from its first run on and says
// what they are.
const MetaFile = "meta.json"

// Meta is what MetaFile holds.
type Meta struct {
	Format   int      `json:"format"` // of the files of a sweep; 1
	Program  string   `json:"program"`
	Command  string   `json:"command"` // that repeats the sweep; "" if unknown
	Name     string   `json:"name"`
	Question string   `json:"question"`
	Figures  []Figure `json:"figures"` // columns of runs.csv, in their order
	Curves   []Figure `json:"curves"`  // columns of curves.csv
	Axes     []string `json:"axes"`    // settings that differ between cells
	Seeds    []uint64 `json:"seeds"`
	Cells    []struct {
		ID       string         `json:"id"`
		Settings map[string]any `json:"settings"` // the axes that the cell has
	} `json:"cells"`
}

// metaFormat is the version of the files that this program writes and reads.
const metaFormat = 1

// ReadMeta reads the MetaFile of a directory.
func ReadMeta(dir string) (*Meta, error) {
	path := filepath.Join(dir, MetaFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := ParseMeta(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
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

func (c *Config) writeMeta(r Runner, o Options) error {
	m := Meta{
		Format: metaFormat, Program: o.Revision, Command: o.Command, Name: c.Name, Question: c.Question,
		Figures: r.Figures(), Curves: r.CurveFigures(), Axes: c.Axes, Seeds: c.Seeds,
	}
	for i := range c.Cells {
		cell := &c.Cells[i]
		set := map[string]any{}
		for _, a := range c.Axes {
			if cell.Has(a) {
				set[a] = JSONValue(cell.Value(a))
			}
		}
		m.Cells = append(m.Cells, struct {
			ID       string         `json:"id"`
			Settings map[string]any `json:"settings"`
		}{cell.ID, set})
	}
	return replaceVia(filepath.Join(o.Dir, "records"), o.Dir, MetaFile, func(w *bufio.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		return e.Encode(m)
	})
}
