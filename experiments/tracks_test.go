package experiments

import (
	"slices"
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// Each entry says what it sees: none is taken for one that knows the parameters for want of a word.
func TestEachSaysWhatItSees(t *testing.T) {
	for _, e := range Catalogue() {
		if err := e.valid(); err != nil {
			t.Error(err)
		}
	}
}

// A policy that says that it sees less than its level shows chooses the same when it is
// shown no more than that.
func TestTracks(t *testing.T) {
	bit := func(c env.Crawled) env.Crawled {
		if c.Items = nil; c.Interest > 0 {
			c.Interest = 1
		}
		return c
	}
	shown := map[Track]func(c env.Crawled) env.Crawled{
		TrackHarvest: func(c env.Crawled) env.Crawled { c.Items = nil; return c },
		TrackBit:     bit,
		TrackChange:  bit,
		TrackAge:     func(c env.Crawled) env.Crawled { c.Items, c.Interest = nil, 0; return c },
	}
	in := env.Lognormal(12, 3, 1)
	for i := range in.Sources {
		in.Sources[i].Rate /= 20 // so that crawls find nothing at times
	}
	tried := map[Track]int{}
	for _, e := range Catalogue() {
		less := shown[e.Track(e.FirstLevel())]
		if less == nil {
			continue
		}
		tried[e.Track(e.FirstLevel())]++
		t.Run(e.Name, func(t *testing.T) {
			world, err := PoissonScene(in, env.MarksConstant).Open(1, env.LevelOnline, false)
			if err != nil {
				t.Fatal(err)
			}
			agents := make([]env.Agent, 2)
			for k := range agents {
				random := stream.New(1, stream.Policy, 0)
				known := Inputs{Instance: in, Terms: world.Terms(), Level: env.LevelOnline, Rand: random}
				settings, err := e.Configure(env.LevelOnline, nil)
				if err != nil {
					t.Fatal(err)
				}
				if agents[k], _, err = e.New(known, settings); err != nil {
					t.Fatal(err)
				}
			}
			found := 0
			for epoch := range 2000 {
				crawl := slices.Clone(agents[0].Select(nil, world.View()))
				if got := agents[1].Select(nil, world.View()); !slices.Equal(got, crawl) {
					t.Fatalf("epoch %d: it crawls %v; shown less, %v", epoch, crawl, got)
				}
				got, err := world.Step(crawl)
				if err != nil {
					t.Fatal(err)
				}
				var of []env.Crawled
				for _, c := range got {
					of = append(of, less(c))
					found += len(c.Items)
				}
				agents[0].Update(got, world.View())
				agents[1].Update(of, world.View())
			}
			if found == 0 {
				t.Error("nothing was found that could have been shown")
			}
		})
	}
	if tried[TrackHarvest] < 3 || tried[TrackBit] < 4 || tried[TrackChange] < 7 || tried[TrackAge] < 2 {
		t.Errorf("the catalogue has %v policies by what they see; want at least those of this test", tried)
	}
}
