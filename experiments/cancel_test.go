package experiments

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/learner"
)

// A run that is cancelled in the middle ends, and leaves no goroutine behind.
func TestCancelled(t *testing.T) {
	in := env.Lognormal(300, 20, 1)
	before := runtime.NumGoroutine()
	var all []Contender
	for i := range Catalogue {
		if e := &Catalogue[i]; e.WhyNot(MeanScene(in), env.LevelModel) == "" {
			all = append(all, Contender{Entry: e})
		}
	}
	for what, run := range map[string]func(context.Context) error{
		"comparison": func(ctx context.Context) error {
			_, err := Comparison{Scenes: []Scene{MeanScene(in)}, Level: env.LevelModel, Contenders: all, Epochs: 1e9, Seeds: 4, Seed: 1, Workers: 8}.Run(ctx)
			return err
		},
		"training": func(ctx context.Context) error {
			_, err := Training{Scene: MeanScene(in), Learner: find(t, "lspe")[0], Level: env.LevelModel, Epochs: 1e9, Seed: 1}.Run(ctx)
			return err
		},
		"comparison after training": func(ctx context.Context) error {
			slow := MeanScene(in)
			_, err := Training{Scene: slow, Learner: find(t, "lspe")[0], Level: env.LevelModel, Epochs: 1e9, Seed: 1,
				From: &Checkpoint{Point: atEnd(t, slow, 1e9), Done: nil}}.Run(ctx)
			return err
		},
		"construction": func(ctx context.Context) error {
			long := Entry{Name: "long", New: func(k Known, _ any) (env.Agent, error) {
				<-k.Context.Done()
				return env.Agent{}, k.Context.Err()
			}}
			_, err := Comparison{Scenes: []Scene{MeanScene(in)}, Level: env.LevelModel, Contenders: []Contender{{Entry: &long, Optional: true}}, Epochs: 1, Seeds: 1, Workers: 1}.Run(ctx)
			return err
		},
		"epoch": func(ctx context.Context) error {
			s := MeanScene(in)
			s.Open = func(uint64, env.Level, bool) (env.World, error) {
				w, err := env.NewMean(in, false)
				return &long{World: w, begun: func() {}}, err
			}
			_, err := s.Play(ctx, Play{Entry: find(t, "greedy")[0], Level: env.LevelModel, Epochs: 5})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		err := run(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 100 { // what was cancelled may need a moment
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// An epoch that goes on for too long is given up; where it stood is not kept.
func TestInterruptedInLongEpoch(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := MeanScene(env.Paper(1))
	s.Open = func(uint64, env.Level, bool) (env.World, error) {
		w, err := env.NewMean(env.Paper(1), true)
		return &long{World: w, begun: cancel}, err
	}
	saves := 0
	_, err := Training{Scene: s, Learner: find(t, "lspe")[0], Level: env.LevelModel, Epochs: 300, Save: func(*Checkpoint) error { saves++; return nil }}.Run(ctx)
	if !errors.Is(err, context.Canceled) || saves != 0 {
		t.Errorf("within a long epoch: %v, %d saved", err, saves)
	}
}

// long is a world whose epoch lasts until it is interrupted.
type long struct {
	env.World
	begun func() // is told of it
	ctx   context.Context
}

func (w *long) Until(ctx context.Context) { w.ctx = ctx }

func (w *long) Step([]int) ([]env.Crawled, error) {
	w.begun()
	<-w.ctx.Done()
	return nil, w.ctx.Err()
}

// atEnd returns the point of a training that has been made to look as if that
// many epochs were behind it.
func atEnd(t *testing.T, s Scene, epochs int) Point {
	t.Helper()
	var at Point
	_, err := Training{Scene: s, Learner: find(t, "lspe")[0], Level: env.LevelModel, Epochs: 10, Seed: 1, Save: func(c *Checkpoint) error { at = c.Point; return nil }}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	at.Sums.Epochs = epochs
	return at
}

// Within one epoch of very many sources a run ends too. What is done after the
// interruption is counted in looks at the context, so that no clock decides.
func TestInterruptedInHugeEpoch(t *testing.T) {
	const n = 100_000
	in := env.Lognormal(n, n/1000, 1)
	scenes := map[env.Level]Scene{env.LevelModel: MeanScene(in), env.LevelObserved: MeanScene(in), env.LevelOnline: PoissonScene(in, env.MarksConstant, 0)}
	for _, c := range []struct {
		entry string
		level env.Level
		first bool // the first epoch is the long one
	}{
		{"lspe", env.LevelModel, false}, {"lspe", env.LevelObserved, false}, {"lspe", env.LevelOnline, false},
		{"forecast", env.LevelOnline, false}, {"whittle", env.LevelModel, true}, {"lagrangian", env.LevelModel, true},
	} {
		// epoch returns how often the agent looks in an epoch in which the context
		// is done after so many looks.
		epoch := func(end int) int {
			e, s := find(t, c.entry)[0], scenes[c.level]
			w, err := s.Open(1, c.level, false)
			if err != nil {
				t.Fatal(err)
			}
			k := Known{Given: learner.Given{Instance: in, Terms: w.Terms(), Level: c.level, Rand: stream.New(1)}, Context: context.Background()}
			var a env.Agent
			if e.Learns() {
				l, err := e.Train(k, e.Settings(c.level))
				if err != nil {
					t.Fatal(err)
				}
				a = l.Agent()
			} else if a, err = e.New(k, nil); err != nil {
				t.Fatal(err)
			}
			play := func() {
				got, err := w.Step(a.Select(nil, w.View()))
				if err != nil {
					t.Fatal(err)
				}
				a.Update(got, w.View())
			}
			if !c.first {
				play()
			}
			count := &looks{Context: context.Background(), end: end}
			a.Until(count)
			play()
			return count.n
		}
		whole := epoch(math.MaxInt)
		if whole < n/(1<<14) {
			t.Errorf("%s, %s: %d looks at the context in an epoch of %d sources", c.entry, c.level, whole, n)
		}
		// What is left of each loop ends at its next look.
		if cut := epoch(2); cut > whole/2 {
			t.Errorf("%s, %s: %d looks after 2 of %d", c.entry, c.level, cut-2, whole)
		}
	}
	count := &looks{Context: context.Background(), end: 3}
	if _, err := index.RelaxUntil(count, in, index.MeanDynamics); !errors.Is(err, context.Canceled) || count.n > count.end+2 {
		t.Errorf("the relaxed optimum: %v after %d looks", err, count.n)
	}
}

// looks is a context that is done after so many looks at it.
type looks struct {
	context.Context
	n, end int
}

func (c *looks) Err() error {
	if c.n++; c.n > c.end {
		return context.Canceled
	}
	return nil
}
