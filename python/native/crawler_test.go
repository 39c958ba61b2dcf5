package native

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/learner"
)

// built builds a crawler under seed 3.
func built(t *testing.T, instance, algorithm string) *crawler {
	t.Helper()
	r := experiments.Run{Steps: 1, Seed: 3, Learner: map[string]any{"algorithm": algorithm}}
	r.Instance.Name = instance
	c, err := newCrawler(r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// crawl has a crawler crawl a world for some epochs by its own books, as Python
// does, and returns the mean reward.
func crawl(t *testing.T, c *crawler, w env.World, epochs int) float64 {
	t.Helper()
	var total float64
	for range epochs {
		pick, err := c.selectSources(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.Step(pick)
		if err != nil {
			t.Fatal(err)
		}
		for k := range got {
			total += got[k].Interest
			got[k].Age = 0 // its own to find
		}
		if err := c.update(got, nil); err != nil {
			t.Fatal(err)
		}
	}
	return total / float64(epochs)
}

func poisson(in env.Instance) experiments.Scene {
	return experiments.PoissonScene(in, env.MarksConstant)
}

// A crawler that keeps its own books does what a run does.
func TestCrawlerSameAsRun(t *testing.T) {
	for _, c := range []struct {
		name, knowledge, instance string
		scene                     func(env.Instance) experiments.Scene
	}{
		{"whittle", "model", "paper", experiments.MeanScene},
		{"whittle", "model", "hosts:20", poisson}, // of which crawls fail
		{learner.Kinds[0].Name, "online", "paper", poisson},
		{"certainty", "online", "paper", poisson},
		{"forecast", "online", "hosts:20", poisson},
	} {
		const epochs, seed = 400, 3
		in, err := env.Named(c.instance, 0)
		if err != nil {
			t.Fatal(err)
		}
		scene := c.scene(in)
		entry, err := experiments.Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		level := env.Level(c.knowledge)
		want, err := scene.Play(context.Background(),
			experiments.Play{Entry: entry, Level: level, Seed: seed, Epochs: epochs})
		if err != nil {
			t.Fatal(err)
		}
		w, err := scene.Open(seed, level, false)
		if err != nil {
			t.Fatal(err)
		}
		got := crawl(t, built(t, c.instance, c.name+"@"+c.knowledge), w, epochs)
		if math.Abs(got/want.Learning.Reward-1) > 1e-12 {
			t.Errorf("%s with knowledge %s on %s earns %v, in a run %v",
				c.name, c.knowledge, c.instance, got, want.Learning.Reward)
		}
	}
}

// A learner that is saved and loaded goes on as if nothing had been.
func TestCrawlerSaved(t *testing.T) {
	c := built(t, "paper", "lspe")
	w, _ := experiments.PoissonScene(env.Paper(1), env.MarksConstant).Open(1, env.LevelOnline, false)
	crawl(t, c, w, 500)
	saved, err := c.save()
	if err != nil {
		t.Fatal(err)
	}
	again, err := loadCrawler(saved)
	if err != nil {
		t.Fatal(err)
	}
	for step := range 500 {
		a, err := c.selectSources(nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := again.selectSources(nil)
		if err != nil || !slices.Equal(a, b) {
			t.Fatalf("step %d: %v and %v (%v)", step, a, b, err)
		}
		var brought []env.Crawled
		for _, i := range a {
			items := []env.Item{{Age: .5, Interest: 100}}
			brought = append(brought, env.Crawled{Source: i, Interest: 100, Items: items})
		}
		for _, x := range []*crawler{c, again} {
			if err := x.update(brought, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	one, _ := c.save()
	two, _ := again.save()
	if one != two {
		t.Error("both went on alike, but are saved as different bytes")
	}
	if _, err := loadCrawler(saved[:len(saved)/2]); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("half a file: %v", err)
	}
}

// So does one whose owner crawls others than it chose.
func TestCrawlerSavedAfterOtherCrawls(t *testing.T) {
	for source := range 8 {
		c := built(t, "lognormal:8", "lspe")
		for range 3 {
			if _, err := c.selectSources(nil); err != nil {
				t.Fatal(err)
			}
			if err := c.update([]env.Crawled{{Source: source}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		saved, err := c.save()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := learner.Decode([]byte(saved)); err != nil {
			t.Errorf("source %d: %v", source, err)
		}
	}
}

func TestCrawlerRefusals(t *testing.T) {
	c := built(t, "paper", "lspe")
	for _, x := range []struct {
		crawls []env.Crawled
		next   []float64
		want   string
	}{
		{[]env.Crawled{{Source: 4}}, nil, "allowed are 0 to 3"},
		{[]env.Crawled{{Source: 1}, {Source: 1}}, nil, "named twice"},
	} {
		if err := c.update(x.crawls, x.next); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v: %v, want %q", x, err, x.want)
		}
		if now := c.books.View().Epoch; now != 0 {
			t.Fatalf("%v: the epoch is %d after a refusal", x, now)
		}
	}
	states := built(t, "paper", "whittle@observed")
	for _, tt := range []struct {
		want string
		next []float64
	}{{"0 states", nil}, {"3 states", []float64{1, 1, 1}}} {
		if err := states.update(nil, tt.next); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.next, err, tt.want)
		}
	}
	o := built(t, "paper", "lspe@online")
	err := o.update([]env.Crawled{{Source: 1, Interest: 2}}, nil)
	if err == nil || !strings.Contains(err.Error(), "names no items") {
		t.Errorf("a crawl that names no items: %v", err)
	}
}
