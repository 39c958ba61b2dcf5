package paper_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"pgregory.net/rapid"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
	"ephemera/experiments"
	"ephemera/learner/critic"
	"ephemera/learner/paper"
)

// update is the flag of all golden files of this directory; tests inside the
// package look it up by name.
var update = flag.Bool("update", false, "write the golden files")

func newPaper(t testing.TB, in env.Instance, set paper.Settings, seed uint64) *paper.Learner {
	t.Helper()
	p, err := paper.New(in, set, stream.New(seed, stream.Policy))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newMean(t testing.TB, in env.Instance, overrun bool) *env.Mean {
	t.Helper()
	w, err := env.NewMean(in, overrun)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// reading returns the settings of a reading.
func reading(t interface {
	Helper()
	Fatal(...any)
}, name string) paper.Settings {
	t.Helper()
	var set paper.Settings
	if err := set.SetReading(name); err != nil {
		t.Fatal(err)
	}
	return set
}

// play runs a policy and its learning for some epochs and returns what it
// crawled.
func play(t testing.TB, w env.World, a env.Agent, epochs int) (crawls [][]int) {
	t.Helper()
	for range epochs {
		crawl := a.Select(nil, w.View())
		crawls = append(crawls, crawl)
		got, err := w.Step(crawl)
		if err != nil {
			t.Fatal(err)
		}
		a.Update(got, w.View())
	}
	return crawls
}

// TestProbability: "We treat this as the probability of picking 1, i.e., the
// active mode" (section III): frequencies of crawls in a fixed state.
func TestProbability(t *testing.T) {
	in := env.Paper(1)
	set := paper.DefaultSettings()
	set.Kappa, set.Start = .01, .3
	policy := newPaper(t, in, set, 5)
	o := &newMean(t, in, true).View().Model
	var count [4]float64
	const draws = 40000
	for range draws {
		for _, i := range policy.Select(nil, o) {
			count[i]++
		}
	}
	for i, s := range in.Sources {
		f := 1 / (1 + math.Exp(-.01*(s.Gain()-(s.Gain()+.3*(s.Ceiling()-s.Gain()))-.5)))
		if got := count[i] / draws; math.Abs(got-f) > 5*math.Sqrt(f*(1-f)/draws) {
			t.Errorf("source %d is crawled with frequency %v; want %v", i+1, got, f)
		}
	}
}

// TestBudget: "the actual operative policy is an index policy which
// deterministically picks at each time the N₀ sites to crawl" (section III): those
// with the greatest margins.
func TestBudget(t *testing.T) {
	for budget := 1.; budget <= 3; budget++ {
		in := env.Paper(budget)
		set := paper.DefaultSettings()
		set.Act = "budget"
		p, w := newPaper(t, in, set, 1), newMean(t, in, false)
		for range 200 {
			least, most := math.Inf(1), math.Inf(-1) // margin of those who are picked, and of the others
			x := w.View().Mean
			margin := func(i int) float64 { return x[i] - p.Threshold(i, floats.Sum(x)-x[i]) }
			crawl := p.Select(nil, &w.View().Model)
			for i := range x {
				if slices.Contains(crawl, i) {
					least = min(least, margin(i))
				} else {
					most = max(most, margin(i))
				}
			}
			if len(crawl) != int(budget) || least < most {
				t.Fatalf("budget %v: %v are picked, with margins from %v; the others have up to %v",
					budget, crawl, least, most)
			}
			got, err := w.Step(crawl)
			if err != nil {
				t.Fatal(err)
			}
			p.Update(got, &w.View().Model)
		}
	}
}

// TestFrozen: the learned policy does not change, and leaves the learner as it
// is.
func TestFrozen(t *testing.T) {
	in := env.Paper(2)
	p := newPaper(t, in, paper.DefaultSettings(), 3)
	play(t, newMean(t, in, true), env.NewAgent[env.Model](p), 500)
	before := p.State()
	frozen := p.Frozen()
	w := newMean(t, in, false)
	first := play(t, w, env.NewAgent(frozen), 100)
	if !reflect.DeepEqual(before, p.State()) {
		t.Error("running the frozen policy changed the learner")
	}
	play(t, newMean(t, in, true), env.NewAgent[env.Model](p), 500)
	if reflect.DeepEqual(before.Q, p.State().Q) {
		t.Error("500 epochs of learning changed nothing")
	}
	if second := play(t, newMean(t, in, false), env.NewAgent(frozen), 100); !reflect.DeepEqual(first, second) {
		t.Error("learning on changed the frozen policy")
	}
	var dst []int
	w = newMean(t, in, false)
	if n := testing.AllocsPerRun(100, func() { dst = frozen.Select(dst[:0], &w.View().Model) }); n != 0 {
		t.Errorf("the frozen policy allocates %v times", n)
	}
}

// TestResume: a learner that was stored as JSON and taken up again does the
// same, bit for bit, as one that ran on.
func TestResume(t *testing.T) {
	in := env.Paper(1)
	sets := []paper.Settings{reading(t, "crawled")}
	sets[0].Act = "budget"
	for _, name := range paper.DefaultSettings().Readings() {
		sets = append(sets, reading(t, name))
	}
	for _, set := range sets {
		overrun := set.Act == "probabilistic"
		for _, stop := range []int{0, 1, 70, 999} {
			p := newPaper(t, in, set, 4)
			w := newMean(t, in, overrun)
			play(t, w, env.NewAgent[env.Model](p), stop)
			text, err := json.Marshal(p.State())
			if err != nil {
				t.Fatal(err)
			}
			var st paper.State
			if err := json.Unmarshal(text, &st); err != nil {
				t.Fatal(err)
			}
			q := newPaper(t, in, set, 77) // another stream, which the state replaces
			v := newMean(t, in, overrun)
			play(t, v, env.NewAgent[env.Model](newPaper(t, in, set, 4)), stop)
			if err := q.SetState(st); err != nil {
				t.Fatal(err)
			}
			one := play(t, w, env.NewAgent[env.Model](p), 600)
			two := play(t, v, env.NewAgent[env.Model](q), 600)
			if !reflect.DeepEqual(one, two) || !reflect.DeepEqual(p.State(), q.State()) {
				t.Errorf("%+v: after a stop at epoch %d the learner went another way", set, stop)
			}
		}
	}
}

func TestStateErrors(t *testing.T) {
	for _, tt := range []struct {
		want  string
		spoil func(*paper.State)
	}{
		{"stream", func(s *paper.State) { s.Stream = s.Stream[:3] }},
		{"critic: weights has 13", func(s *paper.State) { s.Critic.Weights = s.Critic.Weights[:13] }},
	} {
		t.Run(tt.want, func(t *testing.T) {
			p := newPaper(t, env.Paper(1), reading(t, "ages"), 1)
			st := p.State()
			tt.spoil(&st)
			if err := p.SetState(st); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error %v; want one that begins with %q", err, tt.want)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		want  string
		spoil func(*paper.Settings, *env.Instance)
	}{
		{"kappa is NaN; allowed", func(s *paper.Settings, _ *env.Instance) { s.Kappa = math.NaN() }},
		{"kappa_over is -1; allowed", func(s *paper.Settings, _ *env.Instance) { s.KappaOver = -1 }},
		{"shift is NaN; allowed", func(s *paper.Settings, _ *env.Instance) { s.Shift = math.NaN() }},
		{"degree is 7; allowed", func(s *paper.Settings, _ *env.Instance) { s.Degree = 7 }},
		{"start is 1.5; allowed", func(s *paper.Settings, _ *env.Instance) { s.Start = 1.5 }},
		{"b: step", func(s *paper.Settings, _ *env.Instance) { s.B = critic.Constant(1) }},
		{`reward is "literal"; allowed`, func(s *paper.Settings, _ *env.Instance) { s.Price = "learned" }},
		{`features is "x"; allowed`, func(s *paper.Settings, _ *env.Instance) { s.Features = "x" }},
		{"epsilon is -Inf; allowed", func(s *paper.Settings, _ *env.Instance) { s.Epsilon = math.Inf(-1) }},
		{`instance "paper": budget`, func(_ *paper.Settings, in *env.Instance) { in.Budget = 0 }},
		{`instance "paper", source 2`, func(_ *paper.Settings, in *env.Instance) { in.Sources[1].Interest = 1e40 }},
	} {
		t.Run(tt.want, func(t *testing.T) {
			set, in := paper.DefaultSettings(), env.Paper(1)
			tt.spoil(&set, &in)
			_, err := paper.New(in, set, stream.New(1))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v; want one line that begins with %q", err, tt.want)
			}
		})
	}
}

// TestTooManyFeatures: what no memory holds is refused before it is asked for.
func TestTooManyFeatures(t *testing.T) {
	_, err := paper.New(env.Lognormal(5000, 10, 1), paper.DefaultSettings(), stream.New(1))
	want := "5000 sources to degree 2 make 10000 features; allowed for this learner are 8192"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v; want %q", err, want)
	}
}

// TestStepAllocations: one whole step allocates nothing, fallbacks included.
func TestStepAllocations(t *testing.T) {
	for _, name := range paper.DefaultSettings().Readings() {
		set := reading(t, name)
		in := env.Paper(1)
		p := newPaper(t, in, set, 1)
		w := newMean(t, in, true)
		agent := env.NewAgent[env.Model](p)
		crawl := make([]int, 0, 4)
		step := func() {
			crawl = agent.Select(crawl[:0], w.View())
			got, err := w.Step(crawl)
			if err != nil {
				t.Fatal(err)
			}
			agent.Update(got, w.View())
		}
		for range 10 {
			step()
		}
		if n := testing.AllocsPerRun(2000, step); n != 0 {
			t.Errorf("%s: a step allocates %v times", name, n)
		}
		if n := p.Critic().Fallbacks(); name == "inverse" && n == 0 {
			t.Errorf("no fallback was among the steps")
		}
	}
}

// TestExtremes: whatever the instance and the settings, within what they allow,
// the learner's state stays finite and it crawls what exists.
func TestExtremes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := env.Instance{ID: "extreme"}
		exponent := rapid.Float64Range(-27, 24)
		scale := math.Pow(10, exponent.Draw(t, "interest"))
		for i := range rapid.IntRange(1, 6).Draw(t, "sources") {
			rate := rapid.Float64Range(0, 1000).Draw(t, "rate")
			decay := rapid.Float64Range(.01, 20).Draw(t, "decay")
			s := env.NewSource(fmt.Sprint(i), rate, decay, scale*rapid.Float64Range(.1, 10).Draw(t, "factor"))
			if c := s.Ceiling(); c < 1e-30 {
				s.Rate = 0
			}
			in.Sources = append(in.Sources, s)
		}
		in.Budget = 1
		set := reading(t, rapid.SampledFrom(paper.DefaultSettings().Readings()).Draw(t, "reading"))
		pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
		set.Kappa = math.Pow(10, rapid.Float64Range(-20, 20).Draw(t, "kappa"))
		set.Gamma = rapid.Float64Range(.001, 1.99).Draw(t, "gamma")
		set.Start = rapid.Float64Range(0, 1).Draw(t, "start")
		set.A = critic.Constant(math.Pow(10, rapid.Float64Range(-5, 5).Draw(t, "a")))
		set.B = critic.Constant(rapid.Float64Range(.001, .999).Draw(t, "b"))
		set.Act = pick("act", "probabilistic", "budget")
		set.Reward = pick("reward", "crawled", "literal")
		if set.Price = "none"; set.Reward == "crawled" {
			set.Price = pick("price", "none", "learned")
		}
		set.Margin = pick("margin", "state", "unit", "age")
		set.Gradient = pick("gradient", "sampled", "expected", "relative")
		set.Features = pick("features", "unit", "raw")
		set.Tikhonov = pick("tikhonov", "fallback", "always")
		set.Delta = math.Pow(10, rapid.Float64Range(-30, 10).Draw(t, "delta"))
		set.Epsilon = math.Pow(10, rapid.Float64Range(-15, 3).Draw(t, "epsilon"))
		p, err := paper.New(in, set, stream.New(1, stream.Policy))
		if err != nil {
			t.Fatal(err)
		}
		w, err := env.NewMean(in, true)
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			got, err := w.Step(p.Select(nil, &w.View().Model))
			if err != nil {
				t.Fatal(err)
			}
			p.Update(got, &w.View().Model)
		}
		if _, err := json.Marshal(p.State()); err != nil { // refuses what is not finite
			t.Fatal(err)
		}
	})
}

// TestGolden holds the first steps of the learner to what they were, to the
// last bit. It is tied to an architecture: others may fuse multiply and add.
func TestGolden(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the golden trajectory is one of amd64")
	}
	var b strings.Builder
	for _, name := range paper.DefaultSettings().Readings() {
		const seed = 1
		in := env.Paper(1)
		p := newPaper(t, in, reading(t, name), seed)
		w := newMean(t, in, true)
		agent := env.NewAgent[env.Model](p)
		for n := range 1000 {
			crawl := play(t, w, agent, 1)[0]
			if n < 20 || n%100 == 99 {
				fmt.Fprintln(&b, name, n, crawl, p.Critic().Average(), p.State().Critic.Weights[0], p.State().Q[0])
			}
		}
		fmt.Fprintf(&b, "%s %d fallbacks\n", name, p.Critic().Fallbacks())
	}
	file := filepath.Join("testdata", "paper.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, old := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(got), len(old)) {
		if got[i] != old[i] {
			t.Fatalf("line %d\n got %s\nwant %s", i+1, got[i], old[i])
		}
	}
	if len(got) != len(old) {
		t.Fatalf("%d lines; want %d", len(got), len(old))
	}
}

// TestConformance runs the learner and its frozen policy through the check that
// every policy passes.
func TestConformance(t *testing.T) {
	for _, in := range []env.Instance{env.Paper(1), env.Paper(2)} {
		in.Sources[1].Cost = .5
		budget := paper.DefaultSettings()
		budget.Act = "budget"
		envtest.Policy(t, in, func() env.Policy[env.Model] { return newPaper(t, in, budget, 1) })
		envtest.OverrunPolicy(t, in, func() env.Policy[env.Model] {
			return newPaper(t, in, paper.DefaultSettings(), 1)
		})
		envtest.Policy(t, in, func() env.Policy[env.Model] {
			return newPaper(t, in, paper.DefaultSettings(), 1).Frozen()
		})
	}
}

// TestFrozenWithinBudget: whatever was learned, the frozen policy keeps the
// budget and earns no more than the Lagrangian bound.
func TestFrozenWithinBudget(t *testing.T) {
	in := env.Paper(1)
	bound, _ := index.Bound(in)
	for _, name := range paper.DefaultSettings().Readings() {
		_, p := runPaper(t, in, reading(t, name), 1, 1000)
		out, err := experiments.Loop(newMean(t, in, false), env.NewAgent(p.Frozen()), 1000, nil)
		if err != nil {
			t.Fatal(err)
		}
		if out.Over != 0 || out.Reward > bound*1.001 || out.Reward <= 0 {
			t.Errorf("%s: %v of the epochs were over the budget and earned %v; the bound is %v",
				name, out.Over, out.Reward, bound)
		}
	}
}

// TestRoomOfHosts: within the budget no host is crawled more often than it has room for, while
// the learner learns and as what it learned.
func TestRoomOfHosts(t *testing.T) {
	in := env.Hosts(15, 6, 1)
	set := paper.DefaultSettings()
	set.Act = "budget"
	for _, learned := range []bool{false, true} {
		w, err := env.NewPoisson(in, 1, env.PoissonOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var p env.Policy[env.Model] = newPaper(t, in, set, 1)
		if learned {
			p = p.(*paper.Learner).Frozen()
		}
		for range 50 {
			crawl, at := p.Select(nil, &w.View().Model), map[int32]int{}
			for _, i := range crawl {
				at[in.Terms().Hosts[i]]++
			}
			if len(at) < len(crawl) {
				t.Fatalf("learned %t: crawls of each host are %v; want one at most", learned, at)
			}
			if _, err := w.Step(crawl); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestReadings: each reading differs from the one before, and the first is the
// default.
func TestReadings(t *testing.T) {
	last := paper.Settings{}
	for _, name := range paper.DefaultSettings().Readings() {
		set := reading(t, name)
		if err := set.Validate(); err != nil || set.Reading != name {
			t.Errorf("%s calls itself %q; %v", name, set.Reading, err)
		}
		last.Reading = name
		if set == last {
			t.Errorf("%s is the reading before it", name)
		}
		last = set
	}
	if set := reading(t, "printed"); set != paper.DefaultSettings() {
		t.Errorf("the reading printed is %+v, not the default", set)
	}
}
