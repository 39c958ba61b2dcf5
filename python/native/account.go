package native

import (
	"context"

	"ephemera/env"
	"ephemera/experiments"
)

// played is the run of a policy of Python: the world keeps the account, as the loop of
// Go does for its own policies. It has two parts. Over the first the policy may learn.
// Over the second what it learned is measured, in the world that this one becomes.
type played struct {
	ctx     context.Context // until the world is closed
	stop    context.CancelFunc
	second  bool
	account [2]*experiments.Account // nil for a part that has not begun
}

func newPlayed() *played {
	p := new(played)
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// part returns where the account of the part is.
func (p *played) part() **experiments.Account {
	if p.second {
		return &p.account[1]
	}
	return &p.account[0]
}

// add adds the crawls of an epoch.
func (p *played) add(crawls []env.Crawled) error {
	_, err := (*p.part()).Add(crawls, nil)
	return err
}

// measure has the next episodes be of the part in which what was learned is measured, or
// of the one before, of which a new run begins.
func (w *Worlds) measure(second bool) {
	w.played.second = second
	if !second {
		w.played.account = [2]*experiments.Account{}
	}
}

// again reports whether a policy that does not learn is to be measured over a second part
// too, since that is of another length or world.
func (w *Worlds) again() bool {
	s := w.at[0].Scene
	return w.set.Evaluation > 0 && s.Limit(w.set.Evaluation) != w.about.Epochs || len(s.Instance.Changes) > 0
}

// limit returns how many epochs an episode has.
func (w *Worlds) limit() int {
	if w.played != nil && w.played.second && w.set.Evaluation > 0 {
		return w.at[0].Limit(w.set.Evaluation)
	}
	return w.about.Epochs
}

// scene returns the scene of the part.
func (w *Worlds) scene() *experiments.Scene {
	scene := *w.at[0].Scene
	if w.played.second {
		scene = scene.After(w.about.Epochs)
	}
	return &scene
}

// open opens the account of the part in a world of a scene.
func (w *Worlds) open(s *experiments.Scene, world env.World) {
	*w.played.part() = experiments.NewAccount(world, w.limit(), s.Instance.Changes)
}

// seedTerms returns what is known of the world under the seed of the last reset.
func (w *Worlds) seedTerms() env.Terms { return w.at[0].terms }

// record returns the record of the run since its first part began. Who is the name of the policy.
// Without a second part it is a policy that earns the same again.
func (w *Worlds) record(who string) (*experiments.Record, error) {
	p := w.played
	if p.account[1] == nil {
		p.account[1] = p.account[0]
	}
	r, err := resolve(w.at[0].engine, w.set.Run, w.seed[0])
	if err != nil {
		return nil, err
	}
	return w.at[0].engine.Recorded(p.ctx, r, who, p.account[0], p.account[1])
}

// pages returns of the last step which pages were crawled and have changed, and which sent
// pings that the next decision sees, as often as they did.
func (w *Worlds) pages() (seen struct {
	Changed []int   `json:"changed"`
	Pings   []int32 `json:"pings"`
}) {
	for _, c := range w.got[0] {
		if c.Changed {
			seen.Changed = append(seen.Changed, c.Source)
		}
	}
	if d, ok := w.does.(*stepped); ok {
		seen.Pings = d.world[0].View().Pings
	}
	return seen
}
