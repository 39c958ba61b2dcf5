package experiments

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"ephemera/env"
)

// bursting is a world in which a crawl of its last source brings more than a
// number holds.
type bursting struct{ env.World }

func (b bursting) Step(crawl []int) ([]env.Crawled, error) {
	got, err := b.World.Step(crawl)
	for i := range got {
		if got[i].Source == len(b.Terms().Costs)-1 {
			got[i].Interest = math.Inf(1)
		}
	}
	return got, err
}

func burstingScene() Scene {
	s := MeanScene(env.Paper(1))
	open := s.Open
	s.Open = func(seed uint64, level env.Level, overrun bool) (env.World, error) {
		w, err := open(seed, level, overrun)
		return bursting{w}, err
	}
	return s
}

func find(t *testing.T, names ...string) []*Entry {
	t.Helper()
	var all []*Entry
	for _, n := range names {
		e, err := Find(n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// A figure that is not a finite number is an error that says where.
func TestNotFinite(t *testing.T) {
	for _, tt := range []struct {
		name string
		ends bool
	}{{"whittle", false}, {"round-robin", true}} {
		play := Play{Entry: find(t, tt.name)[0], Level: env.LevelModel, Epochs: 50}
		_, err := burstingScene().Play(context.Background(), play)
		if tt.ends != errors.Is(err, ErrNotFinite) || tt.ends && !strings.HasPrefix(err.Error(), "epoch 3: ") {
			t.Errorf("%s: error %v; want that it ends in epoch 3: %v", tt.name, err, tt.ends)
		}
	}
}
