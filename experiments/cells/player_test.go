package cells

import (
	"context"
	"fmt"
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/experiments"
	"ephemera/experiments/sweep"
)

// Train, bench and a sweep run the same thing: every entry of the catalogue
// earns the same in all three under one seed and in one world, whatever law the
// items follow.
func TestOnePlayer(t *testing.T) {
	envtest.Alone(t)
	const steps, seed = 60, 5
	ran := 0
	for _, world := range []string{"mean", "poisson"} {
		for _, name := range New().Selector().Allowed {
			c := choose(name)
			text := fmt.Sprintf("steps = %d\nlearner.algorithm = %q\nworld.kind = %q\n", steps, name, world)
			scene := experiments.MeanScene(env.Paper(1))
			if world == "poisson" {
				text += "world.marks = \"lognormal\"\nworld.sigma = 0.7\n"
				scene = experiments.PoissonScene(env.Paper(1), env.MarksLogNormal, 0.7)
			}
			if c.entry.WhyNot(scene, c.level) != "" || c.level == env.LevelOnline && world == "mean" {
				continue
			}
			ran++

			s := New()
			cfg, err := sweep.Load(s, "test.toml", []byte(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			cell, err := s.Run(context.Background(), &cfg.Cells[0], seed)
			if err != nil {
				t.Fatalf("%s, %s: %v", name, world, err)
			}
			learning, learned := cell.Row[column(t, "learning_reward")], cell.Row[column(t, "learned_reward")]

			bench, err := experiments.Comparison{
				Scenes: []experiments.Scene{scene}, Level: c.level, Contenders: []experiments.Contender{{Entry: c.entry, Chosen: true}},
				Epochs: steps, Seeds: 1, Seed: seed, Workers: 1,
			}.Run(context.Background())
			if err != nil {
				t.Fatalf("%s, %s: %v", name, world, err)
			}

			training := experiments.Training{Scene: scene, Level: c.level, Epochs: steps, Seed: seed}
			if c.entry.Learns() {
				training.Learner = c.entry
			} else {
				training.Compare = []*experiments.Entry{c.entry}
				if training.Learner, err = experiments.FindLearner("", c.level); err != nil {
					t.Fatal(err)
				}
			}
			trained, err := training.Run(context.Background())
			if err != nil {
				t.Fatalf("%s, %s: %v", name, world, err)
			}

			first, last := bench.Runs[0], bench.Runs[len(bench.Runs)-1]
			rows := trained.Report.Results
			if c.entry.Learns() {
				if got := rows[0].Reward; got != learning || first.Reward != learning {
					t.Errorf("%s, %s: while learning train has %v, bench %v, a sweep %v", name, world, got, first.Reward, learning)
				}
				rows = rows[1:2]
			}
			if got := rows[len(rows)-1]; got.Reward != learned || last.Reward != learned {
				t.Errorf("%s, %s: train has %v, bench %v, a sweep %v", name, world, got.Reward, last.Reward, learned)
			}
		}
	}
	if ran < 30 {
		t.Errorf("%d entries ran; the catalogue has more", ran)
	}
}
