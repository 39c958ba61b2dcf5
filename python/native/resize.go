package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/learner"
)

// Resize takes the sources out that drop numbers, and adds others behind the
// rest. What was learned of those that stay is kept, with the price; those that
// are new begin as in a new learner.
func (c *Crawler) Resize(drop []int, add []env.Source) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.learner == nil {
		return fmt.Errorf("%q does not learn; build it anew", c.entry.Name)
	}
	n := len(c.terms.Costs)
	for _, i := range drop {
		if i < 0 || i >= n {
			return fmt.Errorf("source %d; allowed are 0 to %d", i, n-1)
		}
	}
	for _, s := range add {
		if slices.Contains(c.terms.Names, s.Name) {
			return fmt.Errorf("there is a source %q already", s.Name)
		}
	}
	// One after the other, so that the number of sources changes and tells
	// what in a state belongs to them.
	d := c.body
	if len(drop) > 0 {
		var keep []int
		for i := range n {
			if !slices.Contains(drop, i) {
				keep = append(keep, i)
			}
		}
		if err := d.rebuild(keep, nil); err != nil {
			return err
		}
	}
	if len(add) > 0 {
		keep := make([]int, len(d.terms.Costs))
		for i := range keep {
			keep[i] = i
		}
		if err := d.rebuild(keep, add); err != nil {
			return err
		}
	}
	c.body = d
	return nil
}

// rebuild makes the learner of the sources that stay and of new ones.
func (c *body) rebuild(keep []int, add []env.Source) error {
	old := *c
	c.instance.Sources = nil
	for _, i := range keep {
		c.instance.Sources = append(c.instance.Sources, old.instance.Sources[i])
	}
	c.instance.Sources = append(c.instance.Sources, add...)
	if err := c.instance.Validate(); err != nil {
		return err
	}
	c.terms = c.instance.Terms()
	c.terms.Start, c.terms.Length = old.terms.Start, old.terms.Length
	c.begin()
	c.view.Epoch = old.view.Epoch
	for i := range c.view.Last {
		c.view.Last[i] = old.view.Epoch - 1
	}
	for to, from := range keep {
		c.view.Last[to], c.view.Mean[to] = old.view.Last[from], old.view.Mean[from]
	}
	c.view.State = nil

	before, _, err := old.fresh()
	if err != nil {
		return err
	}
	after, _, err := c.fresh()
	if err != nil {
		return err
	}
	now, err := tree(old.learner.State())
	if err != nil {
		return err
	}
	m := mover{n: len(old.terms.Costs), m: len(c.terms.Costs), keep: keep}
	moved, err := m.move("state", now, before, after)
	if err != nil {
		return err
	}
	err = c.take(moved)
	if err != nil {
		// A threshold is at most so many times as long as crawling each source
		// once takes, which is less now.
		lower(moved, math.Log(c.terms.Round()/old.terms.Round()))
		err = c.take(moved)
	}
	return err
}

// take makes a learner with that state.
func (c *body) take(state any) error {
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	_, l, err := c.fresh()
	if err != nil {
		return err
	}
	if err := l.SetState(data); err != nil {
		return err
	}
	c.learner, c.agent = l, l.Agent()
	return nil
}

// lower has no logarithm of a threshold be nearer to the greatest than by.
func lower(state any, by float64) {
	m, _ := state.(map[string]any)
	for key, v := range m {
		list, ok := v.([]any)
		if key != "threshold" || !ok {
			lower(v, by)
			continue
		}
		most := math.Inf(-1)
		for _, x := range list {
			t, _ := x.(json.Number).Float64()
			most = max(most, t)
		}
		for i, x := range list {
			if t, _ := x.(json.Number).Float64(); t > most+by {
				list[i] = most + by
			}
		}
	}
}

// fresh returns the state of a new learner like c's, and that learner.
func (c *body) fresh() (any, learner.Learner, error) {
	l, err := c.entry.Train(experiments.Known{Given: c.given(stream.New(0, stream.Policy))}, c.settings)
	if err != nil {
		return nil, nil, err
	}
	t, err := tree(l.State())
	return t, l, err
}

// tree returns data as encoding/json reads it, numbers to the last digit.
func tree(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var t any
	err = d.Decode(&t)
	return t, err
}

// mover moves what a state holds of n sources to a state of m. The states of
// new learners of n and of m sources tell what is whose: a list whose length
// they share belongs to all sources and is kept; one that has k·n entries in
// the one and k·m in the other has k for each source; one that fits neither is
// a list of random streams of blocks of sources, and begins anew.
type mover struct {
	n, m int
	keep []int
}

func (v mover) move(name string, now, before, after any) (any, error) {
	switch now := now.(type) {
	case map[string]any:
		b, okB := before.(map[string]any)
		a, okA := after.(map[string]any)
		if !okB || !okA {
			return nil, fmt.Errorf("%s is no object in a new learner", name)
		}
		out := map[string]any{}
		for key, x := range now {
			var err error
			if out[key], err = v.move(name+"."+key, x, b[key], a[key]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		b, _ := before.([]any)
		a, _ := after.([]any)
		switch {
		case len(a) == len(b) && len(now) == len(a):
			return now, nil
		case len(b)%v.n == 0 && len(b) == len(now) && len(a) == len(b)/v.n*v.m:
			k := len(b) / v.n
			out := slices.Clone(a) // what is new is as in a new learner
			for to, from := range v.keep {
				copy(out[to*k:(to+1)*k], now[from*k:(from+1)*k])
			}
			return out, nil
		case strings.HasSuffix(name, ".rand"):
			return a, nil
		}
		return nil, fmt.Errorf("%s has %d entries, and %d and %d in new learners of %d and %d sources; this learner cannot change its sources", name, len(now), len(b), len(a), v.n, v.m)
	}
	return now, nil
}
