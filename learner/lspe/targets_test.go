package lspe

import (
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"ephemera/env"
	"ephemera/env/envtest"
)

var (
	full = flag.Bool("full", false, "play all worlds and ablations, ten instances each, and print the tables of docs/what-learns.md")
	only = flag.String("world", "", "with -full, play the worlds with this in their names only")
	most = flag.Int("ablations", len(ablations), "with -full, play so many of the rows learned, r = 0, …")
)

// target is a world with what the learner earns in it at least, as a share of what
// Whittle earns with the true curves, and what it loses at least without r.
type target struct {
	name             string
	epochs           int
	frozen, learning float64
	lost             float64
	change           bool // the parameters are dealt out anew half-way
	instance         func(seed uint64) env.Instance
}

func named(name string, budget float64) func(uint64) env.Instance {
	return func(seed uint64) env.Instance {
		in, err := env.Named(fmt.Sprintf(name, seed), budget)
		if err != nil {
			panic(err)
		}
		return in
	}
}

func paper(budget float64) func(uint64) env.Instance {
	return func(uint64) env.Instance { return env.Paper(budget) }
}

var targets = []target{
	{"Table I, 1", 10000, .995, .985, math.Inf(-1), false, paper(1)},
	{"Table I, 2", 10000, .999, .995, .02, false, paper(2)},
	{"Table I, 3", 10000, .999, .995, math.Inf(-1), false, paper(3)},
	{"exponential", 10000, .995, .99, .02, false, named("lognormal:50:%d", 10)},
	{"power", 10000, .995, .99, .015, false, named("lognormal:50:%d:power", 10)},
	{"window", 10000, .995, .99, .03, false, named("lognormal:50:%d:window", 10)},
	{"batches", 10000, .99, .985, .02, false, named("lognormal:50:%d:batches", 10)},
	{"mixture", 10000, .99, .985, .08, false, named("lognormal:50:%d:mixture", 10)},
	{"hump", 10000, .98, .97, .1, false, named("lognormal:50:%d:hump", 10)},
	{"reshuffled", 10000, .985, .97, .02, true, named("lognormal:50:%d", 10)},
	{"lognormal 200, 20", 10000, .995, .985, .02, false, named("lognormal:200:%d", 20)},
	{"wide 100, 10", 10000, .99, .985, .02, false, named("wide:100:%d", 10)},
	{"mixed 50, 10", 10000, .99, .985, .02, false, named("mixed:50:%d", 10)},
	{"50, 2", 10000, .99, .975, .02, false, named("lognormal:50:%d", 2)},
	{"1000, 50", 10000, .99, .98, .02, false, named("lognormal:1000:%d", 50)},
	{"1000, 10", 10000, .98, .965, .02, false, named("lognormal:1000:%d", 10)},
}

// ablations take a part out.
var ablations = []struct {
	name   string
	change func(*Settings)
}{
	{"learned", nil},
	{"r = 0", func(s *Settings) { s.Critic = "zero" }},
	{"averages", func(s *Settings) { s.Critic = "average" }},
	{"−r", func(s *Settings) { s.Critic = "negative" }},
	{"random r", func(s *Settings) { s.Critic = "random" }},
	{"actor off", func(s *Settings) { s.Actor = "off" }},
	{"price off", func(s *Settings) { s.Price = "off" }},
	{"reversed", func(s *Settings) { s.B.Power, s.D.Power, s.D.Scale = .95, .8, 1.1 }},
}

// interval returns "mean ± half width" of a 95 % t-interval over ten instances.
func interval(v []float64) (mean float64, text string) {
	const t9 = 2.262
	mean, sd := stat.MeanStdDev(v, nil)
	return mean, fmt.Sprintf("%.4f ± %.4f", mean, t9*sd/math.Sqrt(float64(len(v))))
}

// TestTargets: with nothing known but costs and budget the learner earns what the
// table says. Without -full it plays two worlds for fewer epochs.
func TestTargets(t *testing.T) {
	envtest.Alone(t)
	if !*full {
		for _, c := range []struct {
			at   int
			want shares
		}{{1, shares{.995, .99}}, {3, shares{.985, .97}}, {7, shares{.98, .97}}} {
			got := play(t, targets[c.at].instance(1), 1, 3000, 0, nil)
			if got.frozen < c.want.frozen || got.learning < c.want.learning {
				t.Errorf("%s: %.4f; want at least %.4f", targets[c.at].name, got, c.want)
			}
		}
		return
	}
	for _, c := range targets {
		if !strings.Contains(c.name, *only) {
			continue
		}
		var row string
		var best [11]float64
		for k, a := range ablations[:*most] {
			var frozen, learning []float64
			for seed := uint64(1); seed <= 10; seed++ {
				in, change := c.instance(seed), 0
				if c.change {
					change = c.epochs / 2
				}
				if k == 0 {
					best[seed] = whittle(in, c.epochs)
				}
				got := against(t, best[seed], in, seed, c.epochs, change, a.change)
				frozen, learning = append(frozen, got.frozen), append(learning, got.learning)
			}
			f, text := interval(frozen)
			g, while := interval(learning)
			switch row += " | " + text; {
			case k == 0:
				row += " | " + while
				if f < c.frozen || g < c.learning {
					t.Errorf("%s: %s, learning %s; want %v and %v", c.name, text, while, c.frozen, c.learning)
				}
			case k == 1 && f > 1-c.lost:
				t.Errorf("%s: without r %s; want %v lost", c.name, text, c.lost)
			}
		}
		fmt.Printf("| %s%s |\n", c.name, row)
	}
}

// TestCriticMatters: without r, and with anything else in its place, the learner
// loses what the issue of a critic that learns nothing would not.
func TestCriticMatters(t *testing.T) {
	envtest.Alone(t)
	in := named("lognormal:50:%d:mixture", 10)(1)
	learned := play(t, in, 1, 3000, 0, nil)
	for _, a := range ablations[1:5] {
		got := play(t, in, 1, 3000, 0, a.change)
		if got.frozen > learned.frozen-.03 {
			t.Errorf("%s: %.4f; with r %.4f", a.name, got.frozen, learned.frozen)
		}
	}
}
