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
	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat"

	"ephemera/env"
	"ephemera/env/stream"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The slow and obvious world: all items of all epochs are held, and each is
// followed by itself.
type naive struct {
	in    []env.Instance // by epoch
	items [][][]env.Item // of source i and epoch t, at the end of t
	last  []int
	epoch int
}

func newNaive(t *testing.T, in env.Instance, seed uint64, o env.PoissonOptions, epochs int) *naive {
	t.Helper()
	forever := func(sources []env.Source) []env.Source {
		sources = slices.Clone(sources)
		for i := range sources {
			sources[i].Window = math.Inf(1)
		}
		return sources
	}
	free := in
	free.Sources, free.Changes = forever(in.Sources), slices.Clone(in.Changes)
	for k := range free.Changes {
		free.Changes[k].Sources = forever(free.Changes[k].Sources)
	}
	o.Items, o.State, o.Overrun = true, false, true
	w := must(env.NewPoisson(free, seed, o))
	all := make([]int, len(in.Sources))
	v := &naive{}
	for t := range epochs {
		for _, phase := range in.Phases() {
			if phase.From <= t {
				v.in = append(v.in[:t], phase.Instance)
			}
		}
	}
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
		s := v.in[t].Sources[i]
		for _, it := range v.items[i][t] {
			// The item was seen once, at the end of its own epoch.
			initial := it.Interest / interestAt(s, it.Age)
			it.Age += float64(v.epoch - t)
			it.Interest = initial * interestAt(s, it.Age)
			if it.Age <= s.Window {
				got = append(got, it)
			}
		}
	}
	return got
}

// Each way to draw a world against items that are followed one by one: windows
// of all kinds, crawls at random.
func TestPoissonAgainstItemsOneByOne(t *testing.T) {
	for _, in := range []env.Instance{windows(), changing()} {
		for i := range in.Sources {
			in.Sources[i].Rate /= 10
		}
		in.Sources[6].Rate = .05 // drawn by blocks of 128 epochs
		againstItemsOneByOne(t, in)
	}
}

func againstItemsOneByOne(t *testing.T, in env.Instance) {
	const epochs = 90
	for _, m := range allMarks {
		for _, o := range []env.PoissonOptions{{}, {Items: true}, {State: true}, {Items: true, State: true}} {
			o.Marks, o.Overrun = m, true
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

// Once items are dropped, crawls earn what they earned with them.
func TestDropItems(t *testing.T) {
	in := everyLaw()
	o := env.PoissonOptions{Items: true, Marks: env.MarksPerItem, Overrun: true}
	with, without := must(env.NewPoisson(in, 4, o)), must(env.NewPoisson(in, 4, o))
	without.DropItems()
	var items int
	for n := range 60 {
		crawl := []int{n % 4, 4 + n%3}
		want := slices.Clone(must(with.Step(crawl)))
		for k, got := range must(without.Step(crawl)) {
			items += len(want[k].Items)
			if got.Items != nil {
				t.Fatalf("epoch %d: the crawl of source %d brings back %d items", n, got.Source, len(got.Items))
			}
			near(t, "interest", got.Interest, want[k].Interest, 1e-11)
		}
	}
	if items == 0 {
		t.Error("there were no items to drop")
	}
}

// secondMoment returns E[(Σξ)²]/ξ̄² of the items of one arrival.
func secondMoment(batch int, m env.Marks) float64 {
	b := float64(max(1, batch))
	if m == env.MarksPerItem {
		return b*b + b // the mean squared, and the variance of a sum of b draws
	}
	return b * b
}

// harvestVariance returns the variance of what a crawl brings back at an age, by
// Campbell's theorem: (λ/b) E[(Σξ)²] ∫ f² over the ages within the window. One draw E
// for all items of an epoch makes of the sum S of that epoch, in ξ̄, the variance
// E[E²]E[S²] − E[E]²E[S]² = 2 Var S + E[S]².
func harvestVariance(s env.Source, age int, m env.Marks) (variance float64) {
	square := func(a float64) float64 { f := s.HarvestRate(a); return f * f }
	for t := range age {
		from, to := math.Min(float64(t), s.Window), math.Min(float64(t+1), s.Window)
		if from == to {
			break
		}
		// HarvestRate is λξ̄f.
		b := float64(max(1, s.Batch))
		v := secondMoment(s.Batch, m) / b / s.Rate * quad.Fixed(square, from, math.Nextafter(to, 0), 40, nil, 0)
		if m == env.MarksPerEpoch {
			mean := s.Harvest(to) - s.Harvest(from)
			v = 2*v + mean*mean
		}
		variance += v
	}
	return variance
}

// What a crawl brings back has the mean and the variance of compound Poisson arrivals,
// for all laws, marks, windows and batches, at sources that are drawn by the epoch and
// by blocks; what two crawls in a row bring back is independent.
func TestHarvestsAreCompoundPoisson(t *testing.T) {
	in := env.Instance{ID: "moments"}
	for _, law := range env.Laws() {
		for _, window := range []float64{math.Inf(1), .3, 2.5} {
			for _, batch := range []int{1, 4} {
				for _, rate := range []float64{.4, 3, 17} {
					s := env.Source{Rate: rate, Decay: .4, Interest: 2, Window: window, Cost: 1, Law: law, Batch: batch}
					if s.Unbounded() && !math.IsInf(window, 1) {
						continue // no item is dropped
					}
					s.Name = fmt.Sprintf("%s law, window %v, batch %d, rate %v", law, window, batch, rate)
					in.Sources = append(in.Sources, s)
				}
			}
		}
	}
	in.Budget = in.TotalCost()
	all := make([]int, len(in.Sources))
	for i := range all {
		all[i] = i
	}
	for _, marks := range allMarks {
		for _, age := range []int{1, 3} {
			w := must(env.NewPoisson(in, 17, env.PoissonOptions{Marks: marks}))
			found := make([][]float64, len(in.Sources))
			for range 6000 {
				for range age - 1 {
					must(w.Step(nil))
				}
				for i, c := range must(w.Step(all)) {
					found[i] = append(found[i], c.Interest)
				}
			}
			for i, s := range in.Sources {
				what, x := fmt.Sprintf("%s, %s marks, age %d", s.Name, marks, age), found[i]
				within(t, what, x, s.Harvest(float64(age)), 4.5)
				varianceWithin(t, what, x, harvestVariance(s, age, marks), 5)
				if r := stat.Correlation(x[1:], x[:len(x)-1], nil); math.Abs(r) > 4.5/math.Sqrt(float64(len(x))) {
					t.Errorf("%s: harvests in a row have the correlation %v", what, r)
				}
			}
		}
	}
}

func TestPoissonRefusesOptions(t *testing.T) {
	_, err := env.NewPoisson(env.Paper(1), 1, env.PoissonOptions{Marks: "gamma"})
	if want := `marks is "gamma"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v; want one with %s", err, want)
	}
	in := env.Paper(1)
	in.Sources[2].Rate = 10_001
	want := `instance "paper", source 3 ("3"): rate is 10001; ` +
		"allowed in world poisson are at most 10000 items per epoch"
	if _, err := env.NewPoisson(in, 1, env.PoissonOptions{}); err == nil || err.Error() != want {
		t.Errorf("error is %v; want %s", err, want)
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
		golden(t, "poisson_"+string(m), trace(must(env.NewPoisson(in, 1,
			env.PoissonOptions{Marks: m, Items: true, State: true}))))
	}
	golden(t, "poisson_laws", trace(must(env.NewPoisson(everyLaw(), 1,
		env.PoissonOptions{Marks: env.MarksPerItem, Items: true, State: true}))))
	w, _, err := openReplay(recording(t, 60, true),
		env.ReplayOptions{Epoch: time.Hour, Decay: 0.175, Budget: 1, Items: true, State: true})
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

// Where no states are shown, a step costs what its crawls cost, whatever the
// number of sources.
func BenchmarkCrawls(b *testing.B) {
	for _, n := range []int{1e3, 1e5, 1e6} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			w := must(env.NewPoisson(env.Lognormal(n, 10, 1), 1, env.PoissonOptions{NoMean: true}))
			crawl := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
			for b.Loop() {
				must(w.Step(crawl))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10, "ns/crawl")
		})
	}
}
