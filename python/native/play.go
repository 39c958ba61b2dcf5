package native

import (
	"context"
	"fmt"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments"
)

// playSettings name a world, for how long it is played, and by whom.
type playSettings struct {
	spec
	Name  string
	Steps int // 0 for all that the world has
	Seed  uint64
}

// play is a world in which a policy of Python crawls. The loop is in Python: one
// call is one epoch, and the record is what the loop of Go would make.
type play struct {
	*experiments.Turns
	level env.Level
	top   *baselines.Selector
	crawl []int
	got   []env.Crawled // of the last epoch
}

// openPlay sets a world up, and tells what its policy may know.
func openPlay(ctx context.Context, text []byte) (*play, any, error) {
	s := playSettings{spec: usual()}
	if err := decode(text, &s); err != nil {
		return nil, nil, err
	}
	scene, err := s.scene(ctx)
	if err != nil {
		return nil, nil, err
	}
	turns, err := scene.Turns(experiments.Play{Entry: &experiments.Entry{Name: s.Name}, Level: s.Knowledge, Epochs: s.Steps, Seed: s.Seed})
	if err != nil {
		return nil, nil, err
	}
	t := turns.Terms()
	return &play{Turns: turns, level: s.Knowledge, top: baselines.NewSelector(t.Costs, t.Budget)}, map[string]any{
		"id": scene.Instance.ID, "names": t.Names, "costs": t.Costs, "budget": t.Budget,
		"knowledge": s.Knowledge, "start": t.Start, "length": t.Length, "epochs": turns.Epochs(),
	}, nil
}

// Forms of what a policy chose; the numbers stand behind the form.
const (
	sources = iota // to crawl
	scores         // of all sources
)

// call is [Call] about a play. "step" takes a choice and plays an epoch; both it
// and "view" append what is seen then. "record" answers with the record so far.
func (p *play) call(what string, in []float64, m *Made) error {
	switch what {
	case "view":
		m.Numbers = p.seen(m.Numbers)
		return nil
	case "step":
		if err := p.step(in); err != nil {
			return err
		}
		m.Numbers = p.seen(m.Numbers)
		return nil
	case "record":
		var err error
		m.Answer, err = p.Record()
		return err
	}
	return fmt.Errorf("unknown call %q", what)
}

func (p *play) step(choice []float64) (err error) {
	p.crawl = p.crawl[:0]
	if choice[0] == scores {
		p.crawl = p.top.Top(p.crawl, choice[1:])
	} else {
		for _, i := range choice[1:] {
			p.crawl = append(p.crawl, int(i))
		}
	}
	p.got, err = p.Step(p.crawl)
	return err
}

// seen appends the epoch, whether means and states follow, the numbers of crawls
// and of items; then ages, means and states of all sources; of each crawl the
// source, the epochs since its last, the interest and the number of items; age and
// interest of each item. What the level of knowledge does not show is not there.
func (p *play) seen(to []float64) []float64 {
	v := p.View()
	var mean, state []float64
	if p.level != env.LevelOnline {
		mean = v.Mean
	}
	if p.level == env.LevelObserved {
		state = v.State
	}
	items := 0
	for _, c := range p.got {
		items += len(c.Items)
	}
	has := map[bool]float64{true: 1}
	to = append(to, float64(v.Epoch), has[mean != nil], has[state != nil], float64(len(p.got)), float64(items))
	for i := range v.Last {
		to = append(to, float64(v.Age(i)))
	}
	to = append(append(to, mean...), state...)
	for _, c := range p.got {
		to = append(to, float64(c.Source), float64(c.Age), c.Interest, float64(len(c.Items)))
	}
	for _, c := range p.got {
		for _, x := range c.Items {
			to = append(to, x.Age, x.Interest)
		}
	}
	return to
}
