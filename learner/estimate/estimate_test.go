package estimate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"ephemera/env"
	"ephemera/env/stream"
)

func terms(n int) env.Terms { return env.Terms{Costs: make([]float64, n), Budget: 1} }

// draw draws what a crawl of the source finds at an age: Poisson items with
// marks of mean 1 times the interest.
func draw(r *stream.Rand, i int, s env.Source, age int, mark func(*stream.Rand) float64) env.Crawled {
	c := env.Crawled{Source: i, Age: age}
	for a := r.ExpFloat64() / s.Rate; a < min(float64(age), s.Window); a += r.ExpFloat64() / s.Rate {
		it := env.Item{Age: a, Interest: s.Interest * mark(r) * math.Exp(-s.Decay*a)}
		c.Items = append(c.Items, it)
		c.Interest += it.Interest
	}
	slices.Reverse(c.Items)
	return c
}

var markLaws = []struct {
	name string
	draw func(*stream.Rand) float64
}{
	{"constant", func(*stream.Rand) float64 { return 1 }},
	{"exponential", (*stream.Rand).ExpFloat64},
	{"heavy", func(r *stream.Rand) float64 { return math.Exp(2*r.NormFloat64() - 2) }},
	{"lognormal", func(r *stream.Rand) float64 { return math.Exp(r.NormFloat64() - .5) }},
}

// TestConverge: decay rates and inflows come near the true ones, at any scale of
// interest and under any law of ξ: without the correction for what the normal law
// of ln ξ gets wrong, the inflow under exponential marks is a quarter too large.
func TestConverge(t *testing.T) {
	src := []env.Source{
		env.NewSource("often", 20, .7, 1),
		env.NewSource("slow", 5, .05, 3),
		env.NewSource("rare", .5, .3, 10),
		env.NewSource("fast", 8, 2, .1),
	}
	for _, mark := range markLaws {
		for _, scale := range []float64{1, 1e-250, 1e200} {
			t.Run(fmt.Sprint(mark.name, scale), func(t *testing.T) {
				r := stream.New(3, stream.Test)
				e := New(terms(len(src)), 0, true)
				for n := range 1500 {
					for i, x := range src {
						x.Interest *= scale
						e.Add(draw(r, i, x, 1+r.Intn(8), mark.draw), n)
					}
					e.Fit()
				}
				for i, x := range src {
					off := .06
					if mark.name == "heavy" {
						off = .25
					}
					got, _, _ := e.Source(i)
					b, c := got.Rate*got.Interest/scale, got.Decay
					if math.Abs(c/x.Decay-1) > .1 || math.Abs(b/(x.Rate*x.Interest)-1) > off {
						t.Errorf("%s: decay %v, inflow %v; want %v, %v", x.Name, c, b, x.Decay, x.Rate*x.Interest)
					}
				}
			})
		}
	}
}

// TestDoubt: the errors that are reported are those that are made, also of a
// decay rate about which a source has shown nothing of its own.
func TestDoubt(t *testing.T) {
	for _, mark := range markLaws {
		if mark.name == "constant" || mark.name == "heavy" {
			continue // there decay rates are exact after a few items, here 12 crawls say little of the tails
		}
		r := stream.New(5, stream.Test)
		var zc, zb, zn, n, worlds float64
		for range 60 {
			var src []env.Source
			for range 20 {
				src = append(src, env.NewSource("", 3*math.Exp(.5*r.NormFloat64()), .3*math.Exp(.4*r.NormFloat64()), 1))
			}
			e := New(terms(len(src)), 0, true)
			for k := range 15 {
				for i, x := range src[1:] {
					e.Add(draw(r, i+1, x, 1+r.Intn(6), mark.draw), k)
				}
				e.Fit()
			}
			for i, x := range src {
				got, db, dc := e.Source(i)
				z := math.Pow(math.Log(got.Decay/x.Decay)/dc, 2)
				if i == 0 {
					zn += z
					worlds++
					continue
				}
				zc += z
				zb += math.Pow(math.Log(got.Rate*got.Interest/(x.Rate*x.Interest))/db, 2)
				n++
			}
		}
		for _, tt := range []struct {
			of     string
			square float64
		}{
			{"decay", zc / n},
			{"decay of a source not crawled", zn / worlds},
			{"inflow", zb / n},
		} {
			if z := math.Sqrt(tt.square); z < .7 || z > 1.4 {
				t.Errorf("%s, %s: errors are %.2f of those reported, root of the mean square; want .7 to 1.4",
					mark.name, tt.of, z)
			}
		}
	}
}

// TestFirstCrawl: a first crawl that shows the last twenty items of a feed, most of
// them from before the start, tells the rate as exactly as twenty items can, also where
// one or two more have a wrong date.
func TestFirstCrawl(t *testing.T) {
	r := stream.New(4, stream.Test)
	for _, rate := range []float64{.04, .4, 4} {
		var mean float64
		for k := range 200 {
			c := env.Crawled{Age: 3}
			for a := r.ExpFloat64() / rate; len(c.Items) < 20; a += r.ExpFloat64() / rate {
				c.Items = append(c.Items, env.Item{Age: a, Interest: math.Exp(-.2 * a)})
			}
			for range k % 3 {
				c.Items = append(c.Items, env.Item{Age: 490_000, Interest: 1})
			}
			slices.Reverse(c.Items)
			e := New(terms(1), 0, true)
			e.Add(c, 3)
			mean += e.Sources[0].Rate.Log / 200
		}
		if off := mean - math.Log(rate); math.Abs(off) > .08 {
			t.Errorf("rate %v: ln of the estimate is off by %.3f", rate, off)
		}
	}
}

// TestBackdated: an item that a source shows as new, and that is dated long before all others of it, counts
// as one and says nothing of the time between, however many of them there are.
func TestBackdated(t *testing.T) {
	for _, every := range []int{1, 10, 1000} {
		for _, truncated := range []bool{false, true} {
			e, r, items := New(terms(1), 1000, true), stream.New(6, stream.Test), 0
			for k := range 700 {
				c := draw(r, 0, env.NewSource("", 2, 1e-9, 1), 4, func(*stream.Rand) float64 { return 1 })
				c.Truncated = truncated
				for j := range c.Items {
					if items++; k >= 500 && items%every == 0 {
						c.Items[j].Age = 17_000
					}
				}
				slices.SortFunc(c.Items, func(a, b env.Item) int { return cmp.Compare(b.Age, a.Age) })
				e.Add(c, 4*k)
				e.Fit()
			}
			if got, _, _ := e.Source(0); math.Abs(got.Rate/2-1) > .1 {
				t.Errorf("one in %d backdated, truncated %v: %.3f items per epoch; want 2", every, truncated, got.Rate)
			}
		}
	}
}

// TestHorizon: after the rate of a source has changed, the estimate follows within
// twice the horizon; without a horizon it stays at the mean of all time.
func TestHorizon(t *testing.T) {
	for _, horizon := range []float64{0, 300} {
		e := New(terms(8), horizon, true)
		r := stream.New(2, stream.Test)
		for n := range 1300 {
			for i := range 8 {
				x := env.NewSource("", 10, .3, 1)
				if n >= 1000 && i < 2 {
					x.Rate = 3
				}
				e.Add(draw(r, i, x, 2, (*stream.Rand).ExpFloat64), 2*n)
			}
			e.Fit()
		}
		got, _, _ := e.Source(0)
		b := got.Rate * got.Interest
		if follows := math.Abs(b/3-1) < .3; follows != (horizon > 0) {
			t.Errorf("horizon %v: inflow %.2f, 600 epochs after it went from 10 to 3", horizon, b)
		}
	}
}

// TestWindow: a window is found, its inflow is that of the epochs that can be
// seen, and where there is none, none is found.
func TestWindow(t *testing.T) {
	for _, window := range []float64{.3, 1.5, 4, 20, math.Inf(1)} {
		for seed := range uint64(20) {
			r := stream.New(seed, stream.Test)
			x := env.NewSource("", 2, .2, 1)
			x.Window = window
			e := New(terms(1), 0, true)
			for n := range 200 {
				e.Add(draw(r, 0, x, 1+r.Intn(30), (*stream.Rand).ExpFloat64), n)
				e.Fit()
			}
			got, _, _ := e.Source(0)
			m := got.Window
			if math.IsInf(window, 1) != math.IsInf(m, 1) || m < math.Inf(1) && math.Abs(m/window-1) > .12 {
				t.Errorf("window %v, seed %d: found %v", window, seed, m)
			}
			// Within a short window decay and inflow cannot be distinguished, but what
			// a crawl finds is known.
			s := min(window, 10)
			got.Window = math.Inf(1)
			if found, want := got.Harvest(s), env.NewSource("", 2, .2, 1).Harvest(s); math.Abs(found/want-1) > .45 {
				t.Errorf("window %v, seed %d: %v is found; want %v", window, seed, found, want)
			}
		}
	}
}

// TestDatedWhenFound: items that all have the age 0, as those of a feed that dates them when it
// is fetched, tell of no window and, where some may be missed, of no rate without end, and what is known of
// this source and of others stays a number.
func TestDatedWhenFound(t *testing.T) {
	for _, truncated := range []bool{false, true} {
		e := New(terms(2), 0, true)
		for k := range 100 {
			two := []env.Item{{Interest: 1}, {Interest: 1}}
			e.Add(env.Crawled{Source: 0, Age: 10, Items: two, Truncated: truncated}, k)
			e.Add(env.Crawled{Source: 1, Age: 10, Items: []env.Item{{Age: 3, Interest: 1}}}, k)
			e.Fit()
		}
		for i := range 2 {
			if s, _, _ := e.Source(i); !(math.Abs(s.Rate/.2-1) < .1) && i == 0 || math.IsNaN(s.Rate) {
				t.Errorf("source %d is thought to publish %v items per epoch; want .2, and a number for both; "+
					"truncated %v", i, s.Rate, truncated)
			}
		}
	}
}

// TestShows: a source that once showed one item, and shows more at once later, is not thought to show one for ever.
func TestShows(t *testing.T) {
	e := New(terms(1), 1000, true)
	items := []env.Item{{Age: 9, Interest: 1}, {Age: 5, Interest: 1}, {Age: 1, Interest: 1}}
	for k, tt := range []struct {
		found     int
		truncated bool
		shows     float64
	}{{3, false, 0}, {1, true, 1}, {0, false, 1}, {3, false, 3}, {2, false, 3}, {2, true, 2}} {
		e.Add(env.Crawled{Age: 10, Items: items[3-tt.found:], Truncated: tt.truncated}, 10*k)
		if got := e.Shows(0); got != tt.shows {
			t.Errorf("crawl %d, which found %d: it is thought to show %v items; want %v", k, tt.found, got, tt.shows)
		}
	}
}

// TestClock: hours, days and parts of the hour are those of the calendar.
func TestClock(t *testing.T) {
	for _, length := range []float64{600, 3600, 14400} {
		for n := -3000; n < 3000; n += 7 {
			now := time.Unix(int64((float64(n)-.5)*length), 0).UTC()
			want := [3]int{now.Hour(), hours + int(now.Weekday()), hours + days}
			if length < 3600 {
				want[2] += now.Minute() / 5
			}
			if got := (clock{0, length}).at(n); got != want {
				t.Fatalf("epoch %d of %v s has the bins %v; want %v", n, length, got, want)
			}
		}
	}
}

// TestProfiles: the variance of profiles beyond chance is found, and is none
// where counts are Poisson.
func TestProfiles(t *testing.T) {
	r := stream.New(7, stream.World)
	for _, v := range []float64{0, .04, .25} {
		e := New(env.Terms{Costs: make([]float64, 200), Length: 3600}, 0, true)
		for i := range e.Sources {
			c := &e.Sources[i].Calendar
			for h := range hours {
				mean := 50 * max(0, 1+math.Sqrt(v)*r.NormFloat64())
				c.Items[h], c.Epochs[h] = float32(max(0, mean+math.Sqrt(mean)*r.NormFloat64())), 1
			}
		}
		e.fitProfiles()
		if got := e.Vary[0]; math.Abs(got-v) > .003+.1*v {
			t.Errorf("variance %v between bins; found %v", v, got)
		}
	}
	// With what is found, a bin of 50 leans as the best linear estimate does.
	var c calendar
	for k, n := range []float32{60, 40, 50, 50, 50, 50, 50} {
		c.Items[hours+k], c.Epochs[hours+k] = n, 1
	}
	if c.shape(&even, variances{1: .02}); math.Abs(float64(c.Own[hours])-1.1) > 1e-6 {
		t.Errorf("60 of 50 with variance .02: share %v; want 1.1", c.Own[hours])
	}
}

// TestBursts: of a source that publishes in bursts, as many items as a burst has count as one,
// so that the hours of its bursts are not taken for hours at which it publishes; a wave of the
// day is not taken for bursts.
func TestBursts(t *testing.T) {
	for _, tt := range []struct {
		name        string
		burst, wave float64
		spread, off float64 // φ, and root mean square by which the hours are off at most
	}{
		{"bursts of ten", 10, 0, 10, .03},
		{"bursts of three by day", 3, .8, 3, .1},
		{"by day", 1, .8, 1, .1},
		{"evenly", 1, 0, 1, .03},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const sources, every = 40, 6
			r := stream.New(11, stream.World)
			e := New(env.Terms{Costs: make([]float64, sources), Length: 3600}, 1000, true)
			wave := func(hour int) float64 { return 1 + tt.wave*math.Cos(2*math.Pi*float64(hour)/24) }
			for n := every; n <= 24*60; n += every {
				for i := range sources {
					c := env.Crawled{Source: i, Age: every}
					for k := every - 1; k >= 0; k-- {
						for at := r.ExpFloat64(); at < .1*wave((n-k-1)%24); at += r.ExpFloat64() {
							for range int(tt.burst) {
								c.Items = append(c.Items, env.Item{Age: float64(k) + .5, Interest: 1})
							}
						}
					}
					e.Add(c, n)
				}
				e.Fit()
			}
			var square, phi float64
			for i := range sources {
				c := &e.Sources[i].Calendar
				phi += float64(c.Phi) / sources
				for hour := range hours {
					off := float64(c.Own[hour]) - wave(hour)
					square += off * off / (sources * hours)
				}
			}
			if off := math.Sqrt(square); off > tt.off || math.Abs(phi/tt.spread-1) > .2 {
				t.Errorf("φ is %.2f, the hours are off by %.3f; want %v, and at most %v", phi, off, tt.spread, tt.off)
			}
		})
	}
}

// TestShareAsItGoes: what is kept from one epoch to the next is what is found anew.
func TestShareAsItGoes(t *testing.T) {
	e := New(env.Terms{Costs: make([]float64, 2), Length: 1200}, 0, true)
	for n := 6; n <= 1200; n++ {
		if n%6 == 0 {
			for i := range 2 {
				item := env.Item{Age: float64(1 + (n/72*(i+1))%5), Interest: 1}
				e.Add(env.Crawled{Source: i, Age: 6, Items: []env.Item{item}}, n)
			}
		}
		if n%7 > 4 {
			continue // the next one that is looked at is not the next one
		}
		for k := range 4 {
			alpha := []float64{.5, .9, .9, .5}[k]
			if k == 2 {
				e.Fit()
			}
			for _, step := range []int{-1, 1} {
				share, ofAll := e.Share(0, n, step, 9.5, alpha)
				if want, wantAll := e.Clone().Share(0, n, step, 9.5, alpha); share != want || ofAll != wantAll {
					t.Fatalf("epoch %d, by %d, α = %v: %v and %v; want %v and %v",
						n, step, alpha, share, ofAll, want, wantAll)
				}
			}
		}
		e.Fit()
	}
}

// TestParts: where epochs are short, the minutes of the hour are found at which a source
// publishes.
func TestParts(t *testing.T) {
	e := New(env.Terms{Costs: make([]float64, 2), Length: 300}, 0, true)
	late := []int{0, 5} // epochs from an item to the crawl at the full hour
	for n := 12; n <= 1200; n += 12 {
		for i, k := range late {
			e.Add(env.Crawled{Source: i, Age: 12, Items: []env.Item{{Age: float64(k) + .5, Interest: 1}}}, n)
		}
		e.Fit()
	}
	for i, k := range late {
		if share, _ := e.Share(i, 1200-k, -1, 1, .5); share < 10 {
			t.Errorf("an item an hour, %d epochs before the full one: its epoch has %.1f of the mean; want 12",
				k, share)
		}
	}
}

// TestShare holds the sum over hours against that over their epochs one by one, for epochs
// that fill hours and days and for those that do not, from anywhere in an hour.
func TestShare(t *testing.T) {
	r := stream.New(3, stream.Test)
	for _, seconds := range []float64{61, 300, 720, 1200, 1700, 3600, 5400, 14400} {
		e := New(env.Terms{Costs: make([]float64, 1), Length: seconds, Start: 1_700_001_234}, 0, true)
		for k := range e.Profile {
			e.Profile[k], e.Sources[0].Calendar.Own[k] = float32(2*r.Float64()), float32(2*r.Float64())
		}
		for _, alpha := range []float64{.3, .9, .97, .99995} {
			for _, n := range []float64{1, 2, 2.5, 7, 40, 160, math.Inf(1)} {
				at, step := r.Intn(5000), 2*r.Intn(2)-1
				share, ofAll := e.Share(0, at, step, n, alpha)
				var want, wantAll float64
				w, k, hour := 1-alpha, at+max(0, step), -1
				for j := 0; j < lookAround; j, k, w = j+1, k+step, w*alpha {
					bins := e.clock.at(k)
					if now := bins[0] + hours*bins[1]; now != hour {
						if hour = now; w <= negligibleShare*(1-alpha) {
							break
						}
					}
					of := func(p *profile) float64 {
						return float64(p[bins[0]])*float64(p[bins[1]])*float64(p[bins[2]]) - 1
					}
					wantAll += w * of(&e.Profile)
					if last := min(float64(j+1), n); last > float64(j) { // of which the last may be a part
						want += (math.Pow(alpha, float64(j)) - math.Pow(alpha, last)) * of(&e.Sources[0].Calendar.Own)
					}
				}
				want, wantAll = 1+want/(1-math.Pow(alpha, n)), 1+wantAll
				if math.Abs(share-want) > 1e-5 || math.Abs(ofAll-wantAll) > 1e-5 || share < 0 {
					t.Errorf("epochs of %v s, %v of them from %d by %d, α = %v: %v of its mean, all %v; want %v and %v",
						seconds, n, at, step, alpha, share, ofAll, want, wantAll)
				}
			}
		}
	}
}

// After a year without items the rate of a source that publishes one an hour rises slowly, since
// its last 300 items count with the silence before them (docs/online.md).
func TestAfterSilence(t *testing.T) {
	const year, day = 365 * 24, 24
	e := New(env.Terms{Start: 1_699_920_000, Length: 3600, Costs: []float64{1}, Objective: env.Delay}, 1000, true)
	reached := map[float64]int{} // share of the true rate: days
	last := -1
	for epoch := 0; epoch < year+200*day; epoch += 2 {
		c := env.Crawled{Age: epoch - last}
		if last = epoch; epoch > year {
			c.Items = []env.Item{{Age: 1.5, Interest: 1}, {Age: .5, Interest: 1}}
		}
		e.Add(c, epoch)
		e.Fit()
		got, _, _ := e.Source(0)
		for _, share := range []float64{.1, .5} {
			if _, ok := reached[share]; !ok && epoch > year && got.Rate >= share {
				reached[share] = (epoch - year) / day
			}
		}
	}
	t.Logf("a tenth of the rate after %d days, half after %d", reached[.1], reached[.5])
	if reached[.1] != 38 || reached[.5] != 142 {
		t.Error("want 38 and 142 days, as the page says")
	}
}
