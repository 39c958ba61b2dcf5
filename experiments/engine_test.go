package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ephemera/env"
	"ephemera/learner"
)

// newRun returns a run of few epochs with those settings.
func newRun(t testing.TB, settings map[string]any) Run {
	t.Helper()
	r := NewRun()
	r.Steps = 300
	for key, v := range settings {
		if err := r.Set(key, v); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// jobsOf resolves runs.
func jobsOf(t testing.TB, runs ...Run) (jobs []*Job) {
	t.Helper()
	for _, r := range runs {
		j, err := new(Engine).Resolve(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// performRun resolves and performs a run.
func performRun(e *Engine, r Run) (*Record, error) {
	c, err := e.Resolve(context.Background(), r)
	if err != nil {
		return nil, err
	}
	return e.perform(context.Background(), c, nil)
}

// A record holds what the run earned next to what exact Whittle earned in the same
// world and epochs.
func TestPerform(t *testing.T) {
	r := newRun(t, map[string]any{
		"learner.algorithm": "greedy", "instance.name": "lognormal:10", "instance.budget": 2,
		"world.kind": "poisson", "evaluation": 100,
	})
	rec, err := performRun(new(Engine), r)
	if err != nil {
		t.Fatal(err)
	}
	in, err := env.Named("lognormal:10", 2)
	if err != nil {
		t.Fatal(err)
	}
	earned := map[string][2]float64{}
	for _, name := range []string{"greedy", "whittle"} {
		for k, epochs := range []int{300, 100} {
			play := Play{Entry: find(t, name)[0], Level: env.LevelModel, Seed: r.Seed, Epochs: epochs}
			played, err := PoissonScene(in, env.MarksConstant).Play(context.Background(), play)
			if err != nil {
				t.Fatal(err)
			}
			both := earned[name]
			both[k] = played.Learning.Reward
			earned[name] = both
		}
	}
	for k, f := range []Figures{rec.Learning, rec.Learned} {
		if f.Reward != earned["greedy"][k] || f.Whittle != earned["whittle"][k] ||
			f.OfWhittle.Value() != f.Reward/f.Whittle || f.OfBound.Value() != f.Reward/rec.Bound.Value() {
			t.Errorf("part %d: %+v, want rewards of greedy and Whittle %v", k, f, earned)
		}
	}
	var sum float64
	last := 0
	for _, p := range rec.Curve {
		sum += p.Reward * float64(p.Epoch-last)
		last = p.Epoch
	}
	if last != 300 || math.Abs(sum/300-rec.Learning.Reward) > 1e-9 {
		t.Errorf("the curve ends at epoch %d with a mean of %v, the run at 300 with %v",
			last, sum/300, rec.Learning.Reward)
	}
}

// Equal runs resolve to the same settings, and what is resolved stays as it is,
// through JSON as well.
func TestResolve(t *testing.T) {
	var e Engine
	resolve := func(r Run) (Run, string) {
		t.Helper()
		resolved, err := e.Resolve(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		hash, err := e.Hash(resolved)
		if err != nil {
			t.Fatal(err)
		}
		return resolved.Run, hash
	}
	file := filepath.Join(t.TempDir(), "two.toml")
	write := func(rate string) {
		text := strings.Replace(`budget = 1
[[source]]
name = "a"
rate = RATE
decay = 0.1
interest = 1
[[source]]
name = "b"
rate = 2
decay = 0.1
interest = 1
`, "RATE", rate, 1)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	_, default1 := resolve(newRun(t, nil))
	_, spelt := resolve(newRun(t, map[string]any{
		"learner.algorithm": Catalogue()[0].Name, "instance.budget": 1, "instance.name": "paper",
	}))
	if default1 != spelt {
		t.Errorf("the default run has hash %s, spelt out %s", default1, spelt)
	}
	for _, settings := range []map[string]any{
		{"learner.algorithm": "paper", "learner.reading": "ages", "learner.a": "0.5,500,1"},
		{"learner.algorithm": "whittle@observed", "world.marks": "per-item"},
		{"instance.name": file},
	} {
		r, hash := resolve(newRun(t, settings))
		if hash == default1 {
			t.Errorf("%v has the hash of the default", settings)
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back Run
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if again, same := resolve(back); same != hash || !reflect.DeepEqual(again, r) {
			t.Errorf("%v resolves to\n%+v, and that to\n%+v", settings, r, again)
		}
	}
	for _, key := range []string{"instance.name", "instance.believe"} {
		for _, name := range []string{file, file + ":power"} {
			run := newRun(t, map[string]any{"instance.name": file, key: name})
			write("1")
			e = Engine{}
			_, before := resolve(run)
			write("3")
			e = Engine{}
			if _, after := resolve(run); after == before {
				t.Errorf("%s %s: another file of the same name has the same hash", key, name)
			}
		}
	}
}

// The error of a setting names it, what was found and what is allowed.
func TestResolveRefuses(t *testing.T) {
	for _, x := range []struct {
		key   string
		value any
		want  string
	}{
		{"colour", "red", "allowed are evaluation"},
		{"steps", 1.5, "a whole number is needed"},
		{"steps", 0, "1 epoch or more"},
		{"evaluation", -1, "0 epochs or more"},
		{"seed", -1, "0 or more"},
		{"learner.algorithm", "gold", "allowed are lspe"},
		{"learner.algorithm", "lspe@all", "allowed"},
		{"learner.algorithm", "whittle-packed", "all cost the same"},
		{"learner.colour", "red", "allowed are features"},
		{"learner.kappa", "steep", "a number is needed"},
		{"learner.kappa", -1, "0.1 or more"},
		{"instance.name", "gold", "FAMILY:N"},
		{"instance.budget", 1e9, "budget"},
		{"world.kind", "flat", "allowed are mean, pages, poisson"},
		{"world.kind", "replay", "world.trace"},
		{"world.marks", "odd", "constant"},
		{"world.epoch", "2h", "replay"},
	} {
		r := NewRun()
		err := r.Set(x.key, x.value)
		if err == nil {
			_, err = new(Engine).Resolve(context.Background(), r)
		}
		if !errors.As(err, new(*SettingError)) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s = %v: error %v; want %q", x.key, x.value, err, x.want)
		}
	}
}

// What becomes known after the end of a recording changes no crawl of a learner, whether
// it takes up late worth or whole harvests; what is known at once does.
func TestFeedbackDelay(t *testing.T) {
	dir := t.TempDir()
	recording := func(name string, worth func(i, hour int) int) map[string]any {
		text := "source,published,utility\n"
		for hour := range 800 {
			for i := range 6 {
				if hour%(i+2) == 0 {
					text += fmt.Sprintf("%d,%d,%d\n", i, 3600*hour, worth(i, hour))
				}
			}
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return map[string]any{"world.trace": path, "steps": 1 << 20}
	}
	one := recording("one.csv", func(i, hour int) int { return 1 + i })
	// In the measured part others publish more.
	two := recording("two.csv", func(i, hour int) int { return 1 + i + hour/400*(4-2*i) })
	even := recording("even.csv", func(i, hour int) int { return 1 })
	resolve := func(settings map[string]any, algorithm, feedback string) (c *Job, crawls string) {
		settings["learner.algorithm"], settings["world.feedback"] = algorithm, feedback
		c, err := new(Engine).Resolve(context.Background(), newRun(t, settings))
		if err != nil {
			t.Fatal(err)
		}
		p := c.play()
		p.Watch = func(learner.Learner) Watcher {
			return func(_ int, _ float64, got []env.Crawled) error {
				for _, c := range got {
					crawls += fmt.Sprint(c.Source)
				}
				return nil
			}
		}
		if _, err = c.Scene.Play(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		return c, crawls
	}
	for _, algorithm := range []string{"forecast", "lspe"} {
		for _, tt := range []struct {
			feedback string
			same     bool
		}{{"late:1000h", true}, {"late:48h", false}, {"now", false}, {"never", true}} {
			_, x := resolve(one, algorithm, tt.feedback)
			_, y := resolve(two, algorithm, tt.feedback)
			if (x == y) != tt.same {
				t.Errorf("%s, feedback %s: the same crawls: %v; want %v", algorithm, tt.feedback, x == y, tt.same)
			}
		}
	}
	for _, x := range []struct {
		settings               map[string]any
		algorithm, given, want string
	}{
		{one, "forecast", "", "late:48h"},
		{one, "whittle@observed", "", "now"},
		{one, "whittle", "never", "never"},
		{even, "forecast", "now", ""},
	} {
		if c, _ := resolve(x.settings, x.algorithm, x.given); c.World.FeedbackDelay != x.want {
			t.Errorf("feedback %q, %s: %q; want %q", x.given, x.algorithm, c.World.FeedbackDelay, x.want)
		}
	}
	one["learner.algorithm"], one["world.feedback"] = "whittle@observed", "late:48h"
	_, err := new(Engine).Resolve(context.Background(), newRun(t, one))
	if err == nil || !strings.Contains(err.Error(), "allowed are now and never") {
		t.Errorf("the state shows what is not known yet: %v", err)
	}
}

// Runs bring the same bytes on any number of workers, over shards, and when some
// were there before; a record that was cut off, or lacks a figure, is made again.
func TestPerformAll(t *testing.T) {
	var runs []Run
	for _, algorithm := range []string{"paper", "lspe", "whittle", "round-robin"} {
		for seed := range 3 {
			runs = append(runs, newRun(t, map[string]any{"learner.algorithm": algorithm, "seed": seed}))
		}
	}
	perform := func(b Batch) *Performed[Record] {
		t.Helper()
		out, err := new(Engine).PerformAll(context.Background(), jobsOf(t, runs...), b)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	files := func(dir string) map[string]string {
		all := map[string]string{}
		paths, _ := filepath.Glob(filepath.Join(dir, "runs", "*"))
		for _, p := range paths {
			data, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(p)] = string(data)
		}
		return all
	}
	one, shards := t.TempDir(), t.TempDir()
	if out := perform(Batch{Dir: one, Workers: 1}); out.Ran != len(runs) {
		t.Fatalf("%d runs, want %d", out.Ran, len(runs))
	}
	want := files(one)
	if len(want) != len(runs) {
		t.Fatalf("%d files, want %d", len(want), len(runs))
	}
	for i := range 3 {
		perform(Batch{Dir: shards, Workers: 2, Shard: Shard{i, 3}})
	}
	if !reflect.DeepEqual(files(shards), want) {
		t.Error("three shards wrote other bytes than one process")
	}
	for name := range want {
		if err := os.Truncate(filepath.Join(shards, "runs", name), 100); err != nil {
			t.Fatal(err)
		}
		break
	}
	out := perform(Batch{Dir: shards, Workers: 2})
	if out.Ran != 1 || !reflect.DeepEqual(files(shards), want) {
		t.Errorf("a record that was cut off had %d runs repeated, or left other bytes", out.Ran)
	}
	for name, text := range want {
		file := filepath.Join(shards, "runs", name)
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, `"overrun":`, `"else":`)), 0o644); err != nil {
			t.Fatal(err)
		}
		break
	}
	if out = perform(Batch{Dir: shards, Workers: 2}); out.Ran != 1 || !reflect.DeepEqual(files(shards), want) {
		t.Errorf("a record that lacks a figure had %d runs repeated, or left other bytes", out.Ran)
	}
	for i, rec := range perform(Batch{Workers: 2}).Records {
		data, err := json.Marshal(rec)
		kept, err2 := json.Marshal(out.Records[i])
		if err != nil || err2 != nil || !bytes.Equal(data, kept) {
			t.Errorf("run %d brings other bytes when it is read: %v %v", i, err, err2)
		}
	}
}

// A run that fails does not stop the others.
func TestPerformAllFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slow.toml") // whose optimum takes too many states
	text := "budget = 1\n"
	for _, name := range []string{"a", "b", "c"} {
		text += "[[source]]\nname = '" + name + "'\nrate = 1\ndecay = 1e-7\ninterest = 1\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	runs := []Run{
		newRun(t, nil),
		newRun(t, map[string]any{"learner.algorithm": "optimum", "instance.name": file}),
		newRun(t, map[string]any{"seed": 2}),
	}
	out, err := new(Engine).PerformAll(context.Background(), jobsOf(t, runs...), Batch{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, rec := range out.Records {
		if (rec == nil) != (i == 1) || (out.Errors[i] == nil) != (i != 1) {
			t.Errorf("run %d: %v", i, out.Errors[i])
		}
	}
}

// What a run has learned is there when its record is: of another run's in the same
// place none is made use of.
func TestSavedOfAnotherRun(t *testing.T) {
	dir := t.TempDir()
	b := Batch{Dir: dir, Workers: 1, Saved: filepath.Join(dir, "state.json")}
	var states []string
	for _, steps := range []int{300, 200, 300} {
		run := newRun(t, map[string]any{"steps": steps})
		for _, ran := range []int{1, 0} {
			out, err := new(Engine).PerformAll(context.Background(), jobsOf(t, run), b)
			if err != nil || out.Ran != ran || out.Records[0].Learning.Epochs != steps {
				t.Fatalf("%d steps: %+v, %v", steps, out, err)
			}
		}
		data, err := os.ReadFile(b.Saved)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, string(data))
	}
	if states[0] != states[2] || states[0] == states[1] {
		t.Error("the states are not those of 300, 200 and 300 steps")
	}
}
