package env_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// pinged are pages of all kinds: fast and slow, with pings and without, in a world that
// changes.
func pinged() env.Instance {
	in := env.Instance{ID: "pinged", Budget: 3}
	for i, rate := range []float64{.001, .03, .2, .7, 3, .05, .05, 12} {
		s := env.NewPage(fmt.Sprint("p", i), rate, 1+float64(i%3))
		if i > 2 {
			s.Recall, s.False = .2*float64(i%6), .01*float64(i)
		}
		s.Cost = 1 + .5*float64(i%2)
		in.Sources = append(in.Sources, s)
	}
	one, two := in.Sources[3], in.Sources[4]
	one.Decay, one.False, two.Recall = .1, 0, .1
	in.Changes = []env.Change{{At: 60, Sources: []env.Source{one, two}}}
	return in
}

func TestPagesConform(t *testing.T) {
	for _, o := range []env.PagesOptions{{}, {NoMean: true}, {Overrun: true}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			envtest.World(t, func() env.World { return must(env.NewPages(pinged(), 7, o)) }, o.Overrun)
		})
	}
}

// TestPagesInTheMean: crawls bring what the mean dynamics say and show a change as often as
// that is made, and pings come at the rates of the page, whenever it is crawled.
func TestPagesInTheMean(t *testing.T) {
	const n = 120_000
	for _, tt := range []struct {
		rate, recall, noise float64
		age                 int
	}{{.02, .9, .01, 20}, {.3, .5, .3, 3}, {4, .1, .2, 1}} {
		t.Run(fmt.Sprint(tt.rate), func(t *testing.T) {
			s := env.NewPage("a", tt.rate, 2)
			s.Recall, s.False = tt.recall, tt.noise
			other := env.NewPage("b", 1, 1)
			in := env.Instance{ID: "a", Budget: 1, Sources: []env.Source{s, other}}
			w := must(env.NewPages(in, 3, env.PagesOptions{}))
			var earned, changed, crawls, pings, right, pingsBefore float64
			pinged := false
			for epoch := range n {
				for range w.View().Pings {
					pings++
					pinged = true
				}
				var crawl []int
				if epoch%tt.age == tt.age-1 {
					crawl = []int{0}
				}
				got, err := w.Step(crawl)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range got {
					crawls++
					earned += c.Interest
					if c.Changed {
						changed++
					}
					if pinged {
						if pingsBefore++; c.Changed {
							right++
						}
					}
					pinged = false
				}
			}
			age := float64(tt.age)
			near := func(what string, got, want, of float64) { // of: how many of a Poisson number
				t.Helper()
				if math.Abs(got-want) > 5*want/math.Sqrt(of) {
					t.Errorf("%s %v; want %v", what, got, want)
				}
			}
			near("a crawl brings", earned/crawls, s.Harvest(age), crawls)
			near("pings per epoch are", pings/n, tt.rate*tt.recall+tt.noise, pings)
			near("changes shown are", changed/crawls, -math.Expm1(-tt.rate*age), changed)
			// A crawl with a ping has changed but where all of its pings were false and no change
			// came without one.
			no := math.Exp(-tt.rate * age)
			silent := math.Exp(-(tt.rate*tt.recall + tt.noise) * age)
			want := 1 - no*(1-math.Exp(-tt.noise*age))/(1-silent)
			near("of crawls after a ping have changed", right/pingsBefore, want, right)
		})
	}
}

// Where the rate of a page changes, a copy that was stale before stays so: the mean state is what
// crawls bring in the mean, also in the world of mean dynamics.
func TestMeanOfPagesThatChange(t *testing.T) {
	in := env.Instance{ID: "a", Budget: 1, Sources: []env.Source{env.NewPage("a", .5, 2), env.NewPage("b", 1, 1)}}
	slow, fast := in.Sources[0], in.Sources[0]
	slow.Decay, fast.Decay = .02, 1
	in.Changes = []env.Change{{At: 3, Sources: []env.Source{slow}}, {At: 10, Sources: []env.Source{fast}}}
	in = in.Pages()
	play := func(w env.World) (mean, earned float64) {
		for epoch := range 12 {
			if epoch == 1 {
				must(w.Step([]int{0}))
			} else {
				must(w.Step(nil))
			}
		}
		mean = w.View().Mean[0]
		return mean, must(w.Step([]int{0}))[0].Interest
	}
	const seeds = 20_000
	var mean, earned float64
	for seed := range uint64(seeds) {
		x, found := play(must(env.NewPages(in, seed, env.PagesOptions{})))
		mean, earned = x, earned+found/seeds
	}
	near(t, "mean state", mean, earned, .02)
	dynamics, _ := play(must(env.NewMean(in, false)))
	near(t, "mean dynamics", dynamics, mean, 1e-12)
}

// TestPagesAlike: what a crawl shows does not depend on the crawls before the last one, nor on
// those of other pages: two worlds of a seed are one.
func TestPagesAlike(t *testing.T) {
	in := pinged()
	r := stream.New(1, stream.Test)
	a, b := must(env.NewPages(in, 5, env.PagesOptions{})), must(env.NewPages(in, 5, env.PagesOptions{}))
	c := must(env.NewPages(in, 6, env.PagesOptions{}))
	differ := 0
	for range 300 {
		if fmt.Sprint(a.View().Pings) != fmt.Sprint(b.View().Pings) {
			t.Fatalf("epoch %d: pings %v and %v", a.View().Epoch, a.View().Pings, b.View().Pings)
		}
		if fmt.Sprint(a.View().Pings) != fmt.Sprint(c.View().Pings) {
			differ++
		}
		crawl := []int{r.Intn(8)}
		if _, err := a.Step(crawl); err != nil {
			t.Fatal(err)
		}
		for _, w := range []*env.Pages{b, c} {
			if _, err := w.Step(nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if differ < 100 {
		t.Errorf("pings of another seed differ at %d of 300 epochs", differ)
	}
}

// TestRarePings: a page that hardly ever changes, whose changes hardly ever send a ping, or
// that is hardly ever pinged falsely costs no more time than others.
func TestRarePings(t *testing.T) {
	in := env.Instance{ID: "rare", Budget: 1}
	for i := range 3 {
		s := env.NewPage(fmt.Sprint("p", i), []float64{1e-25, 1, 1}[i], 1)
		s.Recall, s.False = []float64{1, 1e-25, 0}[i], []float64{0, 0, 1e-25}[i]
		in.Sources = append(in.Sources, s)
	}
	w := must(env.NewPages(in, 1, env.PagesOptions{}))
	for epoch := range 300 {
		if len(w.View().Pings) > 0 {
			t.Fatalf("epoch %d: pings of %v", epoch, w.View().Pings)
		}
		got, err := w.Step([]int{0})
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Changed || got[0].Interest != 1 {
			t.Fatalf("epoch %d: a crawl shows %+v; want a copy that was fresh all the time", epoch, got[0])
		}
	}
}

// TestPageFile: a page in a file has change and importance, and what does not fit is said.
func TestPageFile(t *testing.T) {
	const page = "budget = 1\n[[source]]\nname = 'a'\nchange = 0.25\nimportance = 3\n"
	in, err := env.Unmarshal("f.toml", []byte(page+"recall = 0.9\nfalse = 0.1\n[[source]]\n"+
		"name = 'b'\nchange = 1\nimportance = 0\n[[change]]\nat = 9\n[[change.source]]\nname = 'a'\nchange = 0.5\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := env.NewPage("a", .25, 3)
	a.Recall, a.False = .9, .1
	later := a
	later.Decay = .5
	if in.Sources[0] != a || in.Changes[0].Sources[0] != later || in.Objective.Law != env.LawFreshness {
		t.Errorf("read %+v", in)
	}
	terms := in.Terms()
	if len(terms.Importance) != 2 || terms.Importance[0] != 3 || terms.Importance[1] != 0 {
		t.Errorf("terms have importance %v", terms.Importance)
	}
	if _, err := env.NewPages(in, 1, env.PagesOptions{}); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct{ name, add, want string }{
		{"change of 0", "[[source]]\nname = 'b'\nchange = 0\nimportance = 1", "change is 0; allowed is a finite rate"},
		{"importance below 0", "[[source]]\nname = 'b'\nchange = 1\nimportance = -1", "importance is -1; allowed is"},
		{"no importance", "[[source]]\nname = 'b'\nchange = 1",
			"source 2 lacks the key importance; needed are name, change and importance"},
		{"pings of items", "[[source]]\nname = 'b'\nrate = 1\ndecay = 1\ninterest = 1\nrecall = 0.5",
			"recall is 0.5 and false 0; they belong to pages"},
		{"rate", "rate = 1", "source 1 has the key rate; a page has change and importance"},
		{"window in a change", "[[change]]\nat = 9\n[[change.source]]\nname = 'a'\nwindow = 4",
			"change 1, source \"a\" has the key window; a page has change and importance"},
		{"recall above 1", "recall = 1.5", "recall is 1.5; allowed is a share of the changes, 0 to 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := env.Unmarshal("f.toml", []byte(page+tt.add))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v; want one line with %q", err, tt.want)
			}
		})
	}
}

// TestPagesRefused: world pages says what it has no place for.
func TestPagesRefused(t *testing.T) {
	other := pinged()
	changed := other.Sources[0]
	changed.Interest = 5
	other.Changes = []env.Change{{At: 5, Sources: []env.Source{changed}}}
	batches := pinged().WithLaw("batches", 1)
	windowed := pinged().WithLaw("window", 1)
	fast, noisy := pinged(), pinged()
	fast.Sources[0].Decay, noisy.Sources[1].False = 1e9, 1e9
	for _, tt := range []struct {
		name, want string
		in         env.Instance
	}{
		{"importance that changes", "importance is 5 from epoch 5 on; allowed is 1", other},
		{"items", "the law is exponential; allowed in world pages is freshness", env.Paper(1)},
		{"batches", "batch 20; allowed in world pages are inf and 1", batches},
		{"window", "window is 2000 and batch 1; allowed in world pages are inf and 1", windowed},
		{"changes without number", `source 1 ("p0"): change is 1e+09; allowed in world pages are at most`, fast},
		{"pings without number", `source 2 ("p1"): false is 1e+09; allowed in world pages are at most`, noisy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := env.NewPages(tt.in, 1, env.PagesOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v; want %q", err, tt.want)
			}
		})
	}
}

// TestPageFamilies: the families of pages have the medians, the correlation and the pings that
// they are said to have.
func TestPageFamilies(t *testing.T) {
	const n = 20_000
	for _, tt := range []struct {
		name   string
		rho    float64
		pinged bool
	}{{"pages", 0, false}, {"pages-correlated", .8, false}, {"pages-pinged", 0, true}} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := env.Named(fmt.Sprint(tt.name, ":", n, ":3"), 1000)
			if err != nil {
				t.Fatal(err)
			}
			var z, zz, mu, mumu, both, recall, noise float64
			for _, s := range in.Sources {
				x, y := math.Log(s.Decay*20), math.Log(s.Interest)
				z, zz, mu, mumu, both = z+x/n, zz+x*x/n, mu+y/n, mumu+y*y/n, both+x*y/n
				recall, noise = recall+s.Recall/n, noise+s.False/s.Decay/n
			}
			for _, v := range []struct {
				what      string
				got, want float64
			}{
				{"mean ln 20Δ", z, 0}, {"its square", zz, 1}, {"mean ln μ", mu, 0}, {"its square", mumu, 1},
				{"correlation", both, tt.rho},
			} {
				if math.Abs(v.got-v.want) > .04 {
					t.Errorf("%s is %v; want %v", v.what, v.got, v.want)
				}
			}
			if (recall > 0) != tt.pinged || tt.pinged && (math.Abs(recall-.6) > .02 || math.Abs(noise-.55) > .02) {
				t.Errorf("mean recall %v, false pings for a change %v", recall, noise)
			}
		})
	}
}
