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

// A figure that is not a finite number is an error that says where, and what
// was made before is kept.
func TestNotFinite(t *testing.T) {
	e := find(t, "whittle", "round-robin", "greedy")
	c := Comparison{Scenes: []Scene{burstingScene()}, Level: env.LevelModel, Contenders: contenders(t, "whittle", "round-robin"), Epochs: 50, Seeds: 2, Seed: 1, Workers: 2}
	out := compare(t, c)
	if len(out.Report.Results) != 1 || out.Report.Results[0].Policy != "whittle" {
		t.Errorf("kept are %+v", out.Report.Results)
	}
	if !errors.Is(out.Failed, ErrNotFinite) || !strings.Contains(out.Failed.Error(), "round-robin on paper, seed 1: epoch 3: ") {
		t.Errorf("the failure is %v", out.Failed)
	}
	c.Contenders = c.Contenders[1:]
	if _, err := c.Run(context.Background()); !errors.Is(err, ErrNotFinite) {
		t.Errorf("nothing is left: %v", err)
	}

	training := Training{Scene: burstingScene(), Learner: find(t, "lspe")[0], Level: env.LevelModel, Epochs: 60, Rows: 60, Seed: 1, Compare: e}
	trained, err := training.Run(context.Background())
	if !errors.Is(err, ErrNotFinite) || trained == nil {
		t.Fatalf("%+v, %v", trained, err)
	}
	for _, r := range trained.Report.Results {
		if r.Policy == "round-robin" || math.IsInf(r.Reward, 0) {
			t.Errorf("kept is %+v", r)
		}
	}
	if len(trained.Metrics.Rows) == 0 {
		t.Error("the metrics are thrown away")
	}
}
