package experiments

import (
	"context"
	"strings"
	"testing"

	"ephemera/env"
)

// TestPagesScene: in world pages one who needs items is refused with the reason, and from one
// bit a crawl forecast learns from nothing to bring nearly what Whittle's index does, which is
// given the rates; in turn much less.
func TestPagesScene(t *testing.T) {
	in, err := env.Named("pages:200:3", 10)
	if err != nil {
		t.Fatal(err)
	}
	scene, err := PagesScene(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, why string }{
		{"certainty", ""}, {"forecast", ""}, {"freshrss", ""}, {"lspe", "more than one bit"},
		{"miniflux", "more than one bit"}, {"nutch", ""}, {"q-whittle", "no crawl shows"},
		{"round-robin", ""}, {"whittle", ""},
	} {
		e, err := Find(tt.name)
		if err != nil {
			t.Fatal(err)
		}
		level := e.FirstLevel()
		if tt.name == "lspe" {
			level = env.LevelOnline
		}
		if why := e.WhyNot(scene, level); (why == "") != (tt.why == "") || !strings.Contains(why, tt.why) {
			t.Errorf("%s: %q; want %q", tt.name, why, tt.why)
		}
	}
	of := func(name string) float64 {
		e, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := scene.Play(context.Background(), Play{
			Entry: e, Level: e.FirstLevel(), Seed: 1, Epochs: 1500, Evaluation: -1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if share := rec.Learning.OfBound.Value(); share > 1.01 {
			t.Errorf("%s earns %v of the bound", name, share)
		}
		return rec.Learning.Reward
	}
	whittle := of("whittle")
	for _, tt := range []struct {
		name   string
		lo, up float64
	}{{"forecast", .97, 1.01}, {"nutch", .5, .95}, {"round-robin", .7, .9}} {
		if share := of(tt.name) / whittle; share < tt.lo || share > tt.up {
			t.Errorf("%s brings %.4f of Whittle; want %v to %v", tt.name, share, tt.lo, tt.up)
		} else {
			t.Logf("%s brings %.4f of Whittle", tt.name, share)
		}
	}
}
