package env_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"gonum.org/v1/gonum/stat"

	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The slow and obvious world: all items of all epochs are held, and each is
// followed by itself.
type naive struct {
	in    env.Instance
	items [][][]env.Item // of source i and epoch t, at the end of t
	last  []int
	epoch int
}

func newNaive(t *testing.T, in env.Instance, seed uint64, o env.PoissonOptions, epochs int) *naive {
	t.Helper()
	free := in
	free.Sources = slices.Clone(in.Sources)
	for i := range free.Sources {
		free.Sources[i].Window = math.Inf(1)
	}
	o.Items, o.State, o.Overrun = true, false, true
	w := must(env.NewPoisson(free, seed, o))
	all := make([]int, len(in.Sources))
	v := &naive{in: in}
	for i := range all {
		all[i] = i
		v.last = append(v.last, -1)
		v.items = append(v.items, nil)
	}
	for range epochs {
		for i, c := range must(w.Step(all)) {
			v.items[i] = append(v.items[i], slices.Clone(c.Items))
		}
	}
	return v
}

// waiting returns the items that wait at source i, oldest first.
func (v *naive) waiting(i int) []env.Item {
	var got []env.Item
	for t := v.last[i] + 1; t <= v.epoch; t++ {
		for _, it := range v.items[i][t] {
			for n := t + 1; n <= v.epoch; n++ {
				it.Age++
				it.Interest *= v.in.Sources[i].Factor()
			}
			if it.Age <= v.in.Sources[i].Window {
				got = append(got, it)
			}
		}
	}
	return got
}

// Each way to draw a world against items that are followed one by one: windows
// of all kinds, crawls at random.
func TestPoissonAgainstItemsOneByOne(t *testing.T) {
	const epochs = 90
	in := windows()
	for i := range in.Sources {
		in.Sources[i].Rate /= 10
	}
	for _, m := range allMarks {
		for _, o := range []env.PoissonOptions{{}, {Items: true}, {State: true}, {Items: true, State: true}} {
			o.Marks, o.Overrun, o.Bulk = m, true, math.Inf(1)
			slow := newNaive(t, in, 5, o, epochs)
			w := must(env.NewPoisson(in, 5, o))
			r := stream.New(6, stream.Test)
			for n := range epochs {
				var crawl []int
				for i := range in.Sources {
					if r.Float64() < 0.15 {
						crawl = append(crawl, i)
					}
				}
				slow.epoch = n
				want := make([][]env.Item, len(in.Sources))
				sum := make([]float64, len(in.Sources))
				for i := range in.Sources {
					want[i] = slow.waiting(i)
					for _, it := range want[i] {
						sum[i] += it.Interest
					}
					if o.State && math.Abs(w.View().State[i]-sum[i]) > 1e-11*sum[i] {
						t.Fatalf("%+v, epoch %d, source %d: state is %v, want %v", o, n, i, w.View().State[i], sum[i])
					}
				}
				for _, c := range must(w.Step(crawl)) {
					i := c.Source
					if math.Abs(c.Interest-sum[i]) > 1e-11*sum[i] {
						t.Fatalf("%+v, epoch %d, source %d: harvest is %v, want %v", o, n, i, c.Interest, sum[i])
					}
					if o.Items {
						if len(c.Items) != len(want[i]) {
							t.Fatalf("%+v, epoch %d, source %d: %d items, want %d", o, n, i, len(c.Items), len(want[i]))
						}
						for k, it := range c.Items {
							near(t, "age", it.Age, want[i][k].Age, 1e-12)
							near(t, "interest", it.Interest, want[i][k].Interest, 1e-11)
						}
					}
					slow.last[i] = n
				}
			}
		}
	}
}

// No item is shown that is older than the window, however little is left of
// what is older.
func TestItemsAreWithinTheWindow(t *testing.T) {
	for _, window := range []float64{0.01, 1.5, 41, 41.2, 42, 43.9, 50} {
		s := env.Source{Name: "s", Rate: 30, Decay: 1, Interest: 1, Window: window, Cost: 1}
		w := must(env.NewPoisson(env.Instance{ID: "one", Sources: []env.Source{s}, Budget: 1}, 2, env.PoissonOptions{Items: true}))
		for range 60 {
			must(w.Step(nil))
		}
		got := must(w.Step([]int{0}))[0].Items
		if want := 30 * math.Min(window, 42); math.Abs(float64(len(got))-want) > 5*math.Sqrt(want)+1 {
			t.Errorf("M = %v: %d items; want about %v", window, len(got), want)
		}
		for _, it := range got {
			if it.Age > window*(1+1e-14) {
				t.Errorf("M = %v: item of age %v", window, it.Age)
			}
		}
	}
}

// ks returns the two-sample statistic of Kolmogorov and Smirnov in units of
// its standard scale √(nm/(n+m)); 1.95 is exceeded once in a thousand times.
func ks(x, y []float64) float64 {
	slices.Sort(x)
	slices.Sort(y)
	n, m := float64(len(x)), float64(len(y))
	return stat.KolmogorovSmirnov(x, nil, y, nil) * math.Sqrt(n*m/(n+m))
}

// The sum of exponential marks has the law it is drawn from: by distance from
// items, at small and large rates, and split by a fractional window.
func TestBulkSumsHaveTheLawOfItems(t *testing.T) {
	envtest.Alone(t)
	never := math.Inf(1)
	for _, c := range []struct {
		marks  env.Marks
		rate   float64
		decay  float64
		window float64
		age    int
		n      int
	}{
		{env.MarksPerItem, 0.5, 0.35, never, 1, 40_000},
		{env.MarksPerItem, 3, 2.5, never, 1, 40_000},
		{env.MarksPerItem, 3, 0.01, never, 1, 40_000},
		{env.MarksPerItem, 5, 40, never, 1, 40_000},
		{env.MarksPerItem, 250, 0.7, never, 1, 10_000},
		{env.MarksPerItem, 4, 0.3, 2.4, 4, 20_000},
		{env.MarksConstant, 20_000, 0.35, never, 1, 1500},
		{env.MarksConstant, 40_000, 0.35, 1.5, 2, 500},
		{env.MarksPerEpoch, 20_000, 0.35, never, 1, 1500},
		{env.MarksLogNormal, 400_000, 0.1, never, 1, 60},
	} {
		s := env.Source{Name: "s", Rate: c.rate, Decay: c.decay, Interest: 0.7, Window: c.window, Cost: 1}
		draw := func(bulk float64, seed uint64) []float64 {
			in := env.Instance{ID: "one", Sources: []env.Source{s}, Budget: 1}
			w := must(env.NewPoisson(in, seed, env.PoissonOptions{Marks: c.marks, Bulk: bulk}))
			x := make([]float64, c.n)
			for k := range x {
				for range c.age - 1 {
					must(w.Step(nil))
				}
				x[k] = must(w.Step([]int{0}))[0].Interest
			}
			return x
		}
		items, sums := draw(math.Inf(1), 1), draw(1e-9, 2)
		what := fmt.Sprintf("%+v", c)
		within(t, what, sums, s.ExactMean(c.age), 4)
		if c.age == 1 {
			varianceWithin(t, what, sums, envtest.GainVariance(s, c.marks, 1), 4)
		}
		if d := ks(items, sums); d > 1.95 {
			t.Errorf("%s: distance %v in standard units; want at most 1.95", what, d)
		}
	}
}

// Draws of one seed do not depend on which options show them.
func TestBulkIsChosenAboveTheThreshold(t *testing.T) {
	first := func(rate float64, o env.PoissonOptions) float64 {
		return gains(t, env.NewSource("", rate, 0.5, 1), 1, 1, o)[0]
	}
	for _, rate := range []float64{999, 1001} {
		o := env.PoissonOptions{Marks: env.MarksPerItem}
		sum := first(rate, o)
		o.Items = true
		items := first(rate, o)
		if same := math.Abs(sum-items) < 1e-9*items; same != (rate <= 1000) {
			t.Errorf("rate %v: %v with items, %v without", rate, items, sum)
		}
	}
}

func TestPoissonRefusesOptions(t *testing.T) {
	for want, o := range map[string]env.PoissonOptions{
		`marks is "gamma"`:      {Marks: "gamma"},
		"sigma":                 {Sigma: -1},
		"bulk":                  {Bulk: math.NaN()},
		"3 marks of unobserved": {Unobserved: make([]bool, 3)},
	} {
		_, err := env.NewPoisson(env.Paper(1), 1, o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error is %v; want one with %q", o, err, want)
		}
	}
	in := env.Paper(1)
	in.Sources[2].Window, in.Sources[2].Decay = 1e9, 1e-9
	if _, err := env.NewPoisson(in, 1, env.PoissonOptions{State: true}); err == nil || !strings.Contains(err.Error(), "epochs together") {
		t.Errorf("window of 10⁹ epochs: error is %v", err)
	}
	in.Sources[2].Rate = math.NaN()
	if _, err := env.NewPoisson(in, 1, env.PoissonOptions{}); err == nil || !strings.Contains(err.Error(), "rate") {
		t.Errorf("rate NaN: error is %v", err)
	}
}

// golden compares with a file under testdata, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./env -run Golden -update writes it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs from what it was:\n%s", name, got)
	}
}

// The worlds of a seed stay what they are from version to version.
func TestGoldenStreams(t *testing.T) {
	trace := func(w env.World) string {
		var b strings.Builder
		n := len(w.Terms().Costs)
		for epoch := range 12 {
			crawl := []int{epoch % n}
			fmt.Fprintf(&b, "%d mean %.10g state %.10g\n", epoch, w.View().Mean, w.View().State)
			for _, c := range must(w.Step(crawl)) {
				fmt.Fprintf(&b, "  source %d age %d interest %.10g items %d", c.Source, c.Age, c.Interest, len(c.Items))
				if len(c.Items) > 0 {
					fmt.Fprintf(&b, " oldest %.10g", c.Items[0])
				}
				fmt.Fprintln(&b)
			}
		}
		return b.String()
	}
	in := env.Mixed(4, 3, 1)
	golden(t, "mean", trace(must(env.NewMean(in, false))))
	for _, m := range allMarks {
		golden(t, "poisson_"+string(m), trace(must(env.NewPoisson(in, 1, env.PoissonOptions{Marks: m, Items: true, State: true}))))
		in := env.Paper(1)
		for i := range in.Sources {
			in.Sources[i].Rate, in.Sources[i].Window = 1e6, 2.5
		}
		golden(t, "poisson_bulk_"+string(m), trace(must(env.NewPoisson(in, 1, env.PoissonOptions{Marks: m, State: true}))))
	}
	w, _, err := openReplay(recording(t, 60, true), env.ReplayOptions{Epoch: time.Hour, Decay: 0.175, Budget: 1, Items: true, State: true})
	golden(t, "replay", trace(must(w, err)))
	if runtime.GOARCH != "amd64" {
		t.Skip("others compute exponentials in other steps, and these files have all digits")
	}
	for _, name := range []string{"lognormal:3:7", "wide:3:7", "mixed:3:7"} {
		var b strings.Builder
		if err := toml.NewEncoder(&b).Encode(must(env.Named(name, 3))); err != nil {
			t.Fatal(err)
		}
		golden(t, strings.ReplaceAll(name, ":", "_"), b.String())
	}
}

func BenchmarkItems(b *testing.B) {
	for _, m := range allMarks {
		for _, show := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/shown=%v", m, show), func(b *testing.B) {
				in := env.Instance{ID: "one", Sources: []env.Source{env.NewSource("", 250, 0.35, 0.7)}, Budget: 1}
				w := must(env.NewPoisson(in, 1, env.PoissonOptions{Marks: m, Items: show}))
				crawl := []int{0}
				b.ReportAllocs()
				for b.Loop() {
					must(w.Step(crawl))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/250, "ns/item")
			})
		}
	}
}

// Epochs of Table I with 10⁶ items per epoch at each source, all states computed.
func BenchmarkBulk(b *testing.B) {
	in := env.Paper(1)
	for i := range in.Sources {
		in.Sources[i].Rate = 1e6
	}
	for _, m := range allMarks {
		b.Run(string(m), func(b *testing.B) {
			w := must(env.NewPoisson(in, 1, env.PoissonOptions{Marks: m, State: true}))
			crawl := []int{0}
			b.ReportAllocs()
			for b.Loop() {
				must(w.Step(crawl))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "epochs/s")
		})
	}
}

// The mean dynamics move 4 float64 per source and epoch: α, u and x read, x
// written. BenchmarkCopy moves as many bytes and is the machine's pace. 10⁷
// sources leave its caches.
func BenchmarkMean(b *testing.B) {
	for _, n := range []int{1e6, 1e7} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			w := must(env.NewMean(env.Lognormal(n, 1, 1), false))
			b.SetBytes(4 * 8 * int64(n))
			crawl := []int{5}
			for b.Loop() {
				must(w.Step(crawl))
			}
		})
	}
}

func BenchmarkCopy(b *testing.B) {
	for _, n := range []int{1e6, 1e7} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			x, y := make([]float64, 2*n), make([]float64, 2*n)
			b.SetBytes(2 * 8 * 2 * int64(n)) // read and written
			for b.Loop() {
				copy(x, y)
			}
		})
	}
}
