package sweep

import "context"

// Figure is a column of the results.
type Figure struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	Help string `json:"help,omitempty"` // what it is, in a few words
	// Less is whether lower values are better. It matters for the figure that
	// cells are compared by.
	Less bool `json:"less,omitempty"`
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
	// Row has one value per figure of the runner; NaN where a cell has none.
	Row []float64
	// Curve is the learning curve, on few points that are spread evenly over
	// the logarithm of the epochs.
	Curve []Point
	// Learned is what was learned beside what is exact, if anything.
	Learned []Pair
}

// Point is one point of a learning curve.
type Point struct {
	Epoch  int
	Values []float64 // one per curve figure of the runner
}

// Pair is one learned quantity and the exact one.
type Pair struct {
	What    string // threshold or index
	Source  string
	At      float64 // the age at which an index is taken, epochs; 0 for thresholds
	Learned float64
	Exact   float64
}

// Runner turns cells into results.
type Runner interface {
	// Figures and CurveFigures name the columns of rows and curves.
	Figures() []Figure
	CurveFigures() []Figure
	// Worker returns what one goroutine runs its cells with.
	Worker() Worker
}

// Worker runs cells one after the other and may keep buffers between them. The
// result depends on cell and seed only; it is the caller's.
type Worker interface {
	Run(ctx context.Context, c *Cell, seed uint64) (Result, error)
}
