package papers

import (
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
)

// tape is what every source gains in every epoch, drawn once, so that many
// policies can be played against the same content at little cost: what arrives
// does not depend on what is crawled.
type tape struct {
	sources []env.Source
	gains   [][]float64 // U of every epoch and source, interest at the epoch's end
}

// record draws the gains of n epochs from the simulator of single items: all
// sources are crawled at every epoch, so that a crawl brings back one epoch.
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
		row := make([]float64, len(sources))
		for _, c := range got {
			row[c.Source] = c.Interest
		}
		t.gains[k] = row
	}
	return t, nil
}

// coarse is a reading of the stochastic model that the simulator does not have:
// the items of a source and epoch are counted, and all of them are worth the
// same at the end of the epoch.
type coarse struct {
	worth func(s env.Source) float64                 // of an item, in units of its mark
	mark  func(s env.Source, r *stream.Rand) float64 // ξ of all items of a source and epoch
	// shared takes one draw of the mark for all sources of an epoch, lasting
	// one for all epochs of a source.
	shared, lasting bool
}

// draw returns a tape of n epochs.
func (c coarse) draw(sources []env.Source, seed uint64, n int) *tape {
	const counts, marks = 1 << 32, 1 << 33 // apart from the streams of the simulator
	t := &tape{sources: sources, gains: make([][]float64, n)}
	r := stream.New(seed)
	for k := range t.gains {
		row := make([]float64, len(sources))
		for i, s := range sources {
			r.Reset(seed, stream.World, counts, uint64(i), uint64(k))
			items := distuv.Poisson{Lambda: s.Rate, Src: r}.Rand()
			source, epoch := uint64(i), uint64(k)
			if c.shared {
				source = 0
			}
			if c.lasting {
				epoch = 0
			}
			r.Reset(seed, stream.World, marks, source, epoch)
			row[i] = items * c.worth(s) * c.mark(s, r)
		}
		t.gains[k] = row
	}
	return t
}

// What an item is worth at the end of its epoch if it arrives any time, at the
// end or at the beginning of it.
func anyTime(s env.Source) float64     { return -math.Expm1(-s.Decay) / s.Decay }
func atEnd(env.Source) float64         { return 1 }
func atBeginning(s env.Source) float64 { return s.Factor() }

// Marks.
func constant(s env.Source, _ *stream.Rand) float64    { return s.Interest }
func exponential(s env.Source, r *stream.Rand) float64 { return s.Interest * r.ExpFloat64() }
func withRate(s env.Source, r *stream.Rand) float64    { return r.ExpFloat64() / s.Interest } // ξ̄ as the rate

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

// world returns the tape from its beginning, with a budget in crawls per epoch.
// With overrun, crawls over the budget pass.
func (t *tape) world(budget float64, overrun bool) *world {
	n := len(t.sources)
	in := env.Instance{Sources: t.sources, Budget: budget}
	w := &world{tape: t, terms: in.Terms(), factor: make([]float64, n), gain: make([]float64, n), overrun: overrun}
	w.view.Last, w.view.Mean, w.view.State = make([]int, n), make([]float64, n), make([]float64, n)
	for i, s := range t.sources {
		w.factor[i], w.gain[i] = s.Factor(), s.Gain()
		w.view.Last[i], w.view.Mean[i] = -1, s.Gain()
	}
	copy(w.view.State, t.gains[0])
	return w
}

// scene is the tape as a scene of Table I, from its beginning or from other ages
// of the sources.
func (t *tape) scene(budget float64, overrun bool, ages ...int) experiments.Scene {
	return experiments.Scene{
		Instance: env.Paper(budget),
		Open: func(uint64, env.Level, bool) (env.World, error) {
			w := t.world(budget, overrun)
			w.begin(ages...)
			return w, nil
		},
	}
}

// free lets crawls over the budget pass.
func free(s experiments.Scene) experiments.Scene {
	open := s.Open
	s.Open = func(seed uint64, level env.Level, _ bool) (env.World, error) { return open(seed, level, true) }
	return s
}

// begin gives the sources ages to begin with, and their mean states.
func (w *world) begin(ages ...int) {
	for i, a := range ages {
		w.view.Last[i] = -a
		w.view.Mean[i] = w.tape.sources[i].MeanState(a)
		w.view.State[i] = w.view.Mean[i]
	}
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
	for k, i := range crawl { // all before the first changes anything
		if i < 0 || i >= len(w.factor) {
			return nil, fmt.Errorf("epoch %d: crawl of source %d; allowed are 0 to %d", v.Epoch, i, len(w.factor)-1)
		}
		if slices.Contains(crawl[:k], i) {
			return nil, fmt.Errorf("epoch %d: source %d is named twice", v.Epoch, i)
		}
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
