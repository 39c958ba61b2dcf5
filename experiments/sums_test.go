package experiments

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"ephemera/env"
	"ephemera/learner"
)

// forgetSums forgets the sums that are kept for worlds to come.
func forgetSums() {
	recentSums.Lock()
	defer recentSums.Unlock()
	recentSums.list = nil
}

// played is a way to open a world.
type played struct {
	marks env.Marks
	level env.Level
}

// playSums returns what the crawls of so many epochs bring back, of every third source
// in turn.
func playSums(t *testing.T, in env.Instance, seed uint64, o played, epochs int) (brought []float64) {
	t.Helper()
	w, err := PoissonScene(in, o.marks).Open(seed, o.level, true)
	if err != nil {
		t.Error(err) // of another goroutine
		return nil
	}
	for n := range epochs {
		var crawl []int
		for i := n % 3; i < len(in.Sources); i += 3 {
			crawl = append(crawl, i)
		}
		got, err := w.Step(crawl)
		if err != nil {
			t.Error(err)
			return nil
		}
		for _, c := range got {
			brought = append(brought, c.Interest)
		}
	}
	return brought
}

// What worlds share changes no bit of what they bring, whoever came first, in worlds
// that change too; a world of other parameters, marks or another seed shares nothing,
// even if its parameters are in the same place of the memory.
func TestSumsChangeNothing(t *testing.T) {
	in := env.Drift(9, 1, 1)
	in.Changes[0].At = 100
	short := in
	short.Changes = nil
	options := []played{
		{env.MarksConstant, env.LevelModel}, {env.MarksPerItem, env.LevelModel}, {env.MarksPerEpoch, env.LevelModel},
		{env.MarksConstant, env.LevelObserved},
	}
	alone := func(in env.Instance, seed uint64, o played) []float64 {
		forgetSums()
		return playSums(t, in, seed, o, 300)
	}
	for _, o := range options {
		want := alone(in, 1, o)
		plain := alone(short, 1, o)
		forgetSums()
		for range 2 { // each meets what the others left
			if !slices.Equal(playSums(t, short, 1, o, 300), plain) {
				t.Errorf("%+v: after others a world that does not change brings something else", o)
			}
			if !slices.Equal(playSums(t, in, 1, o, 300), want) {
				t.Errorf("%+v: after others a world that changes brings something else", o)
			}
			if slices.Equal(playSums(t, in, 2, o, 300), want) {
				t.Errorf("%+v: another seed brings the same", o)
			}
		}
		was := short.Sources[0].Rate
		short.Sources[0].Rate *= 2
		if got := playSums(t, short, 1, o, 300); !slices.Equal(got, alone(short, 1, o)) || slices.Equal(got, plain) {
			t.Errorf("%+v: once a rate was changed in place, a world brings what it brought before", o)
		}
		short.Sources[0].Rate = was
	}
}

// The sums of epochs bring what the items do: at sources that publish often and rarely,
// in batches, within a window, with marks, before and after a change.
func TestSumsAgainstItems(t *testing.T) {
	in := env.Instance{ID: "all rates", Budget: 1}
	for k, rate := range []float64{0, .003, .05, .4, 1, 3, 7.9, 8, 50} {
		for _, window := range []float64{math.Inf(1), 2.6} {
			s := env.NewSource(fmt.Sprint(len(in.Sources)), rate, .1+.2*float64(k%3), 2)
			s.Window, s.Batch = window, 1+k%2
			in.Sources = append(in.Sources, s)
		}
	}
	busy := slices.Clone(in.Sources)
	for i := range busy {
		busy[i].Rate = in.Sources[len(busy)-1-i].Rate
	}
	in.Changes = []env.Change{{At: 150, Sources: busy}}
	for _, marks := range []env.Marks{env.MarksConstant, env.MarksPerItem, env.MarksPerEpoch} {
		t.Run(string(marks), func(t *testing.T) {
			forgetSums()
			sums := playSums(t, in, 3, played{marks, env.LevelModel}, 400)
			w, err := env.NewPoisson(in, 3, env.PoissonOptions{Marks: marks, Items: true, Overrun: true})
			if err != nil {
				t.Fatal(err)
			}
			for n, k := 0, 0; n < 400; n++ {
				var crawl []int
				for i := n % 3; i < len(in.Sources); i += 3 {
					crawl = append(crawl, i)
				}
				got, err := w.Step(crawl)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range got {
					if d := math.Abs(sums[k] - c.Interest); !(d <= 1e-11*(1+c.Interest)) {
						t.Fatalf("epoch %d, source %d: %v by sums, %v by items", n, c.Source, sums[k], c.Interest)
					}
					k++
				}
			}
		})
	}
}

// A world keeps the items of crawls for those that read them, and for nobody else.
func TestItemsForTheirReaders(t *testing.T) {
	for _, tt := range []struct {
		policy string
		reads  bool
	}{
		{"forecast", true}, {"certainty", true}, {"miniflux", true}, {"commafeed", true},
		{"lspe", false}, {"salmut", false}, {"q-whittle", false}, {"nutch", false}, {"stormcrawler", false},
		{"freshrss", false}, {"round-robin", false},
	} {
		t.Run(tt.policy, func(t *testing.T) {
			items := 0
			count := func(_ int, _ float64, crawls []env.Crawled) error {
				for _, c := range crawls {
					items += len(c.Items)
				}
				return nil
			}
			_, err := PoissonScene(env.Paper(1), env.MarksConstant).Play(t.Context(), Play{
				Entry: find(t, tt.policy)[0], Level: env.LevelOnline, Seed: 1, Epochs: 200, Evaluation: -1,
				Watch: func(learner.Learner) Watcher { return count },
			})
			if err != nil {
				t.Fatal(err)
			}
			if (items > 0) != tt.reads {
				t.Errorf("its crawls bring back %d items", items)
			}
		})
	}
}

// Worlds on several goroutines share sums.
func TestSumsAreSafe(t *testing.T) {
	in := env.Lognormal(20, 1, 1)
	forgetSums()
	want := playSums(t, in, 1, played{env.MarksConstant, env.LevelModel}, 500)
	forgetSums()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if !slices.Equal(playSums(t, in, 1, played{env.MarksConstant, env.LevelModel}, 500), want) {
				t.Error("next to others a world brings something else")
			}
		})
	}
	all.Wait()
}

// What is kept for worlds to come is bounded, and worlds of too many sources keep
// nothing.
func TestSumsAreBounded(t *testing.T) {
	forgetSums()
	// Nothing is left of an item after an epoch, so that a crawl needs the sums of two
	// epochs, and a run is kept.
	source := env.NewSource("", .5, 42, 1)
	in := env.Instance{ID: "brief", Budget: 1, Sources: slices.Repeat([]env.Source{source}, 100_000)}
	all := make([]int, len(in.Sources))
	for i := range all {
		all[i] = i
	}
	for seed := range uint64(4) {
		w, err := PoissonScene(in, env.MarksConstant).Open(seed, env.LevelOnline, true)
		if err != nil {
			t.Fatal(err)
		}
		w.(env.ItemKeeper).DropItems()
		for n := range 8 * env.SumsRun {
			var crawl []int
			if n%env.SumsRun == 9 {
				crawl = all
			}
			if _, err := w.Step(crawl); err != nil {
				t.Fatal(err)
			}
		}
		var total int64
		for _, s := range recentSums.list {
			total += s.kept.Load()
		}
		if own := recentSums.list[0].kept.Load(); own < mostSums*9/10 || own > mostSums || total > 2*own {
			t.Errorf("seed %d keeps %d sums, and with those before it %d", seed, own, total)
		}
	}
	for _, sources := range []int{20, 5000} { // worlds that keep no sums take room, too
		forgetSums()
		in.Sources = slices.Repeat(in.Sources[:1], sources)
		for seed := range uint64(mostWorlds + 10) {
			shareSums(in, env.MarksConstant, seed)
		}
		worlds := len(recentSums.list)
		if room := worlds * sources * int(unsafe.Sizeof(source)); worlds > mostWorlds || room > 8*mostSums {
			t.Errorf("%d worlds of %d sources are kept, whose instances take %d bytes", worlds, sources, room)
		}
	}
	many := env.Instance{Sources: slices.Repeat(in.Sources[:1], mostSums/env.SumsRun+1)}
	if got := shareSums(many, env.MarksConstant, 9); got != nil {
		t.Error("sums of too many sources are kept")
	}
}
