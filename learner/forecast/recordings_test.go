package forecast

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/env/stream"
)

// synthetic is a recording whose structure is known. All of it is drawn from
// seed: sources with log-normal rates of about one item in two hours.
type synthetic struct {
	name    string
	own     bool    // each source has hours of its own
	daily   float64 // amplitude of the day's wave, below 1
	weekend float64 // share published at weekends; 0 means 1
	sigma   float64 // of ln ξ
	drift   float64 // s.d. of ln rate over a week, mean-reverting
	burst   float64 // chance of each further child of an item, below ½
	least   float64 // what is earned with all ingredients, at least, over what is with constant rates
}

// record makes the recording.
func (s synthetic) record(t testing.TB, seed uint64) *env.Recording {
	t.Helper()
	const days = 112
	type row struct {
		at      float64
		source  int
		utility float64
	}
	var rows []row
	for i := range 40 {
		r := stream.New(seed, stream.World, uint64(i))
		rate := .5 * math.Exp(r.NormFloat64()) * (1 - s.burst/(1-s.burst)) // per hour
		scale := 100 * math.Exp(r.NormFloat64())
		phase := 14.0
		if s.own {
			phase = 24 * r.Float64()
		}
		drift := s.drift * r.NormFloat64()
		var put func(at float64)
		put = func(at float64) {
			rows = append(rows, row{at, i, scale * math.Exp(s.sigma*r.NormFloat64()-s.sigma*s.sigma/2)})
			for s.burst > 0 && r.Float64() < s.burst {
				put(at + 3*r.ExpFloat64())
			}
		}
		for h := range 24 * days {
			keep := math.Exp(-1. / 168)
			drift = keep*drift + s.drift*math.Sqrt(1-keep*keep)*r.NormFloat64()
			wave := 1 + s.daily*math.Cos(2*math.Pi*(float64(h%24)+.5-phase)/24)
			now := rate * math.Exp(drift-s.drift*s.drift/2) * wave
			if s.weekend > 0 && h/24%7 >= 5 {
				now *= s.weekend
			}
			for at := r.ExpFloat64() / now; at < 1; at += r.ExpFloat64() / now {
				put(float64(h) + at)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	b.WriteString("source,published_unix,utility\n")
	for _, r := range rows {
		if r.at < 24*days {
			fmt.Fprintf(&b, "%02d,%d,%.3f\n", r.source, 1704067200+int64(3600*r.at), r.utility)
		}
	}
	return parsed(t, b.String())
}

func parsed(t testing.TB, text string) *env.Recording {
	t.Helper()
	rec, err := env.PublishedColumns.Parse(context.Background(), "trace.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// replay plays the measured half of a recording and returns the reward per epoch.
func replay(t testing.TB, rec *env.Recording, budget float64, agent func(env.Terms, env.Instance) env.Agent) float64 {
	t.Helper()
	return replayFrom(t, rec, .5, budget, agent)
}

func replayFrom(
	t testing.TB, rec *env.Recording, split, budget float64, agent func(env.Terms, env.Instance) env.Agent,
) float64 {
	t.Helper()
	o := env.ReplayOptions{Epoch: time.Hour, Decay: .175, Budget: budget, Items: true, Split: split}
	in, err := rec.Fit(o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := env.NewReplay(rec, in, o)
	if err != nil {
		t.Fatal(err)
	}
	return stat.Mean(envtest.Play(t, w, agent(w.Terms(), in), 0), nil)
}

// cold knows nothing at first, and observes what items were worth after 48 hours.
func cold(set Settings) func(env.Terms, env.Instance) env.Agent {
	return func(terms env.Terms, _ env.Instance) env.Agent {
		l := newLearner(terms, &set)
		return env.NewAgent[env.Online](l).WithReport(l.Report).Late(48, env.Instance{})
	}
}

func fitted(_ env.Terms, in env.Instance) env.Agent { return env.NewAgent(baselines.NewWhittle(in)) }

// ingredients are what a learner has, one more in each.
var ingredients = []struct {
	name string
	set  func(*Settings)
}{
	{"constant rates", func(s *Settings) { s.Profile, s.Horizon = false, 0 }},
	{"+ forgetting", func(s *Settings) { s.Profile = false }},
	{"+ profiles: all", func(*Settings) {}},
}

var grounds = []synthetic{
	{name: "Poisson", sigma: 1, least: .99},
	{name: "common day", sigma: 1, daily: .8, least: .995},
	{name: "own day", sigma: 1, daily: .8, own: true, least: 1.02},
	{name: "own day, weekend", sigma: 1, daily: .8, own: true, weekend: .4, least: 1.02},
	{name: "heavy tails", sigma: 2, least: .97},
	{name: "drift", sigma: 1, drift: .8, least: .995},
	{name: "bursts", sigma: 1, burst: .4, least: .99},
}

// TestSyntheticRecordings holds the learner against itself with constant rates, on
// recordings whose structure is known: what is there is found, and where nothing is
// there little is lost.
func TestSyntheticRecordings(t *testing.T) {
	envtest.Alone(t)
	worlds, parts := uint64(2), []int{0, 2}
	if *full {
		worlds, parts = 8, []int{0, 1, 2}
	}
	for _, g := range grounds {
		var share [3]float64 // of fitted Whittle, by ingredients
		for k := range worlds {
			rec := g.record(t, k+1)
			base := replay(t, rec, 4, fitted)
			for _, part := range parts {
				set := DefaultSettings()
				ingredients[part].set(&set)
				share[part] += replay(t, rec, 4, cold(set)) / base / float64(worlds)
			}
		}
		if *full {
			fmt.Printf("| %s | %.3f | %.3f | %.3f |\n", g.name, share[0], share[1], share[2])
		}
		if r := share[2] / share[0]; r < g.least {
			t.Errorf("%s: with all ingredients %.4f of what is earned with constant rates; want %v", g.name, r, g.least)
		}
	}
}

// TestProfileFound: on a recording with a day's wave of its own at each source,
// the learner finds the wave; on one without, hardly any.
func TestProfileFound(t *testing.T) {
	for _, c := range []struct {
		ground synthetic
		wave   float64 // amplitude of the truth
		off    float64 // root mean square by which it may be missed
	}{
		{synthetic{sigma: .5, daily: .8}, .8, .12},
		{synthetic{sigma: .5}, 0, .06},
	} {
		var l *Learner
		var start float64
		replay(t, c.ground.record(t, 3), 10, func(terms env.Terms, _ env.Instance) env.Agent {
			l = newLearner(terms, nil)
			start = float64(terms.Start) / 3600
			return env.NewAgent[env.Online](l)
		})
		var square, mean float64
		for i := range 40 {
			for k := range 7 * 24 {
				middle := start + float64(k) - .5 // hours
				want := 1 + c.wave*math.Cos(2*math.Pi*(middle-14)/24)
				got, _ := l.est.Share(i, k, -1, 1, .5)
				mean += got / (40 * 7 * 24)
				square += (got - want) * (got - want) / (40 * 7 * 24)
			}
		}
		if rms := math.Sqrt(square); rms > c.off || math.Abs(mean-1) > .01 {
			t.Errorf("wave %v: the profiles are off by %.3f, mean %.3f; want at most %v, mean 1",
				c.wave, rms, mean, c.off)
		}
	}
}

// hourly keeps the index of the last source that is crawled, by the hour.
type hourly struct {
	*Learner
	sum, crawls [24]float64
}

func (p *hourly) Select(dst []int, o *env.Online) []int {
	dst = p.Learner.Select(dst, o)
	if k := o.Epoch % 24; o.Epoch > 500 && len(dst) > 0 {
		last := dst[len(dst)-1]
		p.sum[k] += p.foretell(last, p.optimistic(last), o)
		p.crawls[k]++
	}
	return dst
}

// TestPriceOverTheDay: where all sources publish nine times as much at one hour as at
// another, the price of a crawl, at which sources wake, changes by less.
func TestPriceOverTheDay(t *testing.T) {
	var p *hourly
	replay(t, synthetic{sigma: 1, daily: .8}.record(t, 1), 4, func(terms env.Terms, _ env.Instance) env.Agent {
		p = &hourly{Learner: newLearner(terms, nil)}
		return env.NewAgent[env.Online](p)
	})
	floats.Div(p.sum[:], p.crawls[:])
	if ratio := floats.Max(p.sum[:]) / floats.Min(p.sum[:]); ratio > 7 {
		t.Errorf("the price at one hour is %.1f times that at another; want at most 7", ratio)
	}
}

// TestIndex: where what waits is what the present inflow has brought, the index
// is that of the source's age, with a window and without; it rises with the
// state and falls with what is to come, and is never above the state.
func TestIndex(t *testing.T) {
	for _, c := range []float64{.01, .2, 2} {
		for _, window := range []float64{.4, 3, 7.5, math.Inf(1)} {
			s := env.NewSource("", 100, c, 1)
			s.Window = window
			curve := index.NewCurve(s)
			for age := 1; age < 40; age++ {
				x := curve.At(age)
				got := whittle(s, x)
				if want := curve.Index(age); math.Abs(got-want) > 1e-6*x {
					t.Errorf("decay %v, window %v, age %v: index %v; want %v", c, window, age, got, want)
				}
				last := 0.0
				for share := 4.0; share > .01; share *= .9 {
					next := s
					next.Rate *= share
					g := whittle(next, x)
					if g < last-1e-9*x || g > x {
						t.Fatalf("decay %v, window %v, age %v: with %v of the inflow the index is %v, with more %v; "+
							"the state is %v", c, window, age, share, g, last, x)
					}
					last = g
				}
			}
		}
	}
}

// TestFrozen: the frozen policy crawls nearly what it would crawl if it looked at all
// sources at every epoch, and whatever the learner learns later.
func TestFrozen(t *testing.T) {
	var l *Learner
	learn := func(seed uint64) {
		rec := synthetic{sigma: 1, daily: .8, own: true}.record(t, seed)
		replay(t, rec, 4, func(terms env.Terms, _ env.Instance) env.Agent {
			if l == nil {
				l = newLearner(terms, nil)
			}
			return env.NewAgent[env.Online](l)
		})
	}
	play := func(p *Policy) (crawls []int, same float64) {
		last := slices.Repeat([]int{-1}, 40)
		for n := range 100 {
			o := env.Online{Epoch: n, Last: last}
			now, ofAll := p.Select(nil, &o), l.Frozen().Select(nil, &o)
			for _, i := range now {
				if slices.Contains(ofAll, i) {
					same++
				}
				last[i] = n
			}
			crawls = append(crawls, now...)
		}
		return crawls, same / float64(len(crawls))
	}
	learn(1)
	one, two := l.Frozen(), l.Frozen()
	before, same := play(one)
	if same < .97 {
		t.Errorf("%.3f of its crawls are those of one that has looked at all sources", same)
	}
	learn(2)
	after, _ := play(two)
	if other, _ := play(l.Frozen()); !slices.Equal(after, before) || slices.Equal(other, before) {
		t.Errorf("frozen it crawls %v, and after the learner went on %v", before, after)
	}
}

// recordings are those of the table, and what the learner earns there at least, of
// what Whittle earns that was fitted on the half before.
var recordings = []struct {
	name              string
	least, leastShown float64 // over all of the measured half; with first crawls that show 20 items, over 6 days
}{{"fbmedia2016", 1.03, .86}, {"hn", .985, .84}}

func recording(t *testing.T, name string) *env.Recording {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", "trace_"+name+".csv.gz")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no recording: %v", err)
	}
	rec, err := env.ReadRecording(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestRecordings: without any knowledge beforehand, on real recordings, the
// learner earns what Whittle earns with parameters fitted on the half before,
// and more where hours matter. With -full it prints what each part brings, in
// the mean over measured halves that begin up to .7 % earlier: a path of crawls is
// chance up to 1 %.
func TestRecordings(t *testing.T) {
	envtest.Alone(t)
	for _, c := range recordings {
		rec := recording(t, c.name)
		share := replay(t, rec, 5, cold(DefaultSettings())) / replay(t, rec, 5, fitted)
		if share < c.least {
			t.Errorf("%s: %.4f of fitted Whittle; want %v", c.name, share, c.least)
		}
		if !*full {
			continue
		}
		for _, budget := range []float64{1, 5, 20} {
			fmt.Printf("| %s | %v |", c.name, budget)
			for _, part := range ingredients {
				set, mean := DefaultSettings(), 0.
				part.set(&set)
				for k := range 8 {
					split := .5 - .001*float64(k)
					mean += replayFrom(t, rec, split, budget, cold(set)) / replayFrom(t, rec, split, budget, fitted) / 8
				}
				fmt.Printf(" %.3f |", mean)
			}
			fmt.Println()
		}
	}
}

// TestBeginnings: what the learner earns in the first six days from many beginnings,
// where sources show nothing from before and where they show their last 20 items. Nowhere
// is it less than what is earned with constant rates and first crawls alone, by more than
// half a point and chance. Over Whittle that was fitted before the beginning -full prints
// both, and Whittle that was fitted on what follows.
func TestBeginnings(t *testing.T) {
	envtest.Alone(t)
	const days = 6
	beginnings, budgets := 24, []float64{5}
	if *full {
		beginnings, budgets = 24, []float64{1, 5, 20}
	}
	for _, c := range recordings {
		rec := recording(t, c.name)
		for _, budget := range budgets {
			var cells string
			shares := map[int]float64{} // of the learner, by shown items
			for _, shows := range []int{0, 20} {
				var learner, certainty, hindsight, more []float64
				for k := range beginnings {
					o := env.ReplayOptions{
						Epoch: time.Hour, Decay: .175, Budget: budget, Items: true, Shows: shows,
						Split: .4 + .5*float64(k)/float64(beginnings),
					}
					in, err := rec.Fit(o)
					if err != nil {
						t.Fatal(err)
					}
					earn := func(agent func(env.Terms, env.Instance) env.Agent) float64 {
						w, err := env.NewReplay(rec, in, o)
						if err != nil {
							t.Fatal(err)
						}
						return stat.Mean(envtest.Play(t, w, agent(w.Terms(), in), days*24), nil)
					}
					whittle := earn(fitted)
					learner = append(learner, earn(cold(DefaultSettings()))/whittle)
					certainty = append(certainty, earn(cold(CertaintySettings()))/whittle)
					hindsight = append(hindsight, earn(later(rec, o.Split, days))/whittle)
					more = append(more, learner[k]-certainty[k])
				}
				mean, sd := stat.MeanStdDev(more, nil)
				if chance := 2 * sd / math.Sqrt(float64(beginnings)); mean < -.005-chance {
					t.Errorf("%s, budget %v, %d items shown, %d days: it earns %.4f less of fitted Whittle "+
						"than with constant rates, give or take %.4f", c.name, budget, shows, days, -mean, chance)
				}
				shares[shows] = stat.Mean(learner, nil)
				cells += fmt.Sprintf(" %.3f | %.3f | %.3f |",
					shares[shows], stat.Mean(certainty, nil), stat.Mean(hindsight, nil))
			}
			if *full {
				fmt.Printf("| %s | %v |%s\n", c.name, budget, cells)
			}
			if budget == 5 && (shares[20] < c.leastShown || shares[20] < shares[0]) {
				t.Errorf("%s: in its first days it earns %.3f of fitted Whittle where first crawls show 20 items, "+
					"otherwise %.3f; want %v", c.name, shares[20], shares[0], c.leastShown)
			}
		}
	}
}

// later returns Whittle of what is published in so many days behind the split of a
// recording.
func later(rec *env.Recording, split float64, days int) func(env.Terms, env.Instance) env.Agent {
	from := float64(rec.First) + split*float64(rec.Last-rec.First)
	to := from + 86400*float64(days)
	return func(_ env.Terms, in env.Instance) env.Agent {
		in.Sources = slices.Clone(in.Sources)
		count, total := make([]float64, len(in.Sources)), make([]float64, len(in.Sources))
		rec.Each(func(i int, at int64, utility float64) {
			if float64(at) >= from && float64(at) < to {
				count[i]++
				total[i] += utility
			}
		})
		for i := range in.Sources {
			in.Sources[i].Rate, in.Sources[i].Interest = count[i]*3600/(to-from), total[i]/max(1, count[i])
		}
		return env.NewAgent(baselines.NewWhittle(in))
	}
}
