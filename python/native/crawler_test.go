package native

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ephemera/env"
	"ephemera/experiments"
	"ephemera/learner"
)

// crawler builds a crawler with changes by key.
func crawler(t *testing.T, changes map[string]any) *Crawler {
	t.Helper()
	m := map[string]any{"name": learner.Kinds[0].Name, "instance": "paper", "world": "mean", "knowledge": "model", "seed": 1}
	for k, v := range changes {
		m[k] = v
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCrawler(context.Background(), text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// crawl has a crawler crawl a world for some epochs by its own books, and
// returns the mean reward.
func crawl(t *testing.T, c *Crawler, w env.World, epochs int) float64 {
	t.Helper()
	var total float64
	for range epochs {
		pick, err := c.Select(Seen{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.Step(pick)
		if err != nil {
			t.Fatal(err)
		}
		var brought []Crawl
		for _, x := range got {
			total += x.Interest
			brought = append(brought, Crawl{int64(x.Source), x.Interest, x.Items})
		}
		if err := c.Update(brought, Seen{}); err != nil {
			t.Fatal(err)
		}
	}
	return total / float64(epochs)
}

// A crawler that keeps its own books does what a run does.
func TestCrawlerSameAsRun(t *testing.T) {
	for _, c := range []struct {
		name, knowledge string
		scene           func(env.Instance) experiments.Scene
	}{
		{"whittle", "model", experiments.MeanScene},
		{learner.Kinds[0].Name, "model", experiments.MeanScene},
		{learner.Kinds[0].Name, "online", func(in env.Instance) experiments.Scene {
			return experiments.PoissonScene(in, env.MarksConstant, 1)
		}},
		{"certainty", "online", func(in env.Instance) experiments.Scene {
			return experiments.PoissonScene(in, env.MarksConstant, 1)
		}},
	} {
		const epochs, seed = 400, 3
		scene := c.scene(env.Paper(1))
		entry, err := experiments.Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		level := env.Level(c.knowledge)
		want, err := scene.Play(context.Background(), experiments.Play{Entry: entry, Level: level, Seed: seed, Epochs: epochs})
		if err != nil {
			t.Fatal(err)
		}
		w, err := scene.Open(seed, level, false)
		if err != nil {
			t.Fatal(err)
		}
		got := crawl(t, crawler(t, map[string]any{"name": c.name, "knowledge": c.knowledge, "seed": seed}), w, epochs)
		if math.Abs(got/want.Learning.Reward-1) > 1e-12 {
			t.Errorf("%s with knowledge %s earns %v, in a run %v", c.name, c.knowledge, got, want.Learning.Reward)
		}
	}
}

// A learner that is saved and loaded goes on as if nothing had been.
func TestCrawlerSaved(t *testing.T) {
	c := crawler(t, nil)
	w, _ := env.NewMean(env.Paper(1), false)
	crawl(t, c, w, 500)
	data, err := c.Save()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), learner.StateFile)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	again, err := LoadCrawler(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for step := range 500 {
		a, err := c.Select(Seen{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := again.Select(Seen{})
		if err != nil || !slices.Equal(a, b) {
			t.Fatalf("step %d: %v and %v (%v)", step, a, b, err)
		}
		brought := []Crawl{{Source: int64(a[0]), Interest: 100}}
		for _, x := range []*Crawler{c, again} {
			if err := x.Update(brought, Seen{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	one, _ := c.Save()
	two, _ := again.Save()
	if !bytes.Equal(one, two) {
		t.Error("both went on alike, but are saved as different bytes")
	}
	if err := os.WriteFile(path, data[:len(data)/2], 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCrawler(path); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("half a file: %v", err)
	}
}

// Sources come and go: what was learned of the others stays, and what the
// learner earns is soon that of exact Whittle on the new instance.
func TestResize(t *testing.T) {
	for _, knowledge := range []string{"model", "online"} {
		c := crawler(t, map[string]any{"knowledge": knowledge, "instance": "lognormal:12", "budget": 2})
		in, err := env.Named("lognormal:12", 2)
		if err != nil {
			t.Fatal(err)
		}
		open := func(in env.Instance) env.World {
			var w env.World
			var err error
			if knowledge == "model" {
				w, err = env.NewMean(in, false)
			} else {
				w, err = env.NewPoisson(in, 5, env.PoissonOptions{Items: true})
			}
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		crawl(t, c, open(in), 2000)
		before := make([]float64, 12)
		if err := c.Thresholds(before); err != nil {
			t.Fatal(err)
		}
		price := c.Describe()["metrics"].(map[string]float64)["price"]
		extra := env.NewSource("new", 50, .3, 2)
		if err := c.Resize([]int{3, 0}, []env.Source{extra}); err != nil {
			t.Fatal(err)
		}
		after := make([]float64, 11)
		if err := c.Thresholds(after); err != nil {
			t.Fatal(err)
		}
		kept := slices.Concat(before[1:3], before[4:])
		longest := slices.Max(before)
		for i, was := range kept {
			if after[i] != was && was < longest*9/12 {
				t.Errorf("%s: threshold %v has become %v", knowledge, was, after[i])
			}
		}
		if now := c.Describe()["metrics"].(map[string]float64)["price"]; now != price {
			t.Errorf("%s: the price was %v and is %v", knowledge, price, now)
		}
		in.Sources = append(slices.Concat(in.Sources[1:3], in.Sources[4:]), extra)
		w := open(in)
		crawl(t, c, w, 1000)
		got := crawl(t, c, w, 1000)
		whittle, _ := experiments.Find("whittle")
		want, err := experiments.MeanScene(in).Play(context.Background(), experiments.Play{Entry: whittle, Level: env.LevelModel, Epochs: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if share := got / want.Learned.Reward; share < .97 {
			t.Errorf("%s: earns %.3f of Whittle after the change", knowledge, share)
		}
	}
}

func TestResizeRefusals(t *testing.T) {
	c := crawler(t, nil)
	for _, x := range []struct {
		drop []int
		add  []env.Source
		want string
	}{
		{[]int{4}, nil, "source 4; allowed are 0 to 3"},
		{nil, []env.Source{env.NewSource("1", 1, 1, 1)}, `a source "1" already`},
		{nil, []env.Source{env.NewSource("x", 1, -1, 1)}, "decay is -1"},
		{[]int{0, 1, 2, 3}, nil, "no source"},
	} {
		if err := c.Resize(x.drop, x.add); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, %v: %v, want %q", x.drop, x.add, err, x.want)
		}
		if c.Sources() != 4 {
			t.Fatal("a refusal changed the sources")
		}
	}
	if err := crawler(t, map[string]any{"name": "paper"}).Resize([]int{0}, nil); err == nil || !strings.Contains(err.Error(), "cannot change its sources") {
		t.Errorf("a joint critic: %v", err)
	}
}

func TestCrawlerRefusals(t *testing.T) {
	c := crawler(t, nil)
	nan := math.NaN()
	for _, x := range []struct {
		crawls []Crawl
		next   Seen
		want   string
	}{
		{[]Crawl{{Source: 4}}, Seen{}, "allowed are 0 to 3"},
		{[]Crawl{{Source: 1}, {Source: 1}}, Seen{}, "named twice"},
		{[]Crawl{{Source: 1, Interest: nan}}, Seen{}, "brought NaN"},
		{[]Crawl{{Source: 1, Items: []env.Item{{Age: -1}}}}, Seen{}, "item of age -1"},
		{nil, Seen{Age: []int64{1, 1, 1}}, "3 ages"},
		{nil, Seen{Age: []int64{1, 1, 1, 0}}, "age of source 3 is 0"},
		{nil, Seen{State: []float64{1, 1, 1, nan}}, "state of source 3 is NaN"},
	} {
		if err := c.Update(x.crawls, x.next); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v: %v, want %q", x, err, x.want)
		}
	}
}
