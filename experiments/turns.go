package experiments

import (
	"fmt"

	"ephemera/env"
	"ephemera/learner"
)

// Turns is a run whose loop is the caller's: one call is one epoch. Its record is
// that of a policy which the engine had run.
type Turns struct {
	contest *contest
	playing playing
	part    part
	watch   Watcher
}

// Turns begins a run of p.Epochs epochs by decisions that the caller makes. Of p
// it takes entry, level, epochs and seed; nothing of the entry but its name.
func (s Scene) Turns(p Play) (*Turns, error) {
	epochs := s.Limit(p.Epochs)
	if epochs < 1 {
		return nil, fmt.Errorf("a run of %d epochs in a world that does not end; at least 1 is needed", epochs)
	}
	world, err := s.Open(p.Seed, p.Level, false)
	if err != nil {
		return nil, err
	}
	p.Epochs = epochs
	t := &Turns{contest: s.contest(p), playing: playing{world: world}}
	t.watch = t.part.watch(Running{World: world, Known: Known{Given: learner.Given{Terms: world.Terms()}}}, epochs, false)
	return t, nil
}

// Terms returns what every crawler knows beforehand.
func (t *Turns) Terms() env.Terms { return t.playing.world.Terms() }

// Epochs returns how many epochs are to be played, with those before that do not
// count.
func (t *Turns) Epochs() int { return t.contest.at.Warm + t.contest.Steps }

// View returns what can be seen now; it changes with the next Step.
func (t *Turns) View() *env.Observed { return t.playing.world.View() }

// Step crawls sources and goes on to the next epoch. What it refuses changes
// nothing.
func (t *Turns) Step(crawl []int) ([]env.Crawled, error) {
	counts := t.View().Epoch >= t.contest.at.Warm
	got, err := t.playing.world.Step(crawl)
	if err != nil || !counts {
		return got, err
	}
	reward, err := t.playing.add(got, t.Terms())
	if err == nil {
		err = t.watch(t.playing.sums.Epochs-1, reward, got)
	}
	return got, err
}

// Record returns the record of the epochs so far.
func (t *Turns) Record() (*Record, error) {
	out, err := t.playing.outcome()
	if err != nil {
		return nil, err
	}
	return t.contest.record(&followed{Played: Played{Learning: out, Learned: out}, learning: t.part, learned: t.part}), nil
}
