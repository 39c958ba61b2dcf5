package native

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments"
)

// settings returns settings of K worlds.
func settings(k int, instance string, budget float64, w experiments.World, level env.Level) worldSettings {
	r := experiments.Run{Steps: 1, World: w, Learner: map[string]any{"algorithm": "whittle@" + string(level)}}
	r.Instance.Name, r.Instance.Budget = instance, budget
	return worldSettings{Run: r, Worlds: k, Limit: 50, Autoreset: true, Threads: 1}
}

// settled returns settings of K worlds of the mean dynamics of an instance.
func settled(k int, instance string) worldSettings {
	return settings(k, instance, 0, experiments.World{Kind: "mean"}, env.LevelModel)
}

// bound makes the buffer that worlds write into.
func bound(w *Worlds) *frame {
	room := make([]float64, len(w.at)*(5+3*w.n+w.about.Most+w.about.Width))
	w.write(unsafe.Pointer(&room[0]))
	return &w.to
}

// buffer returns where the buffer begins.
func buffer(w *Worlds) unsafe.Pointer { return unsafe.Pointer(&w.to.reward[0]) }

// numbers returns the buffer as the numbers of a call.
func numbers(w *Worlds) Numbers { return w.to.reward }

// begin resets all worlds.
func begin(t testing.TB, w *Worlds, seeds ...uint64) {
	t.Helper()
	if err := w.reset(nil, seeds, numbers(w)); err != nil {
		t.Fatal(err)
	}
}

// act steps worlds by actions.
func act[T any](w *Worlds, form int, actions ...T) error {
	return w.Step(unsafe.Pointer(&actions[0]), form, buffer(w))
}

func opened(t testing.TB, s worldSettings) (*Worlds, *about) {
	t.Helper()
	w, err := openWorlds(s)
	if err != nil {
		t.Fatal(err)
	}
	return w, &w.about
}

// The worlds are env's own to the last digit, whatever is crawled, through
// episodes that begin anew.
func TestSameAsEnv(t *testing.T) {
	mean := func(in env.Instance, _ uint64) (env.World, error) { return env.NewMean(in, false) }
	poisson := func(o env.PoissonOptions) func(env.Instance, uint64) (env.World, error) {
		return func(in env.Instance, seed uint64) (env.World, error) { return env.NewPoisson(in, seed, o) }
	}
	means := func(v *env.Observed) []float64 { return v.Mean }
	drawn := experiments.World{Kind: "poisson"}
	for _, c := range []struct {
		settings worldSettings
		threads  int
		world    func(env.Instance, uint64) (env.World, error)
		state    func(*env.Observed) []float64
	}{
		{settled(3, "paper"), 1, mean, means},
		{settings(3, "wide:7", 3, experiments.World{Kind: "mean"}, env.LevelModel), 1, mean, means},
		{settings(3, "lognormal:5:1:hump", 2, experiments.World{Kind: "mean"}, env.LevelModel), 1, mean, means},
		{settings(3, "mixed:9", 4, experiments.World{Kind: "mean"}, env.LevelModel), 3, mean, means},
		{settled(3, "drift:5"), 1, mean, means},
		{settings(3, "mixed:9", 4, drawn, env.LevelModel), 1, poisson(env.PoissonOptions{}), means},
		{
			settings(3, "paper", 0, experiments.World{Kind: "poisson", Marks: "per-item"}, env.LevelObserved),
			1,
			poisson(env.PoissonOptions{Marks: env.MarksPerItem, State: true}),
			func(v *env.Observed) []float64 { return v.State },
		},
		{
			settings(3, "paper", 0, drawn, env.LevelOnline),
			2,
			poisson(env.PoissonOptions{Items: true}),
			func(v *env.Observed) []float64 { return nil },
		},
	} {
		same := func(t *testing.T, scaled bool) {
			const k, steps = 3, 50
			c.settings.Scaled, c.settings.Threads = scaled, c.threads
			w, about := opened(t, c.settings)
			in, err := env.Named(c.settings.Instance.Name, c.settings.Instance.Budget)
			if err != nil {
				t.Fatal(err)
			}
			n := len(in.Sources)
			f := bound(w)
			seeds := []uint64{5, 6, 1 << 63}
			begin(t, w, seeds...)
			direct, found := make([]env.World, k), make([][]float64, k)
			restart := func(j int) {
				if direct[j], err = c.world(in, seeds[j]); err != nil {
					t.Fatal(err)
				}
				found[j] = make([]float64, n)
			}
			for j := range direct {
				restart(j)
			}
			top, r := baselines.NewSelector(about.Costs, about.Budget), stream.New(1, stream.Test)
			scores, short := make([]float64, k*n), make([]float32, k*n)
			for step := range 3*(steps+1) + 1 {
				for i := range scores {
					short[i] = float32(r.NormFloat64())
					scores[i] = float64(short[i])
				}
				if scaled {
					err = act(w, scores32, short...)
				} else {
					err = act(w, scores64, scores...)
				}
				if err != nil {
					t.Fatal(err)
				}
				for j := range direct {
					if reset := step%(steps+1) == steps; reset {
						seeds[j] = following(seeds[j])
						restart(j)
						if f.reward[j] != 0 || f.over[j] != 0 {
							t.Fatalf("step %d resets and has reward %v, over %v", step, f.reward[j], f.over[j])
						}
					} else {
						got, err := direct[j].Step(top.Top(nil, scores[j*n:(j+1)*n]))
						if err != nil {
							t.Fatal(err)
						}
						var reward float64
						interest, crawled := make([]float64, n), make([]uint8, n)
						for _, x := range got {
							reward += x.Interest
							interest[x.Source], crawled[x.Source], found[j][x.Source] = x.Interest, 1, x.Interest
						}
						if f.reward[j] != reward*w.site.pay || !slices.Equal(f.interest[j*n:(j+1)*n], interest) ||
							!slices.Equal(f.crawled[j*n:(j+1)*n], crawled) {
							t.Fatalf("step %d of world %d brings %v, want %v", step, j, f.interest, interest)
						}
						if over := step%(steps+1) == steps-1; (f.over[j] == 1) != over {
							t.Fatalf("step %d: over %d", step, f.over[j])
						}
					}
					v := direct[j].View()
					want, x := make([]float64, about.Width), c.state(v)
					for i := range n {
						if x != nil {
							want[i] = x[i] * w.site.rate[i]
						}
						want[about.Width-2*n+i] = w.site.age(v.Age(i))
						want[about.Width-n+i] = w.site.harvest(i, found[j][i])
					}
					for i, y := range want {
						switch at := j*about.Width + i; {
						case scaled && f.scaled[at] != float32(y):
							t.Fatalf("step %d of world %d shows %v at %d, want %v", step, j, f.scaled[at], i, y)
						case !scaled && f.raw[at] != y:
							t.Fatalf("step %d of world %d shows %v at %d, want %v", step, j, f.raw[at], i, y)
						}
					}
				}
			}
		}
		name := fmt.Sprint(c.settings.Instance.Name, c.settings.World, c.settings.Learner)
		t.Run(name, func(t *testing.T) { same(t, false) })
		t.Run(name+" scaled", func(t *testing.T) { same(t, true) })
	}
}

// The greatest score is found as comparing one by one finds it.
func TestGreatest(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	values := []float32{
		-inf, inf, 0, float32(math.Copysign(0, -1)), nan, -nan, 1, 1, -1, -2,
		math.MaxFloat32, -math.MaxFloat32, 1e-45, -1e-45,
	}
	r := stream.New(1, stream.Test)
	for _, n := range []int{2, 3, 4, 8, 9, 33} {
		const k = 3000
		w, _ := opened(t, settled(k, fmt.Sprintf("lognormal:%d", n)))
		to := bound(w)
		scores, some := make([]float32, k*n), values
		for i := range scores {
			if i%n == 0 { // others in each world, so that there are some without NaN
				some = values[r.Intn(len(values)-1):][:2]
			}
			scores[i] = some[r.Intn(2)]
		}
		if greatest == nil {
			t.Skip("built without C")
		}
		w.actions = unsafe.Pointer(&scores[0])
		left := greatest(w, 0, k)
		for j := range k {
			score := scores[j*n : (j+1)*n]
			want, numbers := 0, true
			for i, y := range score {
				numbers = numbers && y == y
				if y > score[want] {
					want = i
				}
			}
			switch {
			case to.crawls[j] < 0:
				left--
			case !numbers || score[want] == -inf || to.crawl[j] != want:
				t.Fatalf("of %v the greatest is %d, want %d", score, to.crawl[j], want)
			}
			if to.crawls[j] < 0 && numbers && score[want] > -inf {
				t.Fatalf("the greatest of %v is left", score)
			}
		}
		if left != 0 {
			t.Errorf("%d more are left than were said", left)
		}
	}
}

// Scaled observations are the raw ones in other units.
func TestScaled(t *testing.T) {
	for _, tt := range []struct {
		knowledge env.Level
		kind      string
	}{{env.LevelModel, "mean"}, {env.LevelOnline, "poisson"}} {
		t.Run(string(tt.knowledge), func(t *testing.T) {
			s := settings(1, "paper", 0, experiments.World{Kind: tt.kind}, tt.knowledge)
			s.Limit = 5000
			raw, about := opened(t, s)
			s.Scaled = true
			scaled, _ := opened(t, s)
			a, b := bound(raw), bound(scaled)
			begin(t, raw, 1)
			begin(t, scaled, 1)
			in := env.Paper(1)
			for range 2000 { // past the ages that are looked up
				for _, w := range []*Worlds{raw, scaled} {
					if err := act(w, scores32, float32(4), 3, 2, 1); err != nil {
						t.Fatal(err)
					}
				}
				for i, y := range a.raw {
					s := in.Sources[i%4]
					want := y / s.Ceiling()
					switch part := i / 4; {
					case part == about.Width/4-2:
						want = 1 - math.Exp(-y/4)
					case tt.knowledge == env.LevelOnline:
						want = math.Log(1 + y)
					}
					if got := float64(b.scaled[i]); math.Abs(got-want) > 1e-6*max(1, want) {
						t.Fatalf("figure %d is %v, want %v", i, got, want)
					}
				}
			}
		})
	}
}

func init() {
	experiments.RegisterWorld("twice", func(in env.Instance, _ env.Level) (experiments.Scene, error) {
		for i := range in.Sources {
			in.Sources[i].Rate *= 2
		}
		return experiments.MeanScene(in), nil
	})
}

// A world that was registered is opened by its name.
func TestRegisteredWorld(t *testing.T) {
	rewards := map[string]float64{}
	for _, kind := range []string{"mean", "twice"} {
		w, _ := opened(t, settings(1, "paper", 0, experiments.World{Kind: kind}, env.LevelModel))
		f := bound(w)
		begin(t, w, 1)
		if err := act(w, one, int64(0)); err != nil {
			t.Fatal(err)
		}
		rewards[kind] = f.reward[0]
	}
	if rewards["twice"] != 2*rewards["mean"] || rewards["mean"] == 0 {
		t.Error(rewards)
	}
}

// What is refused changes nothing in any world.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		want string
		bad  func(*Worlds) error
	}{
		{"world 1: the score of source 1 is NaN; allowed are numbers, inf", func(w *Worlds) error {
			return act(w, scores64, 1, 2, 3, 4, 1, math.NaN(), 3, 4)
		}},
		{"world 1: the set costs 2; allowed is the budget, 1", func(w *Worlds) error {
			return act[int8](w, set, 1, 0, 0, 0, 1, 1, 0, 0)
		}},
		{"world 1: action 2 of source 0", func(w *Worlds) error {
			return act[int8](w, set, 1, 0, 0, 0, 2, 0, 0, 0)
		}},
		{"world 1: action is source 4; allowed are 0 to 3", func(w *Worlds) error {
			return act[int64](w, one, 0, 4)
		}},
	} {
		t.Run(tt.want, func(t *testing.T) {
			w, _ := opened(t, settled(2, "paper"))
			f := bound(w)
			begin(t, w, 1, 2)
			before := slices.Clone(f.raw)
			if err := tt.bad(w); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if err := w.reset([]bool{false, false}, nil, numbers(w)); err != nil || !slices.Equal(f.raw, before) {
				t.Errorf("the refused step changed %v to %v (%v)", before, f.raw, err)
			}
		})
	}
}

// A set that is too dear is cut to the sources that have waited longest.
func TestTruncate(t *testing.T) {
	s := settled(1, "paper")
	s.Truncate = true
	w, _ := opened(t, s)
	f := bound(w)
	begin(t, w, 1)
	for step, want := range [][]uint8{{1, 0, 0, 0}, {0, 1, 0, 0}, {1, 0, 0, 0}} {
		if err := act[int8](w, set, 1, 1, 0, 0); err != nil || !slices.Equal(f.crawled, want) {
			t.Errorf("step %d crawls %v, want %v (%v)", step, f.crawled, want, err)
		}
	}
}

// So are they where no episode ends, past the age at which nothing more comes.
func TestEndless(t *testing.T) {
	for _, instance := range []string{"paper", "paper:power"} {
		s := settled(1, instance)
		s.Limit = 0
		w, about := opened(t, s)
		f := bound(w)
		in, err := env.Named(instance, 0)
		if err != nil {
			t.Fatal(err)
		}
		direct, err := env.NewMean(in, false)
		if err != nil {
			t.Fatal(err)
		}
		begin(t, w, 1)
		for step := range 9000 {
			i := min(step%4000, 3)
			got, err := direct.Step([]int{i})
			if err != nil {
				t.Fatal(err)
			}
			err = act(w, one, int64(i))
			if err != nil || f.reward[0] != got[0].Interest || !slices.Equal(f.raw[:4], direct.View().Mean) {
				t.Fatalf("%s, step %d: %v and %v, want %v and %v (%v)",
					about.ID, step, f.reward, f.raw, got, direct.View().Mean, err)
			}
		}
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	s := settled(16, "paper")
	s.Limit = 0
	w, _ := opened(t, s)
	bound(w)
	begin(t, w, make([]uint64, 16)...)
	a := make([]float32, 64)
	if n := testing.AllocsPerRun(100, func() {
		if err := act(w, scores32, a...); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkStep(b *testing.B) {
	const k = 1024
	for _, instance := range []string{"paper", "lognormal:100", "lognormal:1000"} {
		b.Run(instance, func(b *testing.B) {
			s := settled(k, instance)
			s.Limit, s.Scaled = 1000, true
			w, _ := opened(b, s)
			bound(w)
			begin(b, w, make([]uint64, k)...)
			// What is crawled differs from call to call, so that all sources are.
			r := stream.New(1, stream.Test)
			scores := make([]float32, 2*w.n*k)
			for i := range scores {
				scores[i] = float32(r.Float64())
			}
			actions := make([][]float32, 64)
			for i := range actions {
				begin := r.Intn(w.n * k)
				actions[i] = scores[begin : begin+w.n*k]
			}
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				if err := act(w, scores32, actions[i%64]...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(k*w.n), "ns/source")
		})
	}
}

// TestFollowing holds the seeds of episodes to what a number of 64 bits with a sign can be.
func TestFollowing(t *testing.T) {
	for seed := range uint64(1000) {
		for k, first := 0, seed; k < 10; k++ {
			if seed = following(seed); seed >= 1<<63 {
				t.Fatalf("after %d comes %d", first, seed)
			}
		}
	}
}
