package forecast

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

var fullPages = flag.Bool("pages", false, "run TestPings and TestBits on ten instances, and print their tables")

// pageWorld is a world of pages in which what is shown may be other than it is.
type pageWorld struct {
	*env.Pages
	r       *stream.Rand
	fresh   float64 // importance times epochs in which copies were fresh
	bit     func(changed bool) bool
	ping    func(i int32) int32 // the page of which it tells; −1 for none
	view    env.Observed
	crawled []env.Crawled
}

func newPageWorld(t testing.TB, in env.Instance, seed uint64) *pageWorld {
	t.Helper()
	w, err := env.NewPages(in, seed, env.PagesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &pageWorld{
		Pages: w, r: stream.New(seed, stream.Test),
		bit: func(changed bool) bool { return changed }, ping: func(i int32) int32 { return i },
	}
}

func (w *pageWorld) View() *env.Observed {
	if v := w.Pages.View(); w.view.Last == nil || v.Epoch != w.view.Epoch {
		w.view = *v
		w.view.Pings = nil
		for _, i := range v.Pings {
			if of := w.ping(i); of >= 0 {
				w.view.Pings = append(w.view.Pings, of)
			}
		}
	}
	return &w.view
}

func (w *pageWorld) Step(crawl []int) ([]env.Crawled, error) {
	got, err := w.Pages.Step(crawl)
	w.crawled = append(w.crawled[:0], got...)
	for k := range w.crawled {
		w.fresh += got[k].Interest
		w.crawled[k].Changed = w.bit(got[k].Changed)
	}
	return w.crawled, err
}

// share returns the share of the time, by importance, for which an agent keeps copies fresh.
func (w *pageWorld) share(t testing.TB, in env.Instance, a env.Agent, epochs int) float64 {
	t.Helper()
	envtest.Play(t, w, a, epochs)
	var total float64
	for _, s := range in.Sources {
		total += s.Interest
	}
	return w.fresh / total / float64(epochs)
}

// with returns the instance with pages that are changed.
func with(in env.Instance, change func(s *env.Source)) env.Instance {
	out := in
	out.Sources = append([]env.Source(nil), in.Sources...)
	for i := range out.Sources {
		change(&out.Sources[i])
	}
	return out
}

// instances returns how many instances are tried, and the first seed.
func instances() (n int, seed uint64) {
	if *fullPages {
		return 10, 9001
	}
	return 1, 1
}

// TestBits: the bit of a crawl does the work. With noise in its place, or its sign turned, pages
// are staler by far.
func TestBits(t *testing.T) {
	envtest.Alone(t)
	n, seed := instances()
	const epochs = 1500
	var whittle, learned, noise, turned float64
	for k := range n {
		in, err := env.Named(fmt.Sprint("pages:200:", seed+uint64(k)), 10)
		if err != nil {
			t.Fatal(err)
		}
		of := func(a env.Agent, bit func(w *pageWorld, changed bool) bool) float64 {
			w := newPageWorld(t, in, seed+uint64(k))
			if bit != nil {
				w.bit = func(changed bool) bool { return bit(w, changed) }
			}
			return w.share(t, in, a, epochs) / float64(n)
		}
		agent := func() env.Agent { return env.NewAgent(newLearner(in.Terms(), nil)) }
		whittle += of(env.NewAgent(baselines.NewWhittle(in)), nil)
		learned += of(agent(), nil)
		noise += of(agent(), func(w *pageWorld, _ bool) bool { return w.r.Float64() < .5 })
		turned += of(agent(), func(_ *pageWorld, changed bool) bool { return !changed })
	}
	t.Logf("share fresh: Whittle %.4f, learned %.4f (%.4f of it), from noise %.4f, from the bit turned %.4f",
		whittle, learned, learned/whittle, noise, turned)
	if learned < .97*whittle || noise > learned-.01 || turned > .9*whittle {
		t.Error("want at least .97 of Whittle, .01 less from noise, and less than .9 from the bit turned")
	}
}

// TestPings: what pings say is learned and keeps pages fresher, the more of it is right; pings
// of other pages are learned to be worth nothing.
func TestPings(t *testing.T) {
	envtest.Alone(t)
	n, seed := instances()
	const epochs = 1500
	for _, tt := range []struct{ recall, noise, gain float64 }{
		{.9, .1, .1}, {.9, 1, .07}, {.6, .1, .05}, {.3, .1, .015},
	} {
		t.Run(fmt.Sprintf("recall %v, %v false for a change", tt.recall, tt.noise), func(t *testing.T) {
			var without, pinged, frozen, others, known float64
			for k := range n {
				base, err := env.Named(fmt.Sprint("pages:200:", seed+uint64(k)), 10)
				if err != nil {
					t.Fatal(err)
				}
				in := with(base, func(s *env.Source) { s.Recall, s.False = tt.recall, tt.noise*s.Decay })
				of := func(a env.Agent, ping func(w *pageWorld, i int32) int32) float64 {
					w := newPageWorld(t, in, seed+uint64(k))
					if ping != nil {
						w.ping = func(i int32) int32 { return ping(w, i) }
					}
					return w.share(t, in, a, epochs) / float64(n)
				}
				agent := func() env.Agent { return env.NewAgent(newLearner(in.Terms(), nil)) }
				without += of(agent(), func(*pageWorld, int32) int32 { return -1 })
				l := newLearner(in.Terms(), nil)
				pinged += of(env.NewAgent(l), nil)
				frozen += of(env.NewAgent(l.Frozen()), nil)
				others += of(agent(), func(w *pageWorld, _ int32) int32 { return int32(w.r.Intn(200)) })
				known += of(env.NewAgent(baselines.NewGreedyNCIS(in)), nil)
			}
			t.Logf("share fresh: without pings %.3f, with them %.3f, frozen %.3f, "+
				"with those of other pages %.3f; greedy-ncis %.3f", without, pinged, frozen, others, known)
			if pinged < without+tt.gain || frozen < pinged || math.Abs(others-without) > .02 {
				t.Errorf("want %v more with pings, as much frozen, and without more with those of other pages", tt.gain)
			}
		})
	}
}

// TestFrozenImportance: a policy that learns no more keeps the importance that pages had.
func TestFrozenImportance(t *testing.T) {
	l := newLearner(env.Terms{
		Costs: []float64{1, 1}, Budget: 1, Importance: []float64{2, 1},
		Objective: env.Objective{Law: env.LawFreshness},
	}, nil)
	frozen := l.Frozen()
	l.SetImportance(1, 1e9)
	if got := frozen.Select(nil, &env.Online{Epoch: 9, Last: []int{-1, -1}}); !slices.Equal(got, []int{0}) {
		t.Errorf("it crawls %v; want page 0, the one that was worth more", got)
	}
}
