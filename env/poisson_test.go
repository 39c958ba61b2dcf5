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

func TestPoissonRefusesOptions(t *testing.T) {
	for want, o := range map[string]env.PoissonOptions{
		`marks is "gamma"`: {Marks: "gamma"},
	} {
		_, err := env.NewPoisson(env.Paper(1), 1, o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error is %v; want one with %q", o, err, want)
		}
	}
	in := env.Paper(1)
	in.Sources[2].Rate = 10_001
	want := `instance "paper", source 3 ("3"): rate is 10001; allowed in world poisson are at most 10000 items per epoch`
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
		golden(t, "poisson_"+string(m), trace(must(env.NewPoisson(in, 1, env.PoissonOptions{Marks: m, Items: true, State: true}))))
	}
	golden(t, "poisson_laws", trace(must(env.NewPoisson(everyLaw(), 1, env.PoissonOptions{Marks: env.MarksPerItem, Items: true, State: true}))))
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
