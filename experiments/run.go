// Package experiments turns a model into figures: one visible loop runs an
// agent in a world, and around it stand the catalogue of policies, seeds,
// statistics and the output that all commands share.
package experiments

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"ephemera/env"
	"ephemera/env/stream"
)

// Outcome is what an agent earned over a run.
type Outcome struct {
	Epochs  int
	Reward  float64 // interest per epoch
	Crawls  float64 // crawls per epoch
	Cost    float64 // budget units per epoch
	Over    float64 // share of epochs whose crawls cost more than the budget
	Overrun float64 // mean cost above the budget over all epochs, budget units

	// Decision is the median time of one Select and Update, measured on every
	// 64th epoch. It is the one figure that changes from run to run.
	Decision time.Duration
}

// Play is a run of one agent in a scene as data.
type Play struct {
	Seed    uint64
	Level   env.Level
	Role    uint64 // tells the random streams of agents in one world apart
	Overrun bool   // crawls over the budget pass
	Epochs  int    // 0 for all that the world has
	Build   func(Known) (env.Agent, error)
	Watch   Watcher // may be nil
}

// Play sets the world up afresh, builds the agent from what it may know, and
// runs it.
func (s Scene) Play(p Play) (Outcome, error) {
	world, err := s.Open(p.Seed, p.Level, p.Overrun)
	if err != nil {
		return Outcome{}, err
	}
	agent, err := p.Build(Known{
		Instance: s.Instance, Terms: world.Terms(), Level: p.Level,
		Marks: s.Marks, Sigma: s.Sigma, Seen: s.Seen(),
		Rand: stream.New(p.Seed, stream.Policy, p.Role),
	})
	if err != nil {
		return Outcome{}, err
	}
	return Run(world, agent, p.Epochs, p.Watch)
}

// Watcher sees every epoch of a run, after the agent was told. The slice is
// valid during the call only. An error ends the run and is returned by it.
type Watcher func(epoch int, reward float64, crawls []env.Crawled) error

// Run is the loop of every experiment: the agent selects, the world steps, the
// agent is told. It ends after the given number of epochs, or, with epochs 0,
// when the world does.
func Run(w env.World, a env.Agent, epochs int, watch Watcher) (Outcome, error) {
	var (
		out   Outcome
		crawl []int
		terms = w.Terms()

		decisions []time.Duration // of every 64th epoch
	)
	for n := 0; epochs == 0 || n < epochs; n++ {
		var began time.Time
		var spent time.Duration
		timed := n%64 == 0
		if timed {
			began = time.Now()
		}
		crawl = a.Select(crawl[:0], w.View())
		if timed {
			spent = time.Since(began)
		}
		got, err := w.Step(crawl)
		if errors.Is(err, io.EOF) {
			if epochs != 0 {
				return Outcome{}, fmt.Errorf("the world ended after %d epochs; %d were asked for", n, epochs)
			}
			break
		}
		if err != nil {
			return Outcome{}, err
		}
		if timed {
			began = time.Now()
		}
		a.Update(got, w.View())
		if timed {
			decisions = append(decisions, spent+time.Since(began))
		}

		var reward, cost float64
		for _, c := range got {
			reward += c.Interest
			cost += terms.Costs[c.Source]
		}
		out.Epochs++
		out.Reward += reward
		out.Crawls += float64(len(got))
		out.Cost += cost
		if !env.Fits(cost, terms.Budget) {
			out.Over++
			out.Overrun += cost - terms.Budget
		}
		if watch != nil {
			if err := watch(n, reward, got); err != nil {
				return Outcome{}, err
			}
		}
	}
	if out.Epochs == 0 {
		return Outcome{}, errors.New("the world has no epoch to run")
	}
	slices.Sort(decisions)
	out.Decision = decisions[len(decisions)/2]
	n := float64(out.Epochs)
	out.Reward /= n
	out.Crawls /= n
	out.Cost /= n
	out.Over /= n
	out.Overrun /= n
	return out, nil
}
