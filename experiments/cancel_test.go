package experiments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
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
				return &long{World: w}, err
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

// A run that is interrupted in the middle of an epoch ends between two, so that
// what is saved goes on to the same end.
func TestInterruptedInside(t *testing.T) {
	in := env.Lognormal(5, 2, 1)
	whole := PoissonScene(in, env.MarksPerItem, 0)
	train := func(ctx context.Context, s Scene, from *Checkpoint) (last Checkpoint, saves int, err error) {
		_, err = Training{Scene: s, Learner: find(t, "lspe")[0], Level: env.LevelModel, Epochs: 300, Seed: 1, From: from,
			Save: func(c *Checkpoint) error { last, saves = *c, saves+1; return nil }}.Run(ctx)
		return last, saves, err
	}
	interrupted := func(at int) (context.Context, Scene) {
		ctx, cancel := context.WithCancel(context.Background())
		s := whole
		s.Open = func(seed uint64, level env.Level, overrun bool) (env.World, error) {
			w, err := whole.Open(seed, level, overrun)
			return &cancelling{w.(*env.Poisson), at, cancel}, err
		}
		return ctx, s
	}
	want, _, err := train(context.Background(), whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 1, 117, 299} {
		ctx, s := interrupted(at)
		point, saves, err := train(ctx, s, nil)
		if !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), fmt.Sprintf("after %d of 300 epochs", at+1)) || saves == 0 || point.Epoch != at+1 {
			t.Fatalf("interrupted in epoch %d: %v, %d saved, at epoch %d", at, err, saves, point.Epoch)
		}
		got, _, err := train(context.Background(), whole, &point)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Learner, want.Learner) || got.Sums != want.Sums {
			t.Errorf("interrupted in epoch %d: the learner ends otherwise", at)
		}
	}
	ctx, s := interrupted(117)
	_, err = Training{Scene: s, Learner: find(t, "lspe")[0], Level: env.LevelModel, Epochs: 300}.Run(ctx)
	if err == nil || !strings.HasSuffix(err.Error(), "after 118 of 300 epochs") {
		t.Errorf("interrupted where nothing is saved: %v", err)
	}
	// An epoch that goes on for too long is given up; where it stood is not kept.
	ctx, cancel := context.WithCancel(context.Background())
	s = whole
	s.Open = func(seed uint64, level env.Level, overrun bool) (env.World, error) {
		w, err := whole.Open(seed, level, overrun)
		cancel()
		return &long{World: w}, err
	}
	if _, saves, err := train(ctx, s, nil); !errors.Is(err, context.Canceled) || saves != 0 {
		t.Errorf("within a long epoch: %v, %d saved", err, saves)
	}
}

// cancelling is a world in which a run is interrupted in one epoch.
type cancelling struct {
	*env.Poisson
	at     int
	cancel func()
}

func (w *cancelling) Step(crawl []int) ([]env.Crawled, error) {
	if w.View().Epoch == w.at {
		w.cancel()
	}
	return w.Poisson.Step(crawl)
}

// long is a world whose epoch lasts until it is interrupted.
type long struct {
	env.World
	ctx context.Context
}

func (w *long) Until(ctx context.Context) { w.ctx = ctx }

func (w *long) Step([]int) ([]env.Crawled, error) {
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
