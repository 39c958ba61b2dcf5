package env_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ephemera/env"
)

// A crawl that fails brings nothing, and what waits at its source is found by a later one: a
// world in which crawls fail brings what one does in which the crawls that succeed here are
// all that are made. How often they fail is what the sources say, and which ones follows from
// the seed.
func TestCrawlsFail(t *testing.T) {
	const epochs, n = 1500, 3
	in := env.Lognormal(n, n, 7)
	for i, fails := range []float64{0, .3, .8} {
		in.Sources[i].Fails = fails
	}
	w, twin := must(env.NewPoisson(in, 5, env.PoissonOptions{})), must(env.NewPoisson(in, 5, env.PoissonOptions{}))
	other := must(env.NewPoisson(in, 6, env.PoissonOptions{}))
	in.Sources = slices.Clone(in.Sources)
	for i := range in.Sources {
		in.Sources[i].Fails = 0
	}
	sure := must(env.NewPoisson(in, 5, env.PoissonOptions{}))
	count, differ := make([]int, n), 0
	for range epochs {
		got := slices.Clone(must(w.Step([]int{2, 0, 1})))
		var came []int
		for _, c := range got {
			came = append(came, c.Source)
			count[c.Source]++
		}
		if again := must(twin.Step([]int{2, 0, 1})); !slices.EqualFunc(got, again, sameCrawl) {
			t.Fatalf("crawls bring %v, and %v under the same seed", got, again)
		}
		if len(must(other.Step([]int{2, 0, 1}))) != len(got) {
			differ++
		}
		if want := must(sure.Step(came)); !slices.EqualFunc(got, want, sameCrawl) {
			t.Fatalf("crawls bring %v; those that succeed bring %v alone", got, want)
		}
		if !slices.Equal(w.View().Last, sure.View().Last) || !slices.Equal(w.View().Mean, sure.View().Mean) {
			t.Fatalf("the view is %+v; with the crawls that succeed %+v", w.View(), sure.View())
		}
	}
	for i, want := range []float64{1, .7, .2} {
		sigma := math.Sqrt(want * (1 - want) / epochs)
		if got := float64(count[i]) / epochs; math.Abs(got-want) > 4*sigma {
			t.Errorf("source %d: %v of the crawls succeed; want %v", i, got, want)
		}
	}
	if differ < epochs/10 {
		t.Errorf("under another seed the same crawls fail in all but %d of %d epochs", differ, epochs)
	}
	if _, err := w.Step([]int{0, 0}); err == nil {
		t.Error("a source is crawled twice in an epoch")
	}
}

func sameCrawl(a, b env.Crawled) bool {
	return a.Source == b.Source && a.Age == b.Age && a.Interest == b.Interest
}

// A host answers so many crawls of an epoch, the first ones, and the next epoch as many again;
// sources without a host are at one of their own. Policies see that beforehand.
func TestHostsAnswerSoOften(t *testing.T) {
	in := env.Lognormal(6, 6, 1)
	for i, host := range []string{"a", "b", "a", "", "a", ""} {
		in.Sources[i].Host = host
	}
	in.PerHost = 2
	w := must(env.NewPoisson(in, 1, env.PoissonOptions{}))
	if hosts := []int32{1, 2, 1, 0, 1, 0}; !slices.Equal(w.Terms().Hosts, hosts) || w.Terms().PerHost != 2 {
		t.Fatalf("terms are %+v; want the hosts %v, with 2 crawls each", w.Terms(), hosts)
	}
	limits := w.View().Limits
	if limits == nil || !slices.Equal(limits.Group, w.Terms().Hosts) || limits.PerGroup != 2 || limits.Budget != 6 {
		t.Fatalf("limits are %+v", limits)
	}
	for range 2 {
		var came []int
		for _, c := range must(w.Step([]int{4, 3, 0, 2, 1, 5})) {
			came = append(came, c.Source)
		}
		if want := []int{4, 3, 0, 1, 5}; !slices.Equal(came, want) {
			t.Fatalf("crawls of %v succeed; want %v", came, want)
		}
	}
	in.PerHost = 0
	if w := must(env.NewPoisson(in, 1, env.PoissonOptions{})); w.View().Limits != nil || w.Terms().Hosts != nil {
		t.Error("without a number of crawls a host has a limit")
	}
}

// Hosts fail as the documentation says, all sources of one alike, and the first has the most.
func TestHostsFamily(t *testing.T) {
	in := env.Hosts(2000, 5, 3)
	if err := in.Validate(); err != nil || in.PerHost != 1 {
		t.Fatalf("%v, %d crawls per host", err, in.PerHost)
	}
	fails, sources := map[string]float64{}, map[string]int{}
	var sum float64
	for _, s := range in.Sources {
		if before, ok := fails[s.Host]; ok && before != s.Fails {
			t.Fatalf("sources of host %s fail with the chances %v and %v", s.Host, before, s.Fails)
		}
		fails[s.Host] = s.Fails
		sources[s.Host]++
	}
	least, most := 1., 0.
	for _, f := range fails {
		sum, least, most = sum+f, min(least, f), max(most, f)
	}
	if mean := sum / float64(len(fails)); math.Abs(mean-.475) > 4*.95/math.Sqrt(12*float64(len(fails))) ||
		least < 0 || least > .05 || most < .9 || most > .95 {
		t.Errorf("hosts fail with the chances %v to %v, %v in the mean; want 0 to .95 alike", least, most, mean)
	}
	// P(host 1) = P(400 V² < 1) = 1/20
	if got := float64(sources["1"]) / 2000; math.Abs(got-.05) > 4*math.Sqrt(.05*.95/2000) || len(sources) < 300 {
		t.Errorf("the first of %d hosts has a share of %v of the sources; want 1/20", len(sources), got)
	}
}

func TestFailuresThatAreRefused(t *testing.T) {
	fails := func(f float64, law env.Law) env.Instance {
		in := env.Paper(1)
		in.Sources[1].Fails, in.Sources[1].Law = f, law
		return in
	}
	perHost := env.Paper(1)
	perHost.PerHost = 1
	negative := env.Paper(1)
	negative.PerHost = -1
	_, mean := env.NewMean(fails(.1, ""), false)
	_, host := env.NewMean(perHost, false)
	page := env.NewPage("a", .1, 1)
	page.Fails = .5
	_, pages := env.NewPages(env.Instance{ID: "p", Budget: 1, Sources: []env.Source{page}}, 1, env.PagesOptions{})
	for _, tt := range []struct {
		name, want string
		err        error
	}{
		{"too often", "fails is 0.96; allowed is the chance that a crawl fails, 0 to 0.95", fails(.96, "").Validate()},
		{"no number", "fails is NaN", fails(math.NaN(), "").Validate()},
		{"hump", "fails is 0.1; allowed is 0 under the law hump", fails(.1, env.LawHump).Validate()},
		{"per_host", "per_host is -1", negative.Validate()},
		{"mean", "fails is 0.1; allowed in world mean", mean},
		{"mean and per_host", "per_host is 1; allowed in world mean", host},
		{"pages", "fails is 0.5; allowed in world pages", pages},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
				t.Errorf("error is %v; want %q", tt.err, tt.want)
			}
		})
	}
	if err := errors.Join(fails(.95, "").Validate(), perHost.Validate()); err != nil {
		t.Error(err)
	}
}

func TestFailuresInAFile(t *testing.T) {
	in := must(env.Load(write(t, "hosts.toml", "per_host = 2\n"+oneSource+"fails = 0.25\nhost = 'x'\n")))
	if s := in.Sources[0]; in.PerHost != 2 || s.Fails != .25 || s.Host != "x" {
		t.Errorf("loaded %+v", in)
	}
}
