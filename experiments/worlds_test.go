package experiments

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
)

var (
	full       = flag.Bool("full", false, "run the long tests in full and print their tables")
	worldLevel = flag.String("level", "observed", "levels of knowledge of the random worlds")
	worldItems = flag.Float64("items", math.Inf(1),
		"leave out random worlds with more items per epoch, which are drawn one by one")
	worldHeld = flag.String("held", "",
		"a policy that is held against Whittle in place of the default learner, "+
			"in the worlds to which it applies")
)

// anyWorld returns a world of that seed. Where states are seen all laws are
// exponential, as the model of TCNS, VIII, has it.
func anyWorld(seed uint64, level env.Level) (Scene, env.Marks) {
	in, marks := envtest.RandomInstance(seed, level != env.LevelObserved)
	if level == env.LevelModel {
		return MeanScene(in), ""
	}
	for i := range in.Sources {
		in.Sources[i].Rate = min(in.Sources[i].Rate, 1e4) // the most that a world of items takes
	}
	return PoissonScene(in, marks), marks
}

// itemsOf returns how many items are published in an epoch.
func itemsOf(s Scene) (items float64) {
	for _, v := range s.Instance.Sources {
		items += v.Rate
	}
	return items
}

// TestAnyWorld holds the default learner against Whittle's index with the true
// parameters in random worlds, 3000 epochs each: -full runs 3000 worlds, and
// prints the ten in which what was learned earns least.
func TestAnyWorld(t *testing.T) {
	envtest.Alone(t)
	const steps = 3000
	worlds := 36
	if *full {
		worlds = 3000
	}
	whittle, err := Find("whittle")
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		seed  uint64
		level env.Level
		in    env.Instance
		share float64
		note  string
	}
	for _, name := range []string{"model", "observed", "online"} {
		if !slices.Contains(strings.Split(*worldLevel, ","), name) {
			continue
		}
		level, known := env.Level(name), env.Level(name)
		if level == env.LevelOnline {
			known = env.LevelModel
		}
		held, err := FindLearner("", level)
		if *worldHeld != "" {
			held, err = Find(*worldHeld)
		}
		if err != nil {
			t.Fatal(err)
		}
		var all []result
		worlds := worlds
		if level != env.LevelModel && !*full {
			worlds /= 12 // items are drawn one by one
		}
		for k := range worlds {
			seed := uint64(k + 1)
			s, marks := anyWorld(seed, level)
			if held.WhyNot(s, level) != "" || level != env.LevelModel && itemsOf(s) > *worldItems {
				continue
			}
			play := func(e *Entry, level env.Level) *Record {
				p, err := s.Play(context.Background(), Play{Entry: e, Level: level, Seed: seed, Epochs: steps})
				if err != nil {
					t.Fatalf("world %d, %s: %v", seed, e.Name, err)
				}
				return p
			}
			got, ref := play(held, level), play(whittle, known).Learned.Reward
			share := got.Learned.Reward / ref
			if ref == 0 && got.Learned.Reward == 0 {
				share = 1
			}
			note := fmt.Sprintf("%.3g items, learning %.3f, marks %v", itemsOf(s), got.Learning.Reward/ref, marks)
			all = append(all, result{seed, level, s.Instance, share, note})
		}
		slices.SortStableFunc(all, func(a, b result) int { return cmp.Compare(a.share, b.share) })
		mean := 0. // what is more than Whittle's makes up for nothing
		below := 0
		for _, r := range all {
			mean += min(r.share, 1) / float64(len(all))
			if !(r.share >= .95) {
				below++
			}
		}
		t.Logf("%s: %d worlds, mean of shares up to 1 %.5f, below .95 %d, least %.4f",
			level, len(all), mean, below, all[0].share)
		if *full || testing.Verbose() {
			for _, r := range all[:min(10, len(all))] {
				fmt.Printf("%s world %d: %.4f, N %d, budget %.4g, %s\n",
					level, r.seed, r.share, len(r.in.Sources), r.in.Budget, r.note)
			}
		}
		if !(mean >= .99) || below*100 >= len(all) && len(all) >= 100 || !(all[0].share >= .85) {
			t.Errorf("%s: %d worlds, mean share of Whittle %.5f, %d below .95, least %.4f; "+
				"want .99, fewer than one in a hundred, .85",
				level, len(all), mean, below, all[0].share)
		}
	}
}

// A source whose decay is thought too fast is crawled at every epoch, and never
// shows an old item by which the error could be seen.
func TestDecayThoughtTooFast(t *testing.T) {
	for _, seed := range []uint64{1385, 1937} {
		s, _ := anyWorld(seed, env.LevelOnline)
		earn := func(e *Entry, level env.Level) float64 {
			p, err := s.Play(context.Background(), Play{Entry: e, Level: level, Seed: seed, Epochs: 3000})
			if err != nil {
				t.Fatal(err)
			}
			return p.Learned.Reward
		}
		got := earn(find(t, "forecast")[0], env.LevelOnline)
		if ref := earn(find(t, "whittle")[0], env.LevelModel); got < .9*ref {
			t.Errorf("world %d: %.3f of Whittle", seed, got/ref)
		}
	}
}
