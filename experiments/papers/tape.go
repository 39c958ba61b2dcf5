package papers

import (
	"fmt"
	"io"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
)

// tape is what every source gains in every epoch, drawn once, so that many
// policies can be played against the same content: what arrives does not depend
// on what is crawled.
type tape struct {
	sources []env.Source
	gains   [][]float64 // U of every epoch and source, interest at the epoch's end
}

// even is the tape of the mean dynamics: n epochs with the mean gain.
func even(sources []env.Source, n int) *tape {
	t := &tape{sources: sources, gains: make([][]float64, n)}
	row := make([]float64, len(sources))
	for i, s := range sources {
		row[i] = s.Gain()
	}
	for k := range t.gains {
		t.gains[k] = row
	}
	return t
}

// record draws n epochs from the simulator of single items: all sources are
// crawled at every epoch, so that a crawl brings back one epoch.
func record(sources []env.Source, seed uint64, n int, marks env.Marks) (*tape, error) {
	in := env.Instance{ID: "tape", Sources: sources, Budget: float64(len(sources))}
	w, err := env.NewPoisson(in, seed, env.PoissonOptions{Marks: marks, Overrun: true})
	if err != nil {
		return nil, err
	}
	all := make([]int, len(sources))
	for i := range all {
		all[i] = i
	}
	t := &tape{sources: sources, gains: make([][]float64, n)}
	for k := range t.gains {
		got, err := w.Step(all)
		if err != nil {
			return nil, err
		}
		t.gains[k] = make([]float64, len(sources))
		for _, c := range got {
			t.gains[k][c.Source] = c.Interest
		}
	}
	return t, nil
}

// count draws n epochs in which all items of a source and epoch are worth the
// same, the mean worth of an item at the epoch's end, ξ̄(1 − α)/c = u/λ.
func count(sources []env.Source, seed uint64, n int) *tape {
	r := stream.New(seed)
	return even(sources, n).each(func(i, k int, u float64) float64 {
		r.Reset(seed, stream.World, counts, uint64(i), uint64(k))
		lambda := sources[i].Rate
		return distuv.Poisson{Lambda: lambda, Src: r}.Rand() * u / lambda
	})
}

// marked multiplies the gain of every source and epoch by an exponential draw
// of mean 1.
func (t *tape) marked(seed uint64) *tape {
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
func (t *tape) each(f func(i, k int, u float64) float64) *tape {
	to := &tape{sources: t.sources, gains: make([][]float64, len(t.gains))}
	for k, row := range t.gains {
		to.gains[k] = make([]float64, len(row))
		for i, u := range row {
			to.gains[k][i] = f(i, k, u)
		}
	}
	return to
}

// world plays a tape under the dynamics (23) of TCNS, with the state observed.
// Every crawl costs 1.
type world struct {
	tape         *tape
	terms        env.Terms
	factor, gain []float64
	overrun      bool
	view         env.Observed
	crawled      []env.Crawled
}

var _ env.World = (*world)(nil)

// scene is the tape as a scene of Table I, with a budget in crawls per epoch,
// from its beginning or from other ages of the sources and their mean states.
// With overrun, crawls over the budget pass.
func (t *tape) scene(budget float64, overrun bool, ages ...int) experiments.Scene {
	in := env.Paper(budget)
	open := func(uint64, env.Level, bool) (env.World, error) {
		n := len(t.sources)
		w := &world{tape: t, terms: in.Terms(), overrun: overrun}
		w.view.Last, w.view.Mean, w.view.State = make([]int, n), make([]float64, n), slices.Clone(t.gains[0])
		for i, s := range t.sources {
			w.factor, w.gain = append(w.factor, s.Factor()), append(w.gain, s.Gain())
			w.view.Last[i], w.view.Mean[i] = -1, s.Gain()
		}
		for i, a := range ages {
			w.view.Last[i], w.view.Mean[i] = -a, t.sources[i].MeanState(a)
			w.view.State[i] = w.view.Mean[i]
		}
		return w, nil
	}
	return experiments.Scene{Instance: in, Open: open}
}

// View implements env.World.
func (w *world) View() *env.Observed { return &w.view }

// Terms implements env.World.
func (w *world) Terms() env.Terms { return w.terms }

// Step implements env.World.
func (w *world) Step(crawl []int) ([]env.Crawled, error) {
	v := &w.view
	if v.Epoch == len(w.tape.gains) {
		return nil, io.EOF
	}
	if n := float64(len(crawl)); !w.overrun && !env.Fits(n, w.terms.Budget) {
		return nil, fmt.Errorf("epoch %d: %v crawls; allowed is the budget, %v", v.Epoch, n, w.terms.Budget)
	}
	w.crawled = w.crawled[:0]
	for _, i := range crawl {
		w.crawled = append(w.crawled, env.Crawled{Source: i, Age: v.Age(i), Interest: v.State[i]})
		v.Last[i], v.Mean[i], v.State[i] = v.Epoch, 0, 0
	}
	if v.Epoch++; v.Epoch == len(w.tape.gains) {
		return w.crawled, nil
	}
	for i, a := range w.factor {
		// (23): X ← αX + U, and X ← U after a crawl
		v.Mean[i] = a*v.Mean[i] + w.gain[i]
		v.State[i] = a*v.State[i] + w.tape.gains[v.Epoch][i]
	}
	return w.crawled, nil
}
