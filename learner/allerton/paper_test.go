package allerton_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
	"ephemera/learner/allerton"
	"ephemera/learner/lspe"
)

// update is the flag of all golden files of this directory; tests inside the
// package look it up by name.
var update = flag.Bool("update", false, "write the golden files")

func newPaper(t testing.TB, in env.Instance, set allerton.Settings, seed uint64) *allerton.Learner {
	t.Helper()
	p, err := allerton.New(in, set, stream.New(seed, stream.Policy))
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

// TestAgainstPrinted follows section IV word for word beside the learner: the
// features, f, the score (8), the ascent (9) and the critic, with dense
// matrices. Crawls are those of the learner.
func TestAgainstPrinted(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*allerton.Settings)
	}{
		{"default", func(*allerton.Settings) {}},
		{"average", func(s *allerton.Settings) { s.B = lspe.Harmonic() }},
		{"literal", func(s *allerton.Settings) { s.Reward = "literal" }},
		{"cut", func(s *allerton.Settings) { s.Projection = "cut" }},
		{"budget", func(s *allerton.Settings) { s.Act = "budget" }},
		{"raw", func(s *allerton.Settings) { s.Features = "raw"; s.Epsilon = 10; s.Condition = 1e12 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := env.Paper(1)
			set := allerton.DefaultSettings()
			set.A.Scale, set.B.Scale = 1e-4, .02 // slow, so that rounding is not amplified
			set.Kappa, set.Shift = .02, 3        // few saturated
			c.set(&set)
			p := newPaper(t, in, set, 1)
			w := newMean(t, in, true)

			const n, l = 4, 14
			var u, ceiling [n]float64
			var q [n][3]float64
			for i, s := range in.Sources {
				u[i], ceiling[i] = s.Gain(), s.Ceiling()
				q[i][0] = u[i] + set.Start*(ceiling[i]-u[i])
			}
			features := func(x []float64) *mat.VecDense {
				var z, phi []float64
				for i, v := range x {
					if set.Features == "unit" {
						v /= ceiling[i]
					}
					z = append(z, v)
				}
				phi = append(phi, z...)
				for i := range z {
					for j := i; j < n; j++ {
						phi = append(phi, z[i]*z[j])
					}
				}
				return mat.NewVecDense(l, phi)
			}
			a, b, bb, r := mat.NewDense(l, l, nil), mat.NewDense(l, l, nil), mat.NewVecDense(l, nil), mat.NewVecDense(l, nil)
			for i := range l {
				b.Set(i, i, set.Epsilon)
			}
			var eta float64
			for step := 1; step <= 300; step++ {
				x := append([]float64(nil), w.View().Mean...)
				crawl := p.Select(nil, &w.View().Model)
				got, err := w.Step(crawl)
				if err != nil {
					t.Fatal(err)
				}
				p.Update(got, &w.View().Model)
				xNext := w.View().Mean

				var nu [n]float64
				var reward float64
				for _, i := range crawl {
					nu[i] = 1
				}
				for i := range x {
					if set.Reward == "literal" || nu[i] == 1 {
						reward += x[i]
					}
				}
				phi, next := features(x), features(xNext)
				v := mat.Dot(r, next)
				for i := range q {
					var s float64
					for k := range x {
						if k != i {
							s += x[k]
						}
					}
					raw := q[i][0] + q[i][1]*s + q[i][2]*s*s
					threshold := math.Min(math.Max(raw, u[i]), ceiling[i])
					if set.Projection == "cut" && threshold != raw {
						continue
					}
					f := 1 / (1 + math.Exp(-set.Kappa*(x[i]-threshold-set.Shift)))
					for j, psi := range []float64{1, s, s * s} {
						q[i][j] += set.A.At(step) * set.Kappa * psi * (f - nu[i]) * v
					}
				}
				beta := set.B.At(step)
				var d, e, y mat.VecDense
				d.SubVec(next, phi)
				b.Scale(1-beta, b)
				b.RankOne(b, beta, phi, phi)
				a.Scale(1-beta, a)
				a.RankOne(a, beta, phi, &d)
				bb.ScaleVec(1-beta, bb)
				bb.AddScaledVec(bb, beta*(reward-eta), phi)
				e.MulVec(a, r)
				e.AddVec(&e, bb)
				if err := y.SolveVec(b, &e); err != nil {
					if _, illConditioned := err.(mat.Condition); !illConditioned {
						t.Fatal(err)
					}
				}
				r.AddScaledVec(r, set.Gamma, &y)
				eta += beta * (reward - eta)

				size := mat.Norm(r, math.Inf(1))
				for m, got := range p.Critic().Weights() {
					if math.Abs(got-r.AtVec(m)) > 1e-5*size {
						t.Fatalf("step %d: r[%d] is %v; want %v", step, m, got, r.AtVec(m))
					}
				}
				for i, row := range p.Thresholds().Q {
					for j, got := range row {
						if math.Abs(got-q[i][j]) > 1e-5*(math.Abs(q[i][j])+1e-3) {
							t.Fatalf("step %d: q%d of source %d is %v; want %v", step, j, i+1, got, q[i][j])
						}
					}
				}
				if math.Abs(p.Critic().Average()-eta) > 1e-9*eta {
					t.Fatalf("step %d: η is %v; want %v", step, p.Critic().Average(), eta)
				}
			}
			if n := p.Counts().Fallbacks; n != 0 {
				t.Errorf("%d fallbacks; the printed recursion has none", n)
			}
		})
	}
}

// TestProbability: "We treat this as the probability of picking 1, i.e., the
// active mode" (section III): frequencies of crawls in a fixed state.
func TestProbability(t *testing.T) {
	in := env.Paper(1)
	set := allerton.DefaultSettings()
	set.Kappa, set.Start = .01, .3
	p := newPaper(t, in, set, 5)
	policy := p.Policy(stream.New(9, stream.Policy))
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
// deterministically picks at each time the N₀ sites to crawl" (section III).
func TestBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := env.Paper(1)
		cheapest := 2.0
		for i := range in.Sources {
			in.Sources[i].Cost = rapid.Float64Range(.2, 2).Draw(t, "cost")
			cheapest = min(cheapest, in.Sources[i].Cost)
		}
		in.Budget = rapid.Float64Range(cheapest, in.TotalCost()).Draw(t, "budget")
		set := allerton.DefaultSettings()
		set.Act = "budget"
		p, err := allerton.New(in, set, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := env.NewMean(in, false)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			crawl := p.Select(nil, &w.View().Model)
			// By decreasing exponent, no source that was left out fits.
			picked := make([]bool, 4)
			left := in.Budget
			for _, i := range crawl {
				picked[i] = true
				left -= in.Sources[i].Cost
			}
			sum := allerton.Sum(w.View().Mean)
			for i, x := range w.View().Mean {
				if picked[i] {
					continue
				}
				room := left
				li, _ := p.Thresholds().Exponent(i, x, sum-x)
				for k, y := range w.View().Mean { // what ranks below would have had to wait
					if lk, _ := p.Thresholds().Exponent(k, y, sum-y); picked[k] && lk < li {
						room += in.Sources[k].Cost
					}
				}
				if in.Sources[i].Cost < room-1e-9 {
					t.Fatalf("source %d with exponent %v and cost %v is left out; %v of the budget was there", i, li, in.Sources[i].Cost, room)
				}
			}
			got, err := w.Step(crawl) // refuses a step over the budget
			if err != nil {
				t.Fatal(err)
			}
			p.Update(got, &w.View().Model)
		}
	})
}

// TestFrozen: the learned policy does not change, and leaves the learner as it
// is.
func TestFrozen(t *testing.T) {
	in := env.Paper(2)
	p := newPaper(t, in, allerton.DefaultSettings(), 3)
	play(t, newMean(t, in, true), env.NewAgent[env.Model](p), 500)
	before := p.State()
	budget := p.Frozen("budget", nil)
	w := newMean(t, in, false)
	first := play(t, w, env.NewAgent(budget), 100)
	if !reflect.DeepEqual(before, p.State()) {
		t.Error("running the frozen policy changed the learner")
	}
	play(t, newMean(t, in, true), env.NewAgent[env.Model](p), 500)
	if reflect.DeepEqual(before.Q, p.State().Q) {
		t.Error("500 epochs of learning changed nothing")
	}
	if second := play(t, newMean(t, in, false), env.NewAgent(budget), 100); !reflect.DeepEqual(first, second) {
		t.Error("learning on changed the frozen policy")
	}
	var dst []int
	w = newMean(t, in, false)
	if n := testing.AllocsPerRun(100, func() { dst = budget.Select(dst[:0], &w.View().Model) }); n != 0 {
		t.Errorf("the frozen policy allocates %v times", n)
	}
}

// TestResume: a learner that was stored as JSON and taken up again does the
// same, bit for bit, as one that ran on.
func TestResume(t *testing.T) {
	in := env.Paper(1)
	for _, change := range []func(*allerton.Settings){
		func(*allerton.Settings) {},
		func(s *allerton.Settings) { s.B = lspe.Harmonic(); s.Check = 64 },
		func(s *allerton.Settings) { s.Tikhonov = "always" },
		func(s *allerton.Settings) { s.Act = "budget"; s.Features = "raw" },
	} {
		set := allerton.DefaultSettings()
		change(&set)
		overrun := set.Act == "probabilistic"
		for _, stop := range []int{0, 1, 70, 999} {
			p := newPaper(t, in, set, 4)
			w := newMean(t, in, overrun)
			play(t, w, env.NewAgent[env.Model](p), stop)
			text, err := json.Marshal(p.State())
			if err != nil {
				t.Fatal(err)
			}
			var st allerton.State
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
	in := env.Paper(1)
	set := allerton.DefaultSettings()
	for want, spoil := range map[string]func(*allerton.State){
		"settings of the state": func(s *allerton.State) { s.Settings.Kappa = 3 },
		"q has 3 rows":          func(s *allerton.State) { s.Q = s.Q[:3] },
		"q of source 2 has NaN": func(s *allerton.State) { s.Q[1][2] = math.NaN() },
		"stream is 0 bytes":     func(s *allerton.State) { s.Stream = nil },
		"stream":                func(s *allerton.State) { s.Stream = s.Stream[:3] },
		"critic: weights has 13": func(s *allerton.State) {
			s.Critic.Weights = s.Critic.Weights[:13]
		},
		"critic: a has +Inf at place 5":   func(s *allerton.State) { s.Critic.A[5] = math.Inf(1) },
		"critic: steps is -1":             func(s *allerton.State) { s.Critic.Steps = -1 },
		"critic: average is NaN":          func(s *allerton.State) { s.Critic.Average = math.NaN() },
		"critic: inverse: scale":          func(s *allerton.State) { s.Critic.Inverse.Scale = 0 },
		"critic: inverse: z has 0":        func(s *allerton.State) { s.Critic.Inverse.Z = nil },
		"critic: inverse: held has 2 ent": func(s *allerton.State) { s.Critic.Inverse.Held = [][]float64{{1, 2}} },
		"critic: inverse: held has 64 co": func(s *allerton.State) { s.Critic.Inverse.Held = make([][]float64, 64) },
	} {
		p := newPaper(t, in, set, 1)
		st := p.State()
		spoil(&st)
		if err := p.SetState(st); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v; want one line that begins with %q", err, want)
		}
	}
}

func TestSettings(t *testing.T) {
	for want, spoil := range map[string]func(*allerton.Settings){
		"kappa is 0; allowed":          func(s *allerton.Settings) { s.Kappa = 0 },
		"kappa is -2; allowed":         func(s *allerton.Settings) { s.Kappa = -2 },
		"kappa is NaN; allowed":        func(s *allerton.Settings) { s.Kappa = math.NaN() },
		"kappa is +Inf; allowed":       func(s *allerton.Settings) { s.Kappa = math.Inf(1) },
		"shift is NaN; allowed":        func(s *allerton.Settings) { s.Shift = math.NaN() },
		"gamma is 0; allowed":          func(s *allerton.Settings) { s.Gamma = 0 },
		"a: scale c is 0; allowed":     func(s *allerton.Settings) { s.A.Scale = 0 },
		"b: block is 0; allowed":       func(s *allerton.Settings) { s.B.Block = 0 },
		"start is 1.5; allowed":        func(s *allerton.Settings) { s.Start = 1.5 },
		"start is NaN; allowed":        func(s *allerton.Settings) { s.Start = math.NaN() },
		`reward is "all"; allowed`:     func(s *allerton.Settings) { s.Reward = "all" },
		`act is ""; allowed`:           func(s *allerton.Settings) { s.Act = "" },
		`projection is "x"; allow`:     func(s *allerton.Settings) { s.Projection = "x" },
		`features is "x"; allowed`:     func(s *allerton.Settings) { s.Features = "x" },
		`tikhonov is "no"; allowed`:    func(s *allerton.Settings) { s.Tikhonov = "no" },
		"delta is 0; allowed":          func(s *allerton.Settings) { s.Delta = 0 },
		"epsilon is -Inf; allowed":     func(s *allerton.Settings) { s.Epsilon = math.Inf(-1) },
		"tolerance is 0; allowed":      func(s *allerton.Settings) { s.Tolerance = 0 },
		"condition is NaN; allowed":    func(s *allerton.Settings) { s.Condition = math.NaN() },
		"check is 0; allowed":          func(s *allerton.Settings) { s.Check = 0 },
		"instance \"paper\": budget":   nil,
		"instance \"paper\", source 2": func(*allerton.Settings) {},
	} {
		set, in := allerton.DefaultSettings(), env.Paper(1)
		if spoil != nil {
			spoil(&set)
		} else {
			in.Budget = 0
		}
		if strings.HasSuffix(want, "source 2") {
			in.Sources[1].Interest = 1e40
		}
		if _, err := allerton.New(in, set, stream.New(1)); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v; want one line that begins with %q", err, want)
		}
	}
}

// TestTooManyFeatures: what no memory holds is refused before it is asked for.
func TestTooManyFeatures(t *testing.T) {
	_, err := allerton.New(env.Lognormal(5000, 10, 1), allerton.DefaultSettings(), stream.New(1))
	if want := "5000 sources to degree 2 make 10000 features; allowed for this learner are 8192"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v; want %q", err, want)
	}
}

// TestStepAllocations: one whole step allocates nothing, fallbacks included.
func TestStepAllocations(t *testing.T) {
	for _, tikhonov := range []string{"fallback", "always"} {
		set := allerton.DefaultSettings()
		set.Tikhonov = tikhonov
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
			t.Errorf("%s: a step allocates %v times", tikhonov, n)
		}
		if c := p.Counts(); tikhonov == "fallback" && c.Fallbacks == 0 {
			t.Errorf("no fallback was among the steps: %+v", c)
		}
	}
}

func TestUpdateWithoutSelect(t *testing.T) {
	in := env.Paper(1)
	for name, f := range map[string]func(p *allerton.Learner, o *env.Model){
		"Update": func(p *allerton.Learner, o *env.Model) { p.Update(nil, o) },
		"State":  func(p *allerton.Learner, o *env.Model) { p.Select(nil, o); p.State() },
		"shape":  func(p *allerton.Learner, o *env.Model) { p.Select(nil, &env.Model{}) },
		"act":    func(p *allerton.Learner, o *env.Model) { p.Frozen("bold", nil) },
	} {
		func() {
			defer func() {
				if s := fmt.Sprint(recover()); !strings.HasPrefix(s, "learner: ") {
					t.Errorf("%s: panic %q", name, s)
				}
			}()
			f(newPaper(t, in, allerton.DefaultSettings(), 1), &newMean(t, in, true).View().Model)
		}()
	}
}

// TestDeadSource: a source without content takes part and harms nothing.
func TestDeadSource(t *testing.T) {
	in := env.Paper(1)
	in.Sources[2].Rate = 0
	_, p := runPaper(t, in, allerton.DefaultSettings(), 1, 2000)
	for m, r := range p.Critic().Weights() {
		if math.IsNaN(r) || math.IsInf(r, 0) {
			t.Errorf("weight %d is %v", m, r)
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
			s := env.NewSource(fmt.Sprint(i), rapid.Float64Range(0, 1000).Draw(t, "rate"), rapid.Float64Range(.01, 20).Draw(t, "decay"), scale*rapid.Float64Range(.1, 10).Draw(t, "factor"))
			if c := s.Ceiling(); c < 1e-30 {
				s.Rate = 0
			}
			in.Sources = append(in.Sources, s)
		}
		in.Budget = 1
		set := allerton.DefaultSettings()
		pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
		set.Kappa = math.Pow(10, rapid.Float64Range(-20, 20).Draw(t, "kappa"))
		set.Gamma = rapid.Float64Range(.001, 1.99).Draw(t, "gamma")
		set.Start = rapid.Float64Range(0, 1).Draw(t, "start")
		set.A = lspe.Constant(math.Pow(10, rapid.Float64Range(-5, 5).Draw(t, "a")))
		set.B = lspe.Constant(rapid.Float64Range(.001, .999).Draw(t, "b"))
		set.Act = pick("act", "probabilistic", "budget")
		set.Reward = pick("reward", "crawled", "literal")
		set.Projection = pick("projection", "keep", "cut")
		set.Features = pick("features", "unit", "raw")
		set.Tikhonov = pick("tikhonov", "fallback", "always")
		set.Delta = math.Pow(10, rapid.Float64Range(-30, 1).Draw(t, "delta"))
		set.Epsilon = math.Pow(10, rapid.Float64Range(-15, 3).Draw(t, "epsilon"))
		set.Condition = math.Pow(10, rapid.Float64Range(1, 20).Draw(t, "condition"))
		p, err := allerton.New(in, set, stream.New(1, stream.Policy))
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
	for seed := uint64(1); seed <= 3; seed++ {
		in := env.Paper(1)
		p := newPaper(t, in, allerton.DefaultSettings(), seed)
		w := newMean(t, in, true)
		agent := env.NewAgent[env.Model](p)
		for n := range 1000 {
			crawl := play(t, w, agent, 1)[0]
			if n < 40 || n%100 == 99 {
				fmt.Fprintln(&b, seed, n, crawl, p.Critic().Average(), p.Critic().Weights()[0], p.Thresholds().Q[0])
			}
		}
		fmt.Fprintf(&b, "%d %+v\n", seed, p.Counts())
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
		budget := allerton.DefaultSettings()
		budget.Act = "budget"
		envtest.Policy(t, in, func() env.Policy[env.Model] { return newPaper(t, in, budget, 1) })
		envtest.OverrunPolicy(t, in, func() env.Policy[env.Model] {
			return newPaper(t, in, allerton.DefaultSettings(), 1)
		})
		envtest.Policy(t, in, func() env.Policy[env.Model] {
			return newPaper(t, in, allerton.DefaultSettings(), 1).Frozen("budget", nil)
		})
		envtest.OverrunPolicy(t, in, func() env.Policy[env.Model] {
			return newPaper(t, in, budget, 1).Frozen("probabilistic", stream.New(2, stream.Policy))
		})
	}
}

// TestSettingsAsTOML: settings survive a configuration file.
func TestSettingsAsTOML(t *testing.T) {
	set := allerton.DefaultSettings()
	set.B = lspe.Harmonic()
	set.A = lspe.Steps{Scale: .3, Block: 700, Power: 2. / 3}
	text, err := toml.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	var back allerton.Settings
	if err := toml.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back != set {
		t.Errorf("%+v became\n%s\nand %+v", set, text, back)
	}
	if err := toml.Unmarshal([]byte(`a = "1/(n+"`), &back); err == nil || !strings.Contains(err.Error(), "not understood") {
		t.Errorf("error %v", err)
	}
}

// TestMoved: a learner that finds the world in another state than the one that
// it was told of last learns from the state that it finds.
func TestMoved(t *testing.T) {
	in := env.Paper(1)
	set := allerton.DefaultSettings()
	p, q := newPaper(t, in, set, 1), newPaper(t, in, set, 2)
	play(t, newMean(t, in, true), env.NewAgent[env.Model](p), 100)
	if err := q.SetState(p.State()); err != nil { // q remembers no state
		t.Fatal(err)
	}
	play(t, newMean(t, in, true), env.NewAgent[env.Model](p), 3)
	play(t, newMean(t, in, true), env.NewAgent[env.Model](q), 3)
	if !reflect.DeepEqual(p.State(), q.State()) {
		t.Error("the state before the move was learned from")
	}
}
