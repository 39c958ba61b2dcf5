// Package experiments turns a model into figures: one visible loop runs an
// agent in a world, and around it stand the catalogue of policies, seeds,
// statistics and the output that all commands share.
package experiments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"ephemera/env"
)

// Outcome is what an agent earned over a run.
type Outcome struct {
	Epochs  int     `json:"epochs"`
	Reward  float64 `json:"reward"`  // interest per epoch
	Crawls  float64 `json:"crawls"`  // crawls per epoch
	Cost    float64 `json:"cost"`    // budget units per epoch
	Over    float64 `json:"over"`    // share of epochs whose crawls cost more than the budget
	Overrun float64 `json:"overrun"` // mean cost above the budget over all epochs, budget units

	// Decision is the median time of one Select and Update, measured on every
	// 64th epoch. It is the one figure that changes from run to run.
	Decision time.Duration `json:"-"`
}

// Watcher sees every epoch of a run, after the agent was told. The slice is
// valid during the call only. An error ends the run and is returned by it.
type Watcher func(epoch int, reward float64, crawls []env.Crawled) error

// Run is the loop of every experiment: the agent selects, the world steps, the
// agent is told. It ends after the given number of epochs, or, with epochs 0,
// when the world does.
func Run(w env.World, a env.Agent, epochs int, watch Watcher) (Outcome, error) {
	var t tally
	if err := t.run(context.Background(), new(late), w, a, 0, epochs, watch); err != nil {
		return Outcome{}, err
	}
	return t.outcome()
}

// tally adds up what is earned. Its sums are Outcome's, not yet means.
type tally struct {
	Outcome
	decisions []time.Duration // of every 64th epoch
}

// patience is how long an epoch under way may go on after an interruption. Most
// end within it, and what ends between two epochs can be saved.
const patience = 30 * time.Millisecond

// late is a context that is done when another has been for as long as the
// patience.
type late struct {
	context.Context
	seen atomic.Bool // something was ended by it
}

func (l *late) Err() error {
	err := l.Context.Err()
	if err != nil {
		l.seen.Store(true)
	}
	return err
}

func behind(ctx context.Context) (*late, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-inner.Done():
		case <-time.After(patience):
			cancel()
		}
	})
	return &late{Context: inner}, func() { stop(); cancel() }
}

// run goes on with a run as far as the given epoch, 0 for the end of the world.
// The first epochs of the world, warm of them, are played and do not count.
// Between epochs it looks at ctx; world and agent look at l within an epoch, and
// when they have seen it done, neither can be used any more.
func (t *tally) run(ctx context.Context, l *late, w env.World, a env.Agent, warm, epochs int, watch Watcher) error {
	var crawl []int
	terms := w.Terms()
	for epochs == 0 || t.Epochs < epochs {
		if err := ctx.Err(); err != nil {
			return err
		}
		counts := w.View().Epoch >= warm
		var began time.Time
		var spent time.Duration
		timed := counts && t.Epochs%64 == 0
		if timed {
			began = time.Now()
		}
		crawl = a.Select(crawl[:0], w.View())
		if timed {
			spent = time.Since(began)
		}
		if l.seen.Load() {
			return ctx.Err()
		}
		got, err := w.Step(crawl)
		if errors.Is(err, io.EOF) {
			if epochs != 0 {
				return fmt.Errorf("the world ended after %d epochs; %d were asked for", t.Epochs, epochs)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if timed {
			began = time.Now()
		}
		a.Update(got, w.View())
		if timed {
			t.decisions = append(t.decisions, spent+time.Since(began))
		}
		if !counts {
			continue
		}
		reward, err := t.add(got, terms)
		if err != nil {
			return err
		}
		if watch != nil {
			if err := watch(t.Epochs-1, reward, got); err != nil {
				return err
			}
		}
	}
	return nil
}

// ErrNotFinite is the error of a run whose figures a number cannot hold.
var ErrNotFinite = errors.New("not a finite number")

// add books the crawls of an epoch and returns what they earned.
func (t *tally) add(crawls []env.Crawled, terms env.Terms) (reward float64, err error) {
	var cost float64
	for _, c := range crawls {
		reward += c.Interest
		cost += terms.Costs[c.Source]
	}
	t.Epochs++
	t.Reward += reward
	t.Crawls += float64(len(crawls))
	t.Cost += cost
	if !env.Fits(cost, terms.Budget) {
		t.Over++
		t.Overrun += cost - terms.Budget
	}
	if math.IsNaN(t.Reward) || math.IsInf(t.Reward, 0) {
		return reward, fmt.Errorf("epoch %d: the interest earned so far is %v, %w", t.Epochs-1, t.Reward, ErrNotFinite)
	}
	return reward, nil
}

// outcome returns the means.
func (t *tally) outcome() (Outcome, error) {
	if t.Epochs == 0 {
		return Outcome{}, errors.New("the world has no epoch to run")
	}
	out := t.Outcome
	if len(t.decisions) > 0 {
		slices.Sort(t.decisions)
		out.Decision = t.decisions[len(t.decisions)/2]
	}
	n := float64(out.Epochs)
	out.Reward /= n
	out.Crawls /= n
	out.Cost /= n
	out.Over /= n
	out.Overrun /= n
	return out, nil
}
