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

// Loop is the loop of every experiment: the agent selects, the world steps, the
// agent is told. It ends after the given number of epochs, or, with epochs 0,
// when the world does.
func Loop(w env.World, a env.Agent, epochs int, watch Watcher) (Outcome, error) {
	t := &playing{world: w, agent: a}
	if err := t.playEpochs(context.Background(), 0, epochs, watch); err != nil {
		return Outcome{}, err
	}
	return t.outcome()
}

// playing is a run under way.
type playing struct {
	world     env.World
	agent     env.Agent
	sums      Outcome         // not yet means
	decisions []time.Duration // of every 64th epoch
}

// playEpochs goes on as far as the given epoch, 0 for the end of the world. The first
// epochs of the world, warm of them, are played and do not count. Between epochs
// it looks at ctx.
func (t *playing) playEpochs(ctx context.Context, warm, epochs int, watch Watcher) error {
	var crawl []int
	terms := t.world.Terms()
	for epochs == 0 || t.sums.Epochs < epochs {
		if err := ctx.Err(); err != nil {
			return err
		}
		counts := t.world.View().Epoch >= warm
		timed := counts && t.sums.Epochs%64 == 0
		var began time.Time
		var spent time.Duration
		if timed {
			began = time.Now()
		}
		crawl = t.agent.Select(crawl[:0], t.world.View())
		if timed {
			spent = time.Since(began)
		}
		got, err := t.world.Step(crawl)
		switch {
		case errors.Is(err, io.EOF) && epochs == 0:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the world ended after %d epochs; %d were asked for", t.sums.Epochs, epochs)
		case err != nil:
			return err
		}
		if timed {
			began = time.Now()
		}
		t.agent.Update(got, t.world.View())
		if timed {
			t.decisions = append(t.decisions, spent+time.Since(began))
		}
		if !counts {
			continue
		}
		reward, err := t.add(got, terms)
		if err == nil && watch != nil {
			err = watch(t.sums.Epochs-1, reward, got)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrNotFinite is the error of a run whose figures a number cannot hold.
var ErrNotFinite = errors.New("not a finite number")

// add books the crawls of an epoch and returns what they earned.
func (t *playing) add(crawls []env.Crawled, terms env.Terms) (reward float64, err error) {
	sum := &t.sums
	var cost float64
	for _, c := range crawls {
		reward += c.Interest
		cost += terms.Costs[c.Source]
	}
	sum.Epochs++
	sum.Reward += reward
	sum.Crawls += float64(len(crawls))
	sum.Cost += cost
	if !env.Fits(cost, terms.Budget) {
		sum.Over++
		sum.Overrun += cost - terms.Budget
	}
	if math.IsNaN(sum.Reward) || math.IsInf(sum.Reward, 0) {
		return reward, fmt.Errorf("epoch %d: the interest earned so far is %v, %w", sum.Epochs-1, sum.Reward, ErrNotFinite)
	}
	return reward, nil
}

// outcome returns the means.
func (t *playing) outcome() (Outcome, error) {
	out := t.sums
	if out.Epochs == 0 {
		return Outcome{}, errors.New("the world has no epoch to run")
	}
	if len(t.decisions) > 0 {
		slices.Sort(t.decisions)
		out.Decision = t.decisions[len(t.decisions)/2]
	}
	for _, v := range []*float64{&out.Reward, &out.Crawls, &out.Cost, &out.Over, &out.Overrun} {
		*v /= float64(out.Epochs)
	}
	return out, nil
}
