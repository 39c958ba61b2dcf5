package baselines

import (
	"slices"
	"testing"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
)

// Theorem 1 at the age, from the inflow, is the index of the source.
// taught returns certainty-equivalent Whittle after so many rounds in which
// every source is crawled at ages 1 to 6.
func taught(in env.Instance, c Certainty, rounds int, mark func(*stream.Rand) float64) *CertaintyWhittle {
	p := NewCertainty(in.Terms(), c)
	r := stream.New(4, stream.Test)
	o := after(len(in.Sources), 1)
	for n := range rounds {
		var crawls []env.Crawled
		for i, s := range in.Sources {
			crawls = append(crawls, drawCrawl(r, i, s, 1+(n+i)%6, mark))
		}
		p.Update(crawls, o)
	}
	return p
}

// Once it has learned, it decides as Whittle does with the true parameters.
func TestCertaintyDecidesAsWhittle(t *testing.T) {
	in := env.Paper(2)
	in.Sources = append(in.Sources, env.NewSource("dear", 50, .3, 2))
	in.Sources[4].Cost = 1.5
	p := taught(in, Certainty{}, 2000, markLaws["exponential"])
	exact := NewWhittle(in)
	w, err := env.NewMean(in, false)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	const epochs = 500
	for range epochs {
		want := exact.Select(nil, &w.View().Model)
		got := p.Select(nil, &w.View().Online)
		if slices.Equal(sorted(got), sorted(want)) {
			same++
		}
		if _, err := w.Step(want); err != nil {
			t.Fatal(err)
		}
	}
	if same < epochs*97/100 {
		t.Errorf("the same crawls in %d of %d epochs", same, epochs)
	}
}

func TestCertaintyIsOptimisticInTheCold(t *testing.T) {
	terms := hourly(6, 1, 1)
	p := NewCertainty(terms, Certainty{})
	o := &env.Online{Last: []int{-1, -1, -1, -1, -1, -1}}
	r := stream.New(1, stream.Test)
	crawled := make([]bool, 6)
	for n := range 6 {
		got := p.Select(nil, o)
		crawled[got[0]] = true
		c := drawCrawl(r, got[0], env.NewSource("", 5, .2, 1), o.Age(got[0]), markLaws["constant"])
		o.Last[got[0]] = n
		o.Epoch++
		p.Update([]env.Crawled{c}, o)
	}
	if slices.Contains(crawled, false) {
		t.Errorf("crawled after as many epochs as there are sources: %v; want all of equal promise tried", crawled)
	}
	// One poor first crawl does not end it.
	poor := taught(env.Paper(1), Certainty{EstimatorSettings: EstimatorSettings{Decay: []float64{.5}}}, 0, nil)
	o = after(4, 1)
	poor.Update([]env.Crawled{{Source: 0, Age: 1}, crawlOf(1, .5, .2), crawlOf(2, .3), crawlOf(3, .9, .8, .1)}, o)
	if b, se := poor.Estimator().Inflow(0); b <= 0 || se < b {
		t.Errorf("inflow after one crawl that found nothing is %v ± %v; want more than 0 and very uncertain", b, se)
	}
}

func TestCertaintyOptimism(t *testing.T) {
	in := env.Paper(1)
	for _, z := range []float64{0, 1, 3} {
		p := taught(in, Certainty{Optimism: &z}, 5, markLaws["exponential"])
		p.Select(nil, after(4, 3))
		b, se := p.est.Inflow(2)
		like := env.NewSource("", b+z*se, p.est.Decay(2), 1)
		if want := index.WhittleAtAge(like, 1); p.key[2] != want {
			t.Errorf("key at %v standard errors is %v, want %v", z, p.key[2], want)
		}
	}
}

// Without items a source that is crawled at one age only would leave its decay
// unknown for good; it is crawled at another age once.
func TestCertaintyFromHarvestsAlone(t *testing.T) {
	for _, budget := range []float64{1, 2, 3} {
		in := env.Paper(budget)
		reward := func(p env.Agent) float64 {
			w, err := env.NewMean(in, false)
			if err != nil {
				t.Fatal(err)
			}
			var sum float64
			for n := range 4000 {
				got, err := w.Step(p.Select(nil, w.View()))
				if err != nil {
					t.Fatal(err)
				}
				p.Update(got, w.View())
				for _, g := range got {
					if n >= 2000 {
						sum += g.Interest / 2000
					}
				}
			}
			return sum
		}
		exact, got := reward(env.NewAgent(NewWhittle(in))), reward(env.NewAgent[env.Online](NewCertainty(in.Terms(), Certainty{})))
		if got < .999*exact {
			t.Errorf("budget %v: %.3f per epoch, Whittle %.3f; want .999 of it", budget, got, exact)
		}
	}
}
