// Package sweep runs experiments as data: a configuration becomes cells, every
// cell runs once per seed on all cores, and each result is on disk as soon as
// it is there.
//
// The package is read in the order in which data flow:
//
//  1. An [Experiment] says which settings a cell has, and turns one cell and
//     one seed into a [Result]: a row of figures, a learning curve, and what was
//     learned beside what is exact.
//  2. [Load] decodes a TOML file into lists of values and makes their product:
//     a [Config] of cells, each with a readable id that follows from its content.
//  3. [Run] works through cells and seeds. Finished ones are appended to a
//     record file of this process; killed and started again, it runs what is
//     missing. [Shard] divides the work between processes.
//  4. [Merge] reads the records of all processes in the order of the
//     configuration and writes the final files, which are the same bytes
//     however the work was divided or interrupted.
//
// Beside the results stands [MetaFile], a JSON object that says what they are:
// columns with unit and sense, axes, cells, and the command that repeats the
// sweep. Who reads results, as package report does, reads it with [ParseMeta].
package sweep

import (
	"context"
	"fmt"
	"math"
	"strconv"
)

// Experiment is what a sweep runs.
type Experiment interface {
	// Selector is the key whose value decides which other keys a cell has,
	// such as learner.algorithm. Its Allowed lists the values.
	Selector() Key
	// Keys returns the other settings of a cell with that value, in the order
	// in which cells vary: the first changes slowest.
	Keys(selected string) []Key
	// Check reports what is wrong with a cell, as an *experiments.SettingError where
	// one key is at fault.
	Check(c *Cell) error
	// Figures and CurveFigures name the columns of rows and curves.
	Figures() []Figure
	CurveFigures() []Figure
	// Run runs a cell. The result depends on cell and seed only, and is the
	// caller's. Run is safe for concurrent use.
	Run(ctx context.Context, c *Cell, seed uint64) (Result, error)
}

// Key is one setting of a cell.
type Key struct {
	Name    string                  // dotted, as in the file: learner.kappa
	Default any                     // float64, int64, string or bool, which is the setting's type
	Allowed []string                // values of a string key; nil for any
	File    func(value string) bool // whether a value names a file; nil if none does
	Problem bool                    // cells that differ in it are not compared: they solve different problems

	// Follows names a string key on whose value the default depends, and Then
	// holds it for values under which it is not Default.
	Follows string
	Then    map[string]any
}

// Figure is a column of the results.
type Figure struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	Help string `json:"help,omitempty"` // what it is, in a few words
	// Less is whether lower values are better. It matters for the figure that
	// cells are compared by.
	Less bool `json:"less,omitempty"`
}

// Label is the name with the unit.
func (f Figure) Label() string {
	if f.Unit == "" {
		return f.Name
	}
	return f.Name + ", " + f.Unit
}

func figureNames(f []Figure) []string {
	names := make([]string, len(f))
	for i := range f {
		names[i] = f[i].Name
	}
	return names
}

// Result is what one run of a cell gives.
type Result struct {
	// Row has one value per figure; NaN where a cell has none.
	Row Numbers `json:"row,omitempty"`
	// Curve is the learning curve, on few points that are spread evenly over
	// the logarithm of the epochs.
	Curve []Point `json:"curve,omitempty"`
	// Learned is what was learned beside what is exact, if anything.
	Learned []Pair `json:"learned,omitempty"`
}

// Point is one point of a learning curve.
type Point struct {
	Epoch  int     `json:"epoch"`
	Values Numbers `json:"values"` // one per curve figure
}

// Pair is one learned quantity and the exact one.
type Pair struct {
	What    string  `json:"what"` // threshold or index
	Source  string  `json:"source"`
	At      float64 `json:"at,omitempty"` // the age at which an index is taken, epochs; 0 for thresholds
	Learned float64 `json:"learned"`      // finite, as is the exact one
	Exact   float64 `json:"exact"`
}

// fits reports whether a result has the figures that the experiment announces.
func (r Result) fits(x Experiment) error {
	if got, want := len(r.Row), len(x.Figures()); got != want {
		return fmt.Errorf("the result has %d figures, not %d", got, want)
	}
	for _, p := range r.Curve {
		if got, want := len(p.Values), len(x.CurveFigures()); got != want {
			return fmt.Errorf("the curve has points of %d figures, not %d", got, want)
		}
	}
	for _, p := range r.Learned {
		if v := p.At + p.Learned + p.Exact; math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s of %s is learned as %v, exactly %v; want finite ones", p.What, p.Source, p.Learned, p.Exact)
		}
	}
	return nil
}

// FormatValue writes a setting as ids and tables have it.
func FormatValue(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}
