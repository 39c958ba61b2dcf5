package experiments

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments/result"
)

func rowOf(r result.Report, policy string) result.Row {
	return r.Results[slices.IndexFunc(r.Results, func(x result.Row) bool { return x.Policy == policy })]
}

// Rows that go over the budget stand last, whatever they earn. Over few instances
// there is no interval.
func TestCompare(t *testing.T) {
	scenes := []Scene{
		PoissonScene(env.Paper(1), env.MarksConstant),
		PoissonScene(env.Lognormal(4, 1, 3), env.MarksConstant),
	}
	again := *find(t, "whittle")[0]
	again.Name = "again"
	all := recordsOf(t, scenes, env.LevelModel, append(find(t, "paper", "q-whittle", "whittle"), &again), 100, 3)
	r := Compare(all, env.LevelModel, 3, 0)
	ranked := slices.IsSortedFunc(r.Results[:4], func(a, b result.Row) int { return cmp.Compare(b.Reward, a.Reward) })
	last := r.Results[len(r.Results)-1]
	if last.Over == 0 || !ranked || r.Algorithm != "paper" || r.Instance != "paper and 1 more" || r.Steps != 100 {
		t.Errorf("%+v", r)
	}
	notes := strings.Join(r.Notes, "\n")
	if !strings.Contains(notes, "rows marked * cost more") ||
		!strings.Contains(notes, "need at least 5 instances for an interval") {
		t.Errorf("notes\n%s", notes)
	}
	for _, row := range r.Results {
		same := row.Policy == "whittle" || row.Policy == "again"
		if same && (row.OfWhittle.Value() != 1 || row.Diff.Value() != 0 || row.Worst.Value() != 1) {
			t.Errorf("Whittle against itself: %+v", row)
		}
		if !row.Lo.IsZero() || !row.DiffLo.IsZero() {
			t.Errorf("%s has an interval; two instances are too few for one", row.Policy)
		}
	}
	rows := RunsTable(all).Rows
	if len(rows) != 2*3*5 || rows[1][0] != "paper/learned" || rows[2][2] != "1" || rows[6][1] != scenes[1].Instance.ID {
		t.Errorf("%d runs: %+v", len(rows), rows)
	}
}

// In a world that changes, what is earned while learning is compared with what Whittle
// earns over the same epochs, not in the world that it becomes, which is twice as rich.
// Each policy has a row of either.
func TestCompareWhileTheWorldChanges(t *testing.T) {
	in := env.Lognormal(10, 2, 1)
	richer := slices.Clone(in.Sources)
	for i := range richer {
		richer[i].Rate *= 2
	}
	in.Changes = []env.Change{{At: 1500, Sources: richer}}
	entries := find(t, "lspe", "whittle", "certainty", "round-robin")
	all := recordsOf(t, []Scene{PoissonScene(in, env.MarksConstant)}, env.LevelOnline, entries, 3000, 1)
	for i, c := range all {
		if c.Learns {
			all[i].Name = "" // as of train
		}
	}
	r := Compare(all, env.LevelOnline, 1, 1)
	for _, c := range all[1:] {
		learning, after := rowOf(r, c.Name+"/learning"), rowOf(r, c.Name)
		played := c.Records[0]
		if learning.Reward != played.Learning.Reward || learning.Epochs != 3000 ||
			after.Reward != played.Learned.Reward || after.Reward < 1.2*learning.Reward {
			t.Errorf("%s earns %v over all epochs and %v after the change; want %v and %v",
				c.Name, learning.Reward, after.Reward, played.Learning.Reward, played.Learned.Reward)
		}
	}
	var names []string
	for _, row := range r.Results {
		names = append(names, row.Policy)
	}
	if k := slices.IndexFunc(names, func(name string) bool { return !strings.HasSuffix(name, "learning") }); k != 4 {
		t.Errorf("rows %v; want those of the learning epochs first", names)
	}
	if row := rowOf(r, "whittle/learning"); row.OfWhittle.Value() != 1 || row.Diff.Value() != 0 {
		t.Errorf("Whittle against itself while the world changes: %+v", row)
	}
	if got := rowOf(r, "learning").OfWhittle.Value(); got < .85 || got > 1.02 {
		t.Errorf("while learning %v of Whittle; want about 1: %+v", got, r.Results)
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "world changes") }) {
		t.Errorf("notes %q say nothing of the change", r.Notes)
	}
}

// Over several instances the interval is over instances: more seeds of the same
// deterministic worlds tell nothing new.
func TestIntervalOverInstances(t *testing.T) {
	var scenes []Scene
	for k := range 6 {
		scenes = append(scenes, MeanScene(env.Lognormal(4, 1, uint64(k+1))))
	}
	greedy := func(seeds int) result.Row {
		all := recordsOf(t, scenes, env.LevelModel, find(t, "greedy", "whittle"), 50, seeds)
		row := rowOf(Compare(all, env.LevelModel, seeds, 0), "greedy")
		var ofWhittle, ofBound float64
		worst := math.Inf(1)
		for k, g := range all[0].Records {
			bound, _ := index.Bound(scenes[k/seeds].Instance)
			share := g.Learned.Reward / all[1].Records[k].Learned.Reward
			ofWhittle += share / float64(6*seeds)
			ofBound += g.Learned.Reward / bound / float64(6*seeds)
			worst = min(worst, share)
		}
		if !(math.Abs(row.OfWhittle.Value()-ofWhittle) < 1e-12 && math.Abs(row.OfBound.Value()-ofBound) < 1e-12 &&
			row.Worst.Value() == worst && row.Lo.Value() < row.Reward && row.Reward < row.Hi.Value()) {
			t.Errorf("%+v; want %v of Whittle, %v of the bound, at worst %v", row, ofWhittle, ofBound, worst)
		}
		return row
	}
	one, five := greedy(1), greedy(5)
	for _, tt := range []struct {
		what      string
		one, five result.Ratio
	}{
		{"lo", one.Lo, five.Lo},
		{"hi", one.Hi, five.Hi},
		{"diff_lo", one.DiffLo, five.DiffLo},
		{"diff_hi", one.DiffHi, five.DiffHi},
	} {
		if a, b := tt.one.Value(), tt.five.Value(); !(math.Abs(a-b) <= 1e-9*math.Abs(a)) {
			t.Errorf("%s is %v with one seed and %v with five", tt.what, a, b)
		}
	}
}

// A recording is the same under every seed, so that seeds give no interval; it
// takes five weeks to have one.
func TestIntervalOfRecording(t *testing.T) {
	for _, tt := range []struct {
		days int
		want bool
	}{{3, false}, {20, false}, {40, true}} {
		t.Run(fmt.Sprint(tt.days, " days"), func(t *testing.T) {
			days := tt.days
			all := recordsOf(t, []Scene{recorded(t, days)}, env.LevelModel, find(t, "whittle", "round-robin"), 0, 2)
			if f := all[0].Records[0].Learned; f.Epochs != 24*days+10 || len(f.Days) != days {
				t.Errorf("%d epochs of an hour have %d whole days, want %d and %d",
					f.Epochs, len(f.Days), 24*days+10, days)
			}
			for _, r := range Compare(all, env.LevelModel, 2, 0).Results {
				got := !r.Lo.IsZero()
				if got != tt.want || got && !(r.Lo.Value() < r.Reward && r.Reward < r.Hi.Value()) {
					t.Errorf("%+v; want an interval: %v", r, tt.want)
				}
			}
		})
	}
}

// What is earned after the last whole day counts: the interval lies around the mean over all epochs.
func TestIntervalAroundMean(t *testing.T) {
	r := &Record{Fitted: true}
	r.Learned.Reward = 2
	for day := range 35 {
		r.Learned.Days = append(r.Learned.Days, 1+.01*float64(day%11))
	}
	days := func(r *Record) []float64 { return r.Learned.Days }
	f := Figure{Of: func(r *Record) float64 { return r.Learned.Reward }, Days: days}
	s := Summarize([]Group{{Records: []*Record{r}, Seeds: 1, Figures: []Figure{f}}}, 0)
	if e := s.Rows[0].Mean[0]; e.Value != 2 || !(e.Lo < 2 && 2 < e.Hi) || math.Abs(e.Lo+e.Hi-4) > 1e-9 {
		t.Errorf("%+v; want an interval around 2", e)
	}
}

// Of a recording cells of a sweep may play different numbers of days, which have no pairs.
func TestOtherDays(t *testing.T) {
	f := Figure{
		Name: "earned", Of: func(r *Record) float64 { return r.Learned.Reward },
		Days: func(r *Record) []float64 { return r.Learned.Days },
	}
	group := func(name string, reward float64, days int) Group {
		r := &Record{Fitted: true}
		r.Learned.Reward, r.Learned.Days = reward, slices.Repeat([]float64{reward}, days)
		return Group{Name: name, Records: []*Record{r}, Seeds: 1, Figures: []Figure{f}}
	}
	short, long := group("short", 2, 40), group("long", 3, 70)
	long.Than = &short
	s := Summarize([]Group{short, long}, 0)
	diff := s.Rows[1].Diff
	if diff.Value != 1 || !math.IsNaN(diff.Lo) || s.Verdict != "" || math.IsNaN(s.Rows[1].Mean[0].Lo) {
		t.Errorf("%+v; want a difference without interval, no verdict, and an interval of each mean", s)
	}
}

// No winner is named that is not one, and where nothing random differs between
// seeds there is no interval.
func TestVerdict(t *testing.T) {
	mean, items := []Scene{MeanScene(env.Paper(1))}, []Scene{PoissonScene(env.Paper(1), env.MarksConstant)}
	for _, x := range []struct {
		what   string
		scenes []Scene
		names  string
		say    string
	}{
		{"the same choices", items, "whittle greedy round-robin",
			"The best two, whittle and greedy, cannot be told apart."},
		{"far apart", items, "round-robin whittle", "The best is whittle, before round-robin."},
		{"nothing random", mean, "round-robin whittle", "The best is whittle, before round-robin."},
	} {
		all := recordsOf(t, x.scenes, env.LevelModel, find(t, strings.Fields(x.names)...), 200, 6)
		r := Compare(all, env.LevelModel, 6, 0)
		if len(r.Notes) != 2 || r.Notes[1] != x.say {
			t.Errorf("%s: %q, want %q", x.what, r.Notes, x.say)
		}
		for _, row := range r.Results {
			if same := x.what == "nothing random"; row.Same != same || row.Lo.IsZero() != same {
				t.Errorf("%s: %+v", x.what, row)
			}
		}
	}
}

// Of a figure of which less is better the least is the best, a learner while it learns
// is no winner, a missing run has no pair, and days of one week are one draw of chance.
func TestSummarize(t *testing.T) {
	lost := Figure{
		Name: "lost", Less: true,
		Of:   func(r *Record) float64 { return r.Learned.Reward },
		Days: func(r *Record) []float64 { return r.Learned.Days },
	}
	weeks := []float64{2.4, 0, 1.8, -.5, 1.3}
	group := func(name string, mean float64, fitted bool) Group {
		g := Group{Name: name, Seeds: 6, Figures: []Figure{lost}}
		for seed := range 6 {
			r := &Record{Fitted: fitted}
			r.Learned.Reward = mean + float64(seed%2)
			for day := range 7 * len(weeks) {
				r.Learned.Days = append(r.Learned.Days, mean*weeks[day/7])
			}
			g.Records = append(g.Records, r)
		}
		return g
	}
	a, b, c := group("a", 3, false), group("b", 1, false), group("c", 2, false)
	b.Learning, a.Than, c.Records[5] = true, &c, nil
	s := Summarize([]Group{a, b, c}, 0)
	if !slices.Equal(s.Order, []int{1, 2, 0}) || s.Rows[2].Mean[0].N != 5 || s.Rows[0].Diff.Value != 1 ||
		s.Verdict != "The best by lost is c, before a." {
		t.Errorf("%+v", s)
	}
	s = Summarize([]Group{group("a", 3, true), group("c", 2, true)}, 0)
	if s.Verdict != "The best two by lost, c and a, cannot be told apart." {
		t.Error(s.Verdict)
	}
}

// A policy that draws draws otherwise under another seed, and where nothing
// arrives at random that is all that differs.
func TestPolicyDrawsBySeed(t *testing.T) {
	r := recordsOf(t, []Scene{MeanScene(env.Paper(1))}, env.LevelModel, find(t, "q-whittle"), 50, 2)[0].Records
	if a, b := r[0].Learned.Reward, r[1].Learned.Reward; a == b {
		t.Errorf("seeds 0 and 1 both earn %v", a)
	}
}

// earners returns contenders that earn about as much as each other, over so many seeds:
// the same world for all, and noise of their own.
func earners(seed uint64, names []string, seeds int, instance func(k int) string) (all []Contender) {
	r := stream.New(seed, stream.Test)
	worlds := make([]float64, seeds)
	for k := range worlds {
		worlds[k] = 100 + 10*r.NormFloat64()
	}
	for _, name := range names {
		better := r.NormFloat64()
		c := Contender{Name: name}
		for k, world := range worlds {
			rec := &Record{Instance: instance(k)}
			rec.Run.Learner = map[string]any{"algorithm": name}
			rec.Learned.Reward, rec.Learned.Epochs = world+better+r.NormFloat64(), 100
			c.Records = append(c.Records, rec)
		}
		all = append(all, c)
	}
	return all
}

// Shares are of the policy whittle, whatever its row is called.
func TestWhittleUnderAnotherName(t *testing.T) {
	of := func(name string) result.Report {
		all := earners(1, []string{"whittle", "a"}, 5, func(int) string { return "paper" })
		all[0].Name = name
		return Compare(all, env.LevelModel, 5, 1)
	}
	want, got := of("whittle"), of("exact")
	for i, row := range got.Results {
		if row.Policy == "exact" {
			row.Policy = "whittle"
		}
		if row != want.Results[i] {
			t.Errorf("%+v; want %+v", row, want.Results[i])
		}
	}
}

// What the verdict says of Whittle and another agrees with an interval of their
// difference that says the same, and so does the interval of the share.
func TestVerdictAgreesWithIntervals(t *testing.T) {
	names := []string{"whittle", "a", "b", "c", "d", "e"}
	apart, level := 0, 0
	for seed := range uint64(300) {
		rep := Compare(earners(seed, names, 8, func(int) string { return "paper" }), env.LevelModel, 8, 1)
		verdict := rep.Notes[len(rep.Notes)-1]
		best, second := rep.Results[0], rep.Results[1]
		if best.Policy != "whittle" && second.Policy != "whittle" {
			continue
		}
		other := best
		if best.Policy == "whittle" {
			other = second
		}
		same := strings.Contains(verdict, "cannot be told apart")
		if same {
			level++
		} else {
			apart++
		}
		if zero := other.DiffLo.Value() <= 0 && 0 <= other.DiffHi.Value(); zero != same {
			t.Errorf("%q next to the difference %v in [%v, %v]",
				verdict, other.Diff.Value(), other.DiffLo.Value(), other.DiffHi.Value())
		}
		lo, share, hi := other.OfWhittleLo.Value(), other.OfWhittle.Value(), other.OfWhittleHi.Value()
		if !(lo < share && share < hi) {
			t.Errorf("the share %v is not in [%v, %v]", share, lo, hi)
		}
	}
	if apart < 10 || level < 10 {
		t.Errorf("%d verdicts name a winner, %d do not; want some of both", apart, level)
	}
}

// Where each seed has an instance of its own, what is said of them names them all.
func TestInstanceOfEachSeed(t *testing.T) {
	all := earners(1, []string{"whittle", "a"}, 5, func(k int) string { return fmt.Sprintf("lognormal/10/%d", k+1) })
	for _, c := range all {
		for k, r := range c.Records {
			r.Bound = result.RatioOf(float64(200 + k))
		}
	}
	rep := Compare(all, env.LevelModel, 5, 1)
	want := "Instance lognormal/10/1 and 4 more,"
	if !strings.HasPrefix(rep.Notes[0], want) || !strings.Contains(rep.Notes[0], "earns more than 202.00 per epoch") {
		t.Errorf("%q; want %q and the mean of the bounds", rep.Notes[0], want)
	}
}

// TestShareOfCosts: of costs, which are below 0, the greater has the lesser share.
func TestShareOfCosts(t *testing.T) {
	in := env.Lognormal(20, 2, 1).WithObjective(env.Objective{Law: env.LawDelay, Exponent: 1}, time.Hour)
	play := func(name string) *Record {
		e, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		s := MeanScene(in)
		r, err := s.Play(t.Context(), Play{Entry: e, Level: e.FirstLevel(), Seed: 1, Epochs: 2000})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	whittle, turns := play("whittle"), play("round-robin")
	turns.addRatios(whittle)
	if share := turns.Learned.OfWhittle.Value(); whittle.Learned.Reward >= 0 || !(share > .3 && share < .97) {
		t.Errorf("in turn earns %v, Whittle %v: a share of %v", turns.Learned.Reward, whittle.Learned.Reward, share)
	}
	if bound := whittle.Learned.OfBound.Value(); !(bound > .9 && bound <= 1) {
		t.Errorf("Whittle earns %v of the bound", bound)
	}
}
