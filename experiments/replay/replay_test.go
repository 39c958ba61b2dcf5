package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
	"ephemera/experiments/result"
	"ephemera/learner"
)

// record returns a recording of n sources over so many days: rates log-normal,
// each source with a daily rhythm of its own; of every ten one appears and one vanishes
// after a third of the time, and one publishes nothing but its first item.
func record(t *testing.T, n, days int) *env.Recording {
	t.Helper()
	r := stream.New(7, stream.Test)
	var b strings.Builder
	b.WriteString("source,published_unix,utility\n")
	for i := range n {
		rate := math.Exp(r.NormFloat64()) / 5 // per hour
		worth, phase := math.Exp(r.NormFloat64()), 24*r.Float64()
		from, to := 0., float64(24*days)
		switch i % 10 {
		case 7:
			from = to / 3
		case 8:
			to /= 3
		case 9:
			rate = 0
		}
		fmt.Fprintf(&b, "s%03d,%d,1\n", i, int(from*3600))
		for at := from; rate > 0; {
			if at += r.ExpFloat64() / (2 * rate); at >= to {
				break
			}
			if r.Float64() < .5*(1+.8*math.Cos((at-phase)*math.Pi/12)) {
				fmt.Fprintf(&b, "s%03d,%d,%.3f\n", i, int(at*3600), worth*r.ExpFloat64())
			}
		}
	}
	return parse(t, b.String())
}

func parse(t *testing.T, text string) *env.Recording {
	t.Helper()
	rec, err := env.PublishedColumns.Parse(context.Background(), "made.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// The measures against the obvious way: for each publication, the first crawl after
// it, unless its source has published too many since.
func TestMeasure(t *testing.T) {
	for _, shows := range []int{0, 2} {
		testMeasure(t, shows)
	}
}

func testMeasure(t *testing.T, shows int) {
	rec := record(t, 12, 6)
	r := stream.New(1, stream.Test)
	var crawls []Crawl
	for at := float64(rec.First); at < float64(rec.Last); at += 4000 * r.ExpFloat64() {
		crawls = append(crawls, Crawl{r.Intn(11), at}) // the last source is never crawled
	}
	from, to := float64(rec.First)+1.5*day, float64(rec.Last)-day
	got := measure(rec, crawls, window{from: from, to: to}, 3, shows)

	type item struct {
		source      int
		at, utility float64
	}
	var items []item
	var left float64 // sources left out
	rec.Each(func(i int, at int64, utility float64) {
		if float64(at) >= from && float64(at) < to {
			items = append(items, item{i, float64(at), utility})
		}
	})
	var interest, made float64
	var delays []float64
	found, ofSource, published := map[int]int{}, map[int]int{}, map[int]bool{} // items by crawl and by source
	for k, p := range items {
		published[p.source] = true
		for c, crawl := range crawls {
			if crawl.Source != p.source || crawl.At <= p.at || crawl.At > to {
				continue
			}
			newer := 0
			for _, q := range items[k+1:] {
				if q.source == p.source && q.at < crawl.At {
					newer++
				}
			}
			if shows == 0 || newer < shows {
				h := (crawl.At - p.at) / 3600
				interest += p.utility * math.Exp2(-h/3)
				delays = append(delays, h)
				found[c]++
				ofSource[p.source]++
			}
			break
		}
	}
	var neglect float64
	for i := range 12 {
		if published[i] && ofSource[i] == 0 {
			left++
		}
		last := from
		for _, c := range append(slices.Clone(crawls), Crawl{i, to}) {
			if published[i] && c.Source == i && c.At >= from && c.At <= to {
				neglect = max(neglect, c.At-last)
				last = c.At
			}
		}
	}
	for _, c := range crawls {
		if c.At >= from && c.At <= to {
			made++
		}
	}
	hours := (to - from) / 3600
	slices.Sort(delays)
	n := float64(len(items))
	median := math.Inf(1)
	if k := int(math.Ceil(n/2)) - 1; k < len(delays) {
		median = delays[k]
	}
	for _, c := range []struct {
		what           string
		got, want, tol float64
	}{
		{"interest", got.Interest, interest / hours, 1e-9},
		{"crawls", got.crawls, made / hours, 1e-9},
		{"empty", got.Empty, 1 - float64(len(found))/made, 1e-9},
		{"never found", got.Missed, 1 - float64(len(delays))/n, 1e-9},
		{"sources left out", float64(got.LeftOut), left, 0},
		{"median", float64(got.Median), median, 1. / 60 / median},
		{"neglect", float64(got.Neglect), neglect / 3600, 1e-9},
	} {
		if c.got != c.want && !(math.Abs(c.got-c.want) <= c.tol*math.Abs(c.want)) {
			t.Errorf("%s is %v; want %v", c.what, c.got, c.want)
		}
	}
	if float64(len(delays)) < .9*n && !math.IsInf(float64(got.P90), 1) {
		t.Errorf("nine in ten within %v h, of which %v of %v were found", got.P90, len(delays), n)
	}
}

// Epochs and budgets make just as many crawls as were asked for, about one an epoch or
// those of five minutes.
func TestPace(t *testing.T) {
	for _, n := range []int{2, 64, 2000, 1e5} {
		for _, rate := range []float64{.01, .3, 1, 2.5, 7.3, 60, 500, 4000, 25000} {
			length, budget := pace(n, rate, precise)
			if budget >= n {
				continue // refused
			}
			if made := float64(budget) / length * 3600; math.Abs(made/rate-1) > .01 {
				t.Errorf("%d sources: %v crawls in %v s are %v an hour; want %v", n, budget, length, made, rate)
			}
			if budget > 1 && (length > 601 || budget > n/2) {
				t.Errorf("%d sources, %v an hour: %d crawls in %v s", n, rate, budget, length)
			}
		}
	}
}

// A log whose schedules would take long is played in longer epochs, and where these are
// an hour its last part only, unless it is said from when on.
func TestLongLogs(t *testing.T) {
	for _, c := range []struct {
		sources    int
		days, rate float64
		hours      float64 // of an epoch, about
		played     float64 // days
		first      bool
	}{
		{sources: 120, days: 730, rate: 5, hours: .2, played: 730},
		{sources: 64, days: 117, rate: 60, hours: precise, played: 117},
		{sources: 120, days: 730, rate: 60, hours: 2 * precise, played: 627},
		{sources: 1000, days: 60, rate: 250, hours: 2 * precise, played: 60},
		{sources: 1000, days: 365, rate: 250, hours: 4 * precise, played: 150.7},
		{sources: 1e5, days: 30, rate: 60, hours: precise, played: 30},
		{sources: 1e5, days: 30, rate: 25000, hours: 4 * precise, played: .806},
		{sources: 1e5, days: 30, rate: 25000, hours: precise, played: 30, first: true},
	} {
		log := &env.Recording{Names: make([]string, c.sources), Last: int64(c.days * day)}
		a := &Answer{Question: Question{Log: log, Rate: c.rate}}
		if c.first {
			a.First = &a.Log.First
		}
		a.fixWindow(0)
		w := a.window
		hours, played := w.length/3600, (w.to-w.begin)/day
		if math.Abs(hours/c.hours-1) > .25 || math.Abs(played/c.played-1) > .02 ||
			math.Abs(played+a.LeftOut-c.days) > .1 {
			t.Errorf("%+v: epochs of %v h, %v days are played and %v left out", c, hours, played, a.LeftOut)
		}
	}
}

// Where decisions are made less often the answer is the same: what the learner gains lies
// within the interval of what it gains with more.
func TestCoarse(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	fewShares(t)
	q := Question{Log: record(t, 150, 42), HalfLife: 4, Rate: 37.5, Seed: 1, Workers: 2}
	fine := ask(t, q)
	q.patience = 4e6
	coarse := ask(t, q)
	if coarse.window.length < 3*fine.window.length || coarse.LeftOut > 0 || fine.LeftOut > 0 {
		t.Fatalf("decisions every %v s and every %v s", fine.window.length, coarse.window.length)
	}
	within := func(v float64, of *Answer) bool { return v > of.Gain.Lo && v < of.Gain.Hi }
	if !within(fine.Gain.Value, coarse) || !within(coarse.Gain.Value, fine) {
		t.Errorf("decisions every %v s: the learner gains %v; every %v s: %v",
			fine.window.length, fine.Gain, coarse.window.length, coarse.Gain)
	}
	t.Logf("every %v s %v, every %v s %v", fine.window.length, fine.Gain, coarse.window.length, coarse.Gain)
}

// fewShares has answers tell of the learner with a tenth of the crawls alone, which is the quickest
// share to play, for a test that does not look at what it earns with fewer.
func fewShares(t *testing.T) {
	all := shares
	shares = all[:1]
	t.Cleanup(func() { shares = all })
}

func ask(t *testing.T, q Question) *Answer {
	t.Helper()
	if q.Objective.Law == "" {
		q.Objective = q.interest()
	}
	a, err := q.Ask(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// On a log with rhythms the learner earns more than visits in turn, with as
// many crawls; a timetable of the first half earns nearly as much in the second; and
// the answer does not depend on the number of workers.
func TestAnswer(t *testing.T) {
	rec := record(t, 30, 60)
	q := Question{Log: rec, HalfLife: 4, Rate: 3, Seed: 1, Workers: 1}
	a := ask(t, q)
	now, learning := a.Rows[0], a.Rows[1]
	around := func(v, lo, hi float64) bool { return math.Abs(lo+hi-2*v) < 1e-9 }
	if !around(a.Gain.Value, a.Gain.Lo, a.Gain.Hi) || !around(now.Reward, now.Lo.Value(), now.Hi.Value()) {
		t.Errorf("gain %+v, now %+v; want intervals around them", a.Gain, now.Row)
	}
	if !(a.Gain.Value > .1) || !(a.Gain.Lo > 0 && a.Gain.Lo < a.Gain.Value && a.Gain.Value < a.Gain.Hi) ||
		math.Abs(learning.Interest/now.Interest-1-a.Gain.Value) > 1e-9 {
		t.Errorf("gain %+v; %v against %v", a.Gain, learning.Interest, now.Interest)
	}
	for _, r := range a.Rows {
		if math.Abs(r.crawls/3-1) > .01 {
			t.Errorf("%s makes %v crawls per hour; want 3", r.Policy, r.crawls)
		}
	}
	if share := a.SecondHalf[2].Interest / a.SecondHalf[1].Interest; !(share >= .95) {
		t.Errorf("the timetable earns %v of what the learner does", share)
	}
	if !(a.Fewer > .05 && a.Fewer < .9) {
		t.Errorf("%v fewer crawls", a.Fewer)
	}
	if !a.Uneven || a.Silent() != 0 || len(a.Log.Names) != 30 {
		t.Error(sentence("log", a))
	}
	var one, two bytes.Buffer
	q.Workers = 2
	var made, planned int // decisions
	q.Progress = func(done, total int) {
		if done != made+1 || planned != 0 && total != planned {
			t.Errorf("%d of %d decisions after %d of %d", done, total, made, planned)
		}
		made, planned = done, total
	}
	if err := result.Print(&one, a, result.JSON); err != nil {
		t.Fatal(err)
	}
	if err := result.Print(&two, ask(t, q), result.JSON); err != nil {
		t.Fatal(err)
	}
	if made != planned || made < len(a.Rows)*a.window.epochs() {
		t.Errorf("%d of %d decisions were shown", made, planned)
	}
	if one.String() != two.String() {
		t.Error("the answer depends on the number of workers")
	}
	var got map[string]any
	if err := json.Unmarshal(one.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"instance", "algorithm", "knowledge", "budget", "steps", "seeds", "bound", "results"} {
		if _, ok := got[key]; !ok {
			t.Errorf("no %q in the JSON object", key)
		}
	}
}

// A log of crawls is measured as it was, and sets how many the learner makes;
// sources that were crawled and never published are sources too.
func TestNowFromFile(t *testing.T) {
	rec := record(t, 20, 20)
	from, to := float64(rec.First), float64(rec.Last)
	made := inTurn(21, 10*3600, from, to)
	var b strings.Builder
	b.WriteString("source,crawled_unix\n")
	for _, c := range append(made[:2:2], made...) { // two are there twice
		fmt.Fprintf(&b, "s%03d,%d\n", c.Source, int(c.At))
	}
	path := filepath.Join(t.TempDir(), "crawls.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	q := Question{Log: rec, HalfLife: 4, Seed: 1, Workers: 2}
	if err := q.ReadCrawls(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if len(q.Log.Names) != 21 || len(q.Crawls) != len(made) || q.CrawledTwice != 2 {
		t.Fatalf("%d sources, %d crawls and %d repeated; want 21, %d and 2",
			len(q.Log.Names), len(q.Crawls), q.CrawledTwice, len(made))
	}
	a := ask(t, q)
	turn := ask(t, Question{Log: q.Log, HalfLife: 4, Rate: 2.1, Seed: 1, Workers: 2})
	const repeated = " 2 rows of the file of crawls repeat others field by field and count once."
	if text := sentence("log", a); !strings.Contains(text, repeated) {
		t.Error(text)
	}
	if a.Silent() != 1 || math.Abs(a.Rate/2.1-1) > .02 || math.Abs(a.Rows[0].Interest/turn.Rows[0].Interest-1) > .01 {
		t.Errorf("%d silent sources, %v crawls per hour, interest %v; want 1, 2.1, %v",
			a.Silent(), a.Rate, a.Rows[0].Interest, turn.Rows[0].Interest)
	}
}

// Where the beginning of a long log is left out, there are as many crawls as are made now in the rest.
func TestNowOfALongLog(t *testing.T) {
	fewShares(t)
	rec := record(t, 20, 20)
	from, to := float64(rec.First), float64(rec.Last)
	middle := (from + to) / 2
	q := Question{Log: rec, HalfLife: 4, Seed: 1, Workers: 2, patience: 4e4}
	q.Crawls = append(inTurn(20, 20*3600, from, middle), inTurn(20, 5*3600, middle, to)...)
	a := ask(t, q)
	if a.LeftOut < 10 {
		t.Fatalf("%v days are left out; want more than those in which crawls are rare", a.LeftOut)
	}
	for _, r := range a.Rows {
		if perHour := r.Crawls / a.window.length * 3600; math.Abs(perHour/4-1) > .03 {
			t.Errorf("%s makes %.2f crawls an hour; want 4", r.Policy, perHour)
		}
	}
}

// A rule makes as many crawls as it is asked for, or as it makes of itself: each source
// once in its interval.
func TestRuleAlone(t *testing.T) {
	fewShares(t)
	rec := record(t, 20, 60)
	q := Question{Log: rec, HalfLife: 4, Rule: "miniflux", Rate: 1, Seed: 1, Workers: 2}
	const inOrder = "Now, with the order in which miniflux finds sources due"
	if a := ask(t, q); math.Abs(a.Rows[0].crawls-1) > .01 || !strings.Contains(sentence("answer", a), inOrder) {
		t.Errorf("%v crawls per hour; want 1. %s", a.Rows[0].crawls, sentence("answer", a))
	}
	q.Rate = 0
	a := ask(t, q)
	// The interval is the mean gap of the items of the last week, between 5 minutes and a
	// day, rounded up to the next time at which the rule looks.
	items := make([]float64, len(rec.Names))
	rec.Each(func(i int, _ int64, _ float64) { items[i] += 7. / 60 })
	var want float64
	for _, n := range items {
		want += max(1./24, n/168)
	}
	if math.Abs(a.Rate/want-1) > .1 || math.Abs(a.Rows[0].crawls/a.Rows[1].crawls-1) > .01 ||
		!strings.Contains(sentence("answer", a), "intervals as Miniflux sets them by entry frequency") {
		t.Errorf("%v crawls per hour, the learner %v; want about %v. %s",
			a.Rate, a.Rows[1].crawls, want, sentence("answer", a))
	}
	// FreshRSS asks for each source every hour, which is all of them in turn.
	q.Rule = "freshrss"
	a = ask(t, q)
	q.Rule, q.Rate = "", 20
	turn := ask(t, q)
	if math.Abs(a.Rate/20-1) > .01 || math.Abs(float64(a.Rows[0].Median/turn.Rows[0].Median)-1) > .2 ||
		len(a.Rows) != len(turn.Rows) {
		t.Errorf("%v crawls per hour, half found within %v, %d schedules; in turn 20, %v and %d",
			a.Rate, a.Rows[0].Median, len(a.Rows), turn.Rows[0].Median, len(turn.Rows))
	}
}

// A program that crawls goes on with what was learned of the log: it knows its sources,
// and selects among them from the end of the log on.
func TestState(t *testing.T) {
	rec := record(t, 15, 30)
	a := ask(t, Question{Log: rec, HalfLife: 4, Rate: 2, Seed: 1, Workers: 2})
	saved, err := learner.Decode(a.State)
	if err != nil {
		t.Fatal(err)
	}
	c, err := saved.Crawler()
	if err != nil {
		t.Fatal(err)
	}
	items := map[string]float64{}
	rec.Each(func(i int, _ int64, _ float64) { items[rec.Names[i]]++ })
	for _, name := range []string{"s000", "s001", "s002", "s003"} { // publish all the time
		b, err := c.Belief(name)
		if err != nil {
			t.Fatal(err)
		}
		if want := items[name] / a.Days() / 24; math.Abs(b.Items/want-1) > .3 {
			t.Errorf("%s: %v items per hour; want %v", name, b.Items, want)
		}
	}
	names := c.Select(unix(a.window.to+a.window.length+60), 100)
	if len(names) != a.Budget {
		t.Errorf("selects %q; the budget is %d", names, a.Budget)
	}
	for _, name := range names {
		if items[name] == 0 {
			t.Errorf("selects %q", name)
		}
	}
}

// What becomes known after the end changes no crawl; what is known when it is crawled
// does; and never to observe them is the same as to have no column of utilities.
func TestFeedbackDelay(t *testing.T) {
	fewShares(t)
	text := [3]string{"source,published,utility\n", "source,published,utility\n", "source,published\n"}
	record(t, 15, 20).Each(func(i int, at int64, utility float64) {
		text[0] += fmt.Sprintf("%d,%d,%v\n", i, at, utility)
		text[1] += fmt.Sprintf("%d,%d,%v\n", i, at, float64(i)+utility/100)
		text[2] += fmt.Sprintf("%d,%d\n", i, at)
	})
	learned := func(log string, late float64) *Answer {
		return ask(t, Question{Log: parse(t, log), HalfLife: 4, Rate: 1.5, Late: late, Seed: 1, Workers: 2})
	}
	same := func(what string, a, b *Answer, want bool) {
		x, y := a.Rows[1].measures, b.Rows[1].measures
		got := x.Median == y.Median && x.P90 == y.P90 && x.Missed == y.Missed && x.Neglect == y.Neglect &&
			x.Empty == y.Empty
		if got != want {
			t.Errorf("%s: the same crawls: %v; want %v", what, got, want)
		}
	}
	same("after the end", learned(text[0], 1000), learned(text[1], 1000), true)
	same("at once", learned(text[0], 0), learned(text[1], 0), false)
	same("after two days", learned(text[0], 48), learned(text[1], 48), false)
	never, none := learned(text[0], math.Inf(1)), learned(text[2], 48)
	same("never", never, none, true)
	if never.Rows[1].Interest != none.Rows[1].Interest {
		t.Errorf("never observed: interest %v; without utilities %v", never.Rows[1].Interest, none.Rows[1].Interest)
	}
}

// No source waits longer than is allowed, whether a policy looks at limits or not, nor
// does the timetable leave out any, down to the crawls that just suffice.
func TestLongest(t *testing.T) {
	fewShares(t)
	rec := record(t, 20, 30)
	for _, longest := range []float64{40, 20, 10} {
		a := ask(t, Question{Log: rec, HalfLife: 4, Rate: 2, Longest: longest, Shows: 3, Seed: 1, Workers: 2})
		visits := make([]float64, 20) // last of each source
		for _, c := range repeatWeek(a.Timetable, 0, 2*week) {
			if wait := (c.At - visits[c.Source]) / 3600; visits[c.Source] > 0 && wait > 2*longest {
				t.Errorf("source %d waits %v h in the timetable of %v h", c.Source, wait, longest)
			}
			visits[c.Source] = c.At
		}
		for _, r := range a.Rows {
			if got := float64(r.Neglect); got > longest && !slices.Contains(Rules, r.Policy) {
				t.Errorf("%s: a source waits %v h; allowed are %v", r.Policy, got, longest)
			}
		}
		if slices.Contains(visits, 0) {
			t.Errorf("visits in the timetable of %v h: %v", longest, visits)
		}
		if !(a.Rows[1].Missed > .01) {
			t.Errorf("%v of the items are missed where a source shows three", a.Rows[1].Missed)
		}
	}
}

// Two sources with three items get no verdict.
func TestFewItems(t *testing.T) {
	log := parse(t, "source,published\na,0\nb,400000\na,800000\n")
	a := ask(t, Question{Log: log, HalfLife: 4, Rate: .2, Seed: 1, Workers: 2})
	const few = "3 items are too few to say which is better; needed are 100 or more."
	if text := sentence("answer", a); !strings.HasSuffix(text, few) || strings.Contains(text, "It earns") {
		t.Error(text)
	}
	if text := sentence("second-half", a); text != "" {
		t.Error(text)
	}
	var out bytes.Buffer
	if err := result.Print(&out, a, result.JSON); err != nil || !strings.Contains(out.String(), `"gain": null`) {
		t.Errorf("%v\n%s", err, &out)
	}
}

// Items dated far from the rest are left out and named, unless the times are given;
// what nobody can earn anything on is refused.
func TestDates(t *testing.T) {
	log := func(utility int, more string) *env.Recording {
		var b strings.Builder
		b.WriteString("source,published,utility\n" + more)
		for k := range 2000 {
			fmt.Fprintf(&b, "%c,%d,%d\n", 'a'+k%7*(k%3)%9, 1_700_000_000+k*700, utility)
		}
		return parse(t, b.String())
	}
	q := Question{Log: log(1, ""), HalfLife: 4, Rate: 1, Seed: 1, Workers: 2}
	clean := ask(t, q)
	q.Log = log(1, "a,0,1\nb,2000-01-01T00:00:00Z,1\nc,2024-02-01T00:00:00Z,1\n")
	bad := ask(t, q)
	for k := range clean.Rows {
		if clean.Rows[k].Interest != bad.Rows[k].Interest {
			t.Errorf("%s earns %v; without bad dates %v",
				clean.Rows[k].Policy, bad.Rows[k].Interest, clean.Rows[k].Interest)
		}
	}
	const far = "3 items dated far from the rest are left out: 1970-01-01 of a, 2000-01-01 of b, 2024-02-01 of c."
	if text := sentence("log", bad); !strings.Contains(text, far) {
		t.Error(text)
	}
	if text := sentence("log", clean); strings.Contains(text, "repeat") {
		t.Error(text)
	}
	repeated := q
	repeated.Log = log(1, "a,1700700000,1\na,1700700000,1\na,1700700000,1\n")
	text := sentence("log", ask(t, repeated))
	if !strings.HasPrefix(text, "2001 items of") ||
		!strings.Contains(text, "2 rows repeat others field by field and count once; items") {
		t.Error(text)
	}
	first, last := int64(1_700_000_000), int64(1_700_700_000)
	q.First, q.Last = &first, &last
	if a := ask(t, q); a.Log.Rows != 1000 || a.Outliers != nil {
		t.Errorf("%s; want the items of the first half", sentence("log", a))
	}
	last = 1_710_000_000
	if a := ask(t, q); a.Log.Rows != 2001 {
		t.Errorf("%s; want all items from the first of the rest on", sentence("log", a))
	}
	behind := int64(1_704_000_000) // nothing is published in the second half
	q.Log, q.Last = log(1, ""), &behind
	if text := strings.Join(ask(t, q).Document().Notes, " "); strings.Contains(text, "NaN") {
		t.Error(text)
	}
	q.Log = log(1, "a,0,1\nb,2000-01-01T00:00:00Z,1\nc,2024-02-01T00:00:00Z,1\n")
	rounded := int64(1_699_000_000) // a little before the log, far after 1970 and 2000
	q.First, q.Last = &rounded, nil
	const month = "over 27.77 days. 1 item dated far from the rest is left out: 2024-02-01 of c."
	a := ask(t, q)
	if text := sentence("log", a); !strings.Contains(text, month) || a.Log.Rows != 2000 {
		t.Errorf("%s; want 2000 items", text)
	}
	for _, c := range []struct {
		first, last int64
		log         *env.Recording
		want        string
	}{
		{1_600_000_000, 1_600_001_000, q.Log, "nothing was published from 2020-09-13"},
		{first, last, log(0, ""), "finds nothing with a utility above 0"},
	} {
		q.First, q.Last, q.Log = &c.first, &c.last, c.log
		if _, err := q.Ask(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
	}
}

// The page holds every section, and names of sources as text.
func TestPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("source,published_unix\n")
	for k := range 4000 {
		fmt.Fprintf(&b, "%s,%d\n", []string{"<script>alert(1)</script>", "b", "c"}[k%3], k*900)
	}
	a := ask(t, Question{Log: parse(t, b.String()), HalfLife: 4, Rate: .5, Seed: 1, Workers: 2})
	html, err := a.Page().HTML()
	if err != nil {
		t.Fatal(err)
	}
	page := string(html)
	if strings.Contains(page, "<script>alert") || !strings.Contains(page, `\u003cscript\u003ealert`) {
		t.Error("a source's name is not text on the page")
	}
	all := a.Page().Sections
	for _, s := range all {
		if !strings.Contains(page, ">"+s.Title+"</h2>") {
			t.Errorf("no section %q", s.Title)
		}
		if s.Table != nil {
			for _, r := range s.Table.Rows {
				if text := fmt.Sprint(r); strings.Contains(text, "NaN") || strings.Contains(text, "%!") {
					t.Errorf("%s: %s", s.Title, text)
				}
			}
		}
	}
	if a.Uneven {
		t.Error("all items are worth the same")
	}
	if len(all) != 4 || len(all[0].Figures) != 1 {
		t.Errorf("%d sections; a picture is missing", len(all))
	}
	for _, f := range []result.Format{result.Text, result.Markdown, result.CSV} {
		var out bytes.Buffer
		if err := result.Print(&out, a, f); err != nil || strings.Contains(out.String(), "%!") {
			t.Errorf("%s: %v\n%s", f, err, &out)
		}
	}
}

// On the recordings at hand the learner earns more than every rule; its
// timetable, made from the first half, earns 93 % of what it does in the second.
func TestRecordings(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	fewShares(t)
	for _, name := range []string{"hn", "fbmedia2016"} {
		path := filepath.Join("..", "..", "..", "shared", "data", "trace_"+name+".csv.gz")
		if _, err := os.Stat(path); err != nil {
			t.Skipf("needs the recording: %v", err)
		}
		rec, err := env.ReadRecording(context.Background(), path)
		if err != nil {
			t.Fatal(err)
		}
		a := ask(t, Question{Log: rec, HalfLife: 4, Rate: 5, Late: 48, Seed: 1, Workers: 2})
		for _, r := range a.Rows {
			if slices.Contains(Rules, r.Policy) && a.Rows[1].Interest < 1.1*r.Interest {
				t.Errorf("%s: the learner earns %v, %s %v", name, a.Rows[1].Interest, r.Policy, r.Interest)
			}
		}
		if share := a.SecondHalf[2].Interest / a.SecondHalf[1].Interest; !(share >= .93) {
			t.Errorf("%s: the timetable earns %v of what the learner does", name, share)
		}
		t.Log(name, sentence("answer", a), sentence("second-half", a))
	}
}

// TestObjective: the learner is played with delay and with interest. That of delay finds
// items sooner in the mean, counts all alike, and is kept; the answer says what to follow,
// and where it is worse.
func TestObjective(t *testing.T) {
	var b strings.Builder
	b.WriteString("source,published,utility\n")
	for i, gap := range []int{1, 2, 3, 5, 8, 13, 21, 34} { // hours
		for at := 0; at < 24*60; at += gap {
			utility := 1
			if i == 7 {
				utility = 1000
			}
			fmt.Fprintf(&b, "s%d,%d,%d\n", i, 1_700_000_000+3600*at+97*i, utility)
		}
	}
	q := Question{Log: parse(t, b.String()), HalfLife: 4, Objective: env.Delay, Rate: 1, Seed: 1, Workers: 2}
	a := ask(t, q)
	now, delay, interest := a.Rows[0], a.Rows[1], *a.find("learning-interest:4h")
	if !(delay.Mean < .95*now.Mean && delay.Mean < .95*interest.Mean && interest.Interest > 1.05*delay.Interest) {
		t.Errorf("means %v with delay, %v with interest, %v now; interest %v and %v",
			delay.Mean, interest.Mean, now.Mean, delay.Interest, interest.Interest)
	}
	saved, err := learner.Decode(a.State)
	if err != nil || saved.Objective != env.Delay {
		t.Errorf("the state is one of %q, error %v", saved.Objective, err)
	}
	if text := sentence("answer", a); a.Best().Policy != "learning" || !strings.Contains(text, "Follow the learner") {
		t.Errorf("the best is %s: %s", a.Best().Policy, text)
	}
	// Where it is worse it says so.
	a.Rows[1].P90, a.Rows[1].Mean = 2*now.P90, 2*now.Mean
	if text := sentence("answer", a); strings.Contains(text, "Follow the learner") ||
		!strings.Contains(text, "The learner is worse than what is done now in this: ") ||
		!strings.Contains(text, "nine in ten: ") {
		t.Errorf("a learner that is worse: %s", text)
	}
	text, err := json.Marshal(a.Rows[0])
	if err != nil || !strings.Contains(string(text), `"delay_mean_hours":`) {
		t.Errorf("%s, error %v", text, err)
	}
}

// The mean counts an item that is never found as one that waits until the end.
func TestMean(t *testing.T) {
	rec := parse(t, "source,published_unix\na,1700000000\na,1700003600\nb,1700003600\n")
	w := window{begin: 1_700_000_000, from: 1_700_000_000, to: 1_700_000_000 + 36000, length: 3600, budget: 1}
	m := measure(rec, []Crawl{{0, 1_700_000_000 + 7200}}, w, 4, 0)
	if want := hours((2. + 1 + 9) / 3); math.Abs(float64(m.Mean-want)) > 1e-9 {
		t.Errorf("mean %v; want %v", float64(m.Mean), float64(want))
	}
}
