package env_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/env/envtest"
)

func TestParseObjective(t *testing.T) {
	for _, text := range []string{
		"", "interest:4h", "interest:1h30m", "interest:1m30s",
		"delay", "delay:0.5", "delay:2", "deadline:24h", "freshness",
	} {
		if o, err := env.ParseObjective(text); err != nil || o.String() != text {
			t.Errorf("%q is read as %q, error %v", text, o, err)
		}
	}
	for _, text := range []string{
		"interest", "interest:4", "interest:-1h", "delay:", "delay:0", "delay:x", "delay:nan",
		"deadline", "freshness:2", "speed",
	} {
		_, err := env.ParseObjective(text)
		want := `"` + text + `"; allowed are interest:HALF-LIFE such as interest:4h, delay, delay:K`
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v; want one that lists the objectives", text, err)
		}
	}
}

// The harvest curve under each objective is what waiting costs, integrated by hand: with
// Λ items per epoch worth ξ each, that are found s epochs after the crawl before.
func TestObjectives(t *testing.T) {
	s := env.NewSource("a", 3, .123, 2)
	s.Window, s.Batch = 7, 2
	of := func(text string) env.Source {
		o, err := env.ParseObjective(text)
		if err != nil {
			t.Fatal(err)
		}
		got := env.Instance{ID: "x", Sources: []env.Source{s}, Budget: 1}.WithObjective(o, 30*time.Minute)
		if err := got.Validate(); err != nil || got.ID != "x/"+o.String() {
			t.Errorf("%s: id %q, error %v", text, got.ID, err)
		}
		return got.Sources[0]
	}
	for _, age := range []float64{.5, 1, 3, 48, 60} {
		c := math.Ln2 / 8 // 4 h are 8 epochs
		envtest.Near(t, "interest", of("interest:4h").Harvest(age), 6/c*(1-math.Exp(-c*age)), 1e-12)
		envtest.Near(t, "delay", of("delay").Harvest(age), -6*age*age/2, 1e-12)
		envtest.Near(t, "delay:2", of("delay:2").Harvest(age), -6*age*age*age/3, 1e-12)
		envtest.Near(t, "deadline", of("deadline:24h").Harvest(age), 6*math.Min(age, 48), 1e-12)
		// Arrivals of two items change the page 1.5 times an epoch.
		envtest.Near(t, "freshness", of("freshness").Harvest(age), 2/1.5*(1-math.Exp(-1.5*age)), 1e-12)
	}
	still := s
	still.Rate = 0
	got := (env.Objective{Law: env.LawFreshness}).Of(still, time.Hour)
	if got.Harvest(9) != 0 || got.Validate() != nil {
		t.Errorf("a page that never changes brings %v, error %v", got.Harvest(9), got.Validate())
	}
	late := of("delay")
	late.Window = 5
	const want = "window is 5; under the law delay no item is dropped"
	if err := late.Validate(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("delay with a window: error is %v", err)
	}
}

// What items of the law delay have cost that wait is owed, whatever laws their source had before
// and has now.
func TestOwedWhereLawsChange(t *testing.T) {
	fades, delays := env.NewSource("", 1, .1, 1), env.NewSource("", 1, 1, 1)
	delays.Law = env.LawDelay
	for _, begin := range []env.Source{fades, delays} {
		then := fades
		if begin == fades {
			then = delays
		}
		in := env.Instance{
			Budget: 1, Sources: []env.Source{begin},
			Changes: []env.Change{{At: 30, Sources: []env.Source{then}}},
		}
		mean, err := env.NewMean(in, false)
		poisson, err2 := env.NewPoisson(in, 3, env.PoissonOptions{})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for _, w := range []env.World{mean, poisson} {
			for range 59 {
				if _, err := w.Step(nil); err != nil {
					t.Fatal(err)
				}
			}
			want := delays.Harvest(30) // of epochs 30 to 59
			if begin == delays {
				want = delays.Harvest(60) - delays.Harvest(30)
			}
			if got := w.Owed(); math.Abs(got/want-1) > .5 || w == mean && math.Abs(got/want-1) > 1e-9 {
				t.Errorf("from law %q, %T: %v is owed; want %v", begin.Law, w, got, want)
			}
		}
	}
}
