package papers

import (
	"io"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/env"
	"ephemera/env/stream"
)

// tape is what every source of Table I gains in every epoch, drawn once, so that
// many policies can be played against the same content: what arrives does not
// depend on what is crawled. It has U of every epoch and source, interest at the
// epoch's end.
type tape [][]float64

// longest is the most epochs that a reading has of its own.
const longest = 1000

// draw returns the content of every law, and that of the mean dynamics.
func draw(seed uint64, steps int) map[string]tape {
	items, counts := drawItems(seed, steps, env.MarksConstant), count(seed, steps)
	return map[string]tape{
		"": even(steps), "constant": items, "counts": counts, "per-item": drawItems(seed, steps, env.MarksPerItem),
		"per-epoch": items.marked(seed), "per-epoch-counts": counts.marked(seed),
	}
}

// even is the tape of the mean dynamics: n epochs with the mean gain.
func even(n int) tape {
	var row []float64
	for _, s := range env.Paper(1).Sources {
		row = append(row, s.Gain())
	}
	return slices.Repeat(tape{row}, n)
}

// drawItems draws n epochs from the simulator of single items: all sources are
// crawled at every epoch, so that a crawl brings back one epoch.
func drawItems(seed uint64, n int, marks env.Marks) tape {
	w, err := env.NewPoisson(env.Paper(4), seed, env.PoissonOptions{Marks: marks})
	t := make(tape, n)
	for k := range t {
		var got []env.Crawled
		if err == nil {
			got, err = w.Step([]int{0, 1, 2, 3})
		}
		if err != nil {
			panic("papers: " + err.Error()) // Table I is an instance, and its budget is all of it
		}
		for _, c := range got {
			t[k] = append(t[k], c.Interest)
		}
	}
	return t
}

// count draws n epochs in which all items of a source and epoch are worth the
// same, the mean worth of an item at the epoch's end, ξ̄(1 − α)/c = u/λ.
func count(seed uint64, n int) tape {
	r, sources := stream.New(seed), env.Paper(1).Sources
	return even(n).each(func(i, k int, u float64) float64 {
		r.Reset(seed, stream.World, counts, uint64(i), uint64(k))
		lambda := sources[i].Rate
		return distuv.Poisson{Lambda: lambda, Src: r}.Rand() * u / lambda
	})
}

// marked multiplies the gain of every source and epoch by an exponential draw
// of mean 1.
func (t tape) marked(seed uint64) tape {
	r := stream.New(seed)
	return t.each(func(i, k int, u float64) float64 {
		r.Reset(seed, stream.World, marks, uint64(i), uint64(k))
		return u * r.ExpFloat64()
	})
}

// Streams apart from those of the simulator.
const counts, marks = 1 << 32, 1 << 33

// each returns a tape in which f has changed the gain of every source i and
// epoch k.
func (t tape) each(f func(i, k int, u float64) float64) tape {
	to := make(tape, len(t))
	for k, row := range t {
		for i, u := range row {
			to[k] = append(to[k], f(i, k, u))
		}
	}
	return to
}

// world plays a tape under the dynamics (23) of TCNS, with the state observed.
type world struct {
	*env.Mean // the books: epoch, crawls, budget and mean state
	gains     tape
	factor    []float64
}

// world returns the tape as a world of Table I, with a budget in crawls per epoch,
// from its beginning or from other ages of the sources and their mean states.
func (t tape) world(budget float64, overrun bool, ages ...int) (*world, error) {
	in := env.Paper(budget)
	books, err := env.NewMean(in, overrun)
	if err != nil {
		return nil, err
	}
	w := &world{Mean: books, gains: t}
	v := w.View()
	v.State = slices.Clone(t[0])
	for i, s := range in.Sources {
		w.factor = append(w.factor, s.Factor())
		if ages != nil {
			v.Last[i], v.Mean[i] = -ages[i], s.MeanState(ages[i])
			v.State[i] = v.Mean[i]
		}
	}
	return w, nil
}

// Step implements env.World.
func (w *world) Step(crawl []int) ([]env.Crawled, error) {
	v := w.View()
	if v.Epoch == len(w.gains) {
		return nil, io.EOF
	}
	crawled, err := w.Mean.Step(crawl)
	if err != nil {
		return nil, err
	}
	for k, i := range crawl {
		crawled[k].Interest, v.State[i] = v.State[i], 0
	}
	if v.Epoch < len(w.gains) {
		for i, a := range w.factor {
			v.State[i] = a*v.State[i] + w.gains[v.Epoch][i] // (23): X ← αX + U, and X ← U after a crawl
		}
	}
	return crawled, nil
}
