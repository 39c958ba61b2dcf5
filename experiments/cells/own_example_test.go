package cells_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/cells"
	"ephemera/experiments/sweep"
	"ephemera/learner"
	"ephemera/learner/critic"
)

// byFound crawls by what a source brought per epoch waited, times its age.
type byFound struct {
	found, key []float64
	sel        *baselines.Selector
}

func (p *byFound) Select(dst []int, o *env.Online) []int {
	for i, v := range p.found {
		p.key[i] = v * float64(o.Age(i))
	}
	return p.sel.Top(dst, p.key)
}

// tracker learns these averages with a constant step.
type tracker struct {
	byFound
	set trackerSettings
}

// trackerSettings are what a sweep, train and bench can set.
type trackerSettings struct {
	Step  float64 `toml:"step"`  // of the averages; above 0 and at most 1
	First float64 `toml:"first"` // what a source is taken to bring before its first crawl
}

func (s *trackerSettings) Validate() error {
	if !(s.Step > 0 && s.Step <= 1) {
		return fmt.Errorf("step is %v; allowed is above 0 and at most 1", s.Step)
	}
	return nil
}

func newTracker(k experiments.Known, settings any) (learner.Learner, error) {
	t := &tracker{set: *settings.(*trackerSettings)}
	t.found = slices.Repeat([]float64{t.set.First}, len(k.Terms.Costs))
	t.key = make([]float64, len(k.Terms.Costs))
	t.sel = baselines.NewSelector(k.Terms.Costs, k.Terms.Budget)
	return t, nil
}

// Update implements env.Learner.
func (t *tracker) Update(crawls []env.Crawled, next *env.Online) {
	for _, c := range crawls {
		t.found[c.Source] += t.set.Step * (c.Interest/float64(c.Age) - t.found[c.Source])
	}
}

// The methods of learner.Learner.

func (t *tracker) Agent() env.Agent { return env.NewAgent[env.Online](t) }

func (t *tracker) Frozen() env.Agent {
	still := t.byFound
	still.found = slices.Clone(t.found)
	return env.NewAgent[env.Online](&still)
}

func (t *tracker) Fallbacks() int             { return 0 }
func (t *tracker) Metrics() []learner.Metric  { return nil }
func (t *tracker) State() any                 { return t.found }
func (t *tracker) SetState(data []byte) error { return json.Unmarshal(data, &t.found) }

func init() {
	experiments.Catalogue = append(experiments.Catalogue, experiments.Entry{
		Name: "tracker", About: "crawls by an average of what was found", Levels: []env.Level{env.LevelOnline},
		Settings: func(env.Level) any { return &trackerSettings{Step: 0.1, First: 100} },
		Train:    newTracker,
	})
}

// A sweep over the settings of a learner of one's own.
func Example_ownLearner() {
	c, err := sweep.Load(cells.New(), "own.toml", []byte(`
		seeds = 5
		steps = 500
		metric = "learning_ratio"
		instance.name = "lognormal:20"
		instance.budget = 4
		world.marks = "per-item"
		learner.algorithm = "tracker"
		learner.step = [0.01, 0.1, 1]
	`), nil)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "own")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if _, err := sweep.Run(context.Background(), c, sweep.Options{Dir: dir}); err != nil {
		log.Fatal(err)
	}
	s, err := sweep.ReadSummary(dir)
	if err != nil {
		log.Fatal(err)
	}
	for _, cell := range s.Cells {
		fmt.Println(cell.ID, cell.Mean[s.Column("learning_ratio")])
	}
	// Output:
	// step/0.01 0.7817 [0.7799, 0.7834]
	// step/0.1 0.8800 [0.8787, 0.8809]
	// step/1 0.9309 [0.9302, 0.9317]
}

// lossy is a world of one's own: that of the mean dynamics, but what is crawled
// in every tenth epoch is lost on its way.
type lossy struct{ *env.Mean }

func (w lossy) Step(crawl []int) ([]env.Crawled, error) {
	lost := w.View().Epoch%10 == 9
	crawls, err := w.Mean.Step(crawl)
	for i := range crawls {
		if lost {
			crawls[i].Interest = 0
		}
	}
	return crawls, err
}

// lossyScene opens it afresh for every policy.
func lossyScene(in env.Instance) experiments.Scene {
	return experiments.Scene{Instance: in, Open: func(seed uint64, level env.Level, overrun bool) (env.World, error) {
		w, err := env.NewMean(in, overrun)
		return lossy{w}, err
	}}
}

// Policies compared in a world of one's own.
func Example_ownWorld() {
	var contenders []experiments.Contender
	for _, name := range []string{"whittle", "greedy", "round-robin"} {
		e, err := experiments.Find(name)
		if err != nil {
			log.Fatal(err)
		}
		contenders = append(contenders, experiments.Contender{Entry: e})
	}
	compared, err := experiments.Comparison{
		Scenes: []experiments.Scene{lossyScene(env.Lognormal(20, 4, 1))}, Level: env.LevelModel,
		Contenders: contenders, Epochs: 1000, Seeds: 1, Seed: 1, Workers: 1,
	}.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range compared.Report.Results {
		fmt.Printf("%s %.1f\n", row.Policy, row.Reward)
	}
	// Output:
	// whittle 797.1
	// greedy 747.4
	// round-robin 596.9
}

// A feature map of one's own for the critic: of a source that is crawled
// whenever its age reaches 6, V grows by the average reward per epoch waited, so
// that the age alone is enough.
func Example_ownFeatures() {
	source := env.NewSource("a", 3, 0.2, 1)
	age := func(phi []float64, n int) { phi[0] = float64(n) / 6 }
	critic, err := critic.New(1, critic.Settings{Gamma: 0.1, Step: critic.Harmonic(), Inverse: critic.DefaultInverseSettings()})
	if err != nil {
		log.Fatal(err)
	}
	phi, next := make([]float64, 1), make([]float64, 1)
	for n, epoch := 1, 0; epoch < 20000; epoch++ {
		age(phi, n)
		reward := 0.0
		if n++; n > 6 {
			reward, n = source.MeanState(6), 1
		}
		age(next, n)
		critic.Step(phi, next, reward)
	}
	fmt.Printf("average reward %.2f, slope of V %.2f, exact %.2f\n", critic.Average(), critic.Weights()[0]/6, source.MeanState(6)/6)
	// Output:
	// average reward 1.75, slope of V 1.75, exact 1.75
}

// What docs/own-policy.md shows of these examples stands here word for word.
func TestOwnPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/own-policy.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("own_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Settings, worlds and feature maps of one's own\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d pieces of code; want 3", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(string(source), b[1]) {
			t.Errorf("not in the examples:\n%s", b[1])
		}
	}
}
