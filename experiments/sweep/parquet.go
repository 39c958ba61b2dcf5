package sweep

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
)

const (
	runsParquet   = "runs.parquet"
	curvesParquet = "curves.parquet"
)

// writeParquet writes runs.parquet and curves.parquet: the columns of the CSV
// files with their types. Settings that a cell does not have are null.
func writeParquet(ctx context.Context, c *Config, r Runner, s *store, dir string) error {
	runs := parquet.Group{"cell": parquet.String(), "seed": parquet.Uint(64)}
	for _, a := range c.Axes {
		node := parquet.Leaf(parquet.DoubleType)
		switch c.kind(a) {
		case Int:
			node = parquet.Int(64)
		case String:
			node = parquet.String()
		case Bool:
			node = parquet.Leaf(parquet.BooleanType)
		}
		runs[a] = parquet.Optional(node)
	}
	for _, f := range r.Figures() {
		runs[f.Name] = parquet.Leaf(parquet.DoubleType)
	}
	curves := parquet.Group{"cell": parquet.String(), "seed": parquet.Uint(64), "epoch": parquet.Int(64)}
	for _, f := range r.CurveFigures() {
		curves[f.Name] = parquet.Leaf(parquet.DoubleType)
	}
	return replace(dir, runsParquet, func(runsTo *bufio.Writer) error {
		return replace(dir, curvesParquet, func(curvesTo *bufio.Writer) error {
			in := &reader{store: s}
			rw := newTable(runsTo, "runs", runs)
			cw := newTable(curvesTo, "curves", curves)
			for i := range c.Cells {
				if err := ctx.Err(); err != nil {
					return err
				}
				cell := &c.Cells[i]
				for k, seed := range c.Seeds {
					job := c.job(i, k)
					if s.at[job].size == 0 {
						continue
					}
					res, err := in.read(job)
					if err != nil {
						return err
					}
					row := map[string]any{"cell": cell.ID, "seed": seed}
					for _, a := range c.Axes {
						if cell.Has(a) {
							row[a] = cell.Value(a)
						}
					}
					fill(row, r.Figures(), res.Row)
					if err := rw.write(row); err != nil {
						return err
					}
					for _, p := range res.Curve {
						row := map[string]any{"cell": cell.ID, "seed": seed, "epoch": int64(p.Epoch)}
						fill(row, r.CurveFigures(), p.Values)
						if err := cw.write(row); err != nil {
							return err
						}
					}
				}
			}
			if err := rw.w.Close(); err != nil {
				return err
			}
			return cw.w.Close()
		})
	})
}

// parquetThere reports whether an earlier call wrote the files, which then have
// to follow the others.
func parquetThere(dir string) bool {
	for _, name := range []string{runsParquet, curvesParquet} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

func fill(row map[string]any, figures []Figure, values []float64) {
	for j, f := range figures {
		row[f.Name] = values[j]
	}
}

// kind returns the kind of a setting.
func (c *Config) kind(name string) Kind {
	for i := range c.Cells {
		if k, ok := c.Cells[i].set.index[name]; ok {
			return c.Cells[i].set.keys[k].Kind
		}
	}
	panic(fmt.Sprintf("sweep: no cell has setting %q", name))
}

// table writes rows in small groups, so that memory stays bounded.
type table struct {
	w       *parquet.GenericWriter[any]
	columns []string
	leaf    map[string]parquet.LeafColumn
	row     parquet.Row
}

func newTable(to *bufio.Writer, name string, group parquet.Group) *table {
	schema := parquet.NewSchema(name, group)
	t := &table{
		w:    parquet.NewGenericWriter[any](to, schema, parquet.MaxRowsPerRowGroup(1<<16), parquet.Compression(&parquet.Snappy)),
		leaf: map[string]parquet.LeafColumn{},
	}
	for _, path := range schema.Columns() {
		t.columns = append(t.columns, path[0])
		t.leaf[path[0]], _ = schema.Lookup(path...)
	}
	return t
}

func (t *table) write(row map[string]any) error {
	t.row = t.row[:0]
	for _, name := range t.columns {
		leaf := t.leaf[name]
		v, ok := row[name]
		value, defined := parquet.NullValue(), 0
		if ok {
			value, defined = parquet.ValueOf(v), leaf.MaxDefinitionLevel
		}
		t.row = append(t.row, value.Level(0, defined, leaf.ColumnIndex))
	}
	_, err := t.w.WriteRows([]parquet.Row{t.row})
	return err
}
