package learner

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"ephemera/env/stream"
)

// keeper is a program that keeps of each source what its crawler knows, at each crawl,
// and what is pooled now and then.
type keeper struct {
	*testing.T
	c      *Crawler
	pooled []byte
	kept   map[string]*Recalled
}

func keep(t *testing.T, o CrawlerOptions) *keeper {
	k := &keeper{T: t, c: newTestCrawler(t, o), kept: map[string]*Recalled{}}
	k.save()
	return k
}

func (k *keeper) save() {
	var b bytes.Buffer
	if err := k.c.SavePooled(&b); err != nil {
		k.Fatal(err)
	}
	k.pooled = b.Bytes()
}

func (k *keeper) update(x Crawl) {
	k.Helper()
	r := k.kept[x.Source]
	if r == nil {
		r = &Recalled{Name: x.Source, Since: x.At}
		k.kept[x.Source] = r
		if err := k.c.Add(x.Source, Source{}); err != nil {
			k.Fatal(err)
		}
	}
	err := k.c.Update(x)
	if err == nil {
		r.State, err = k.c.SourceState(x.Source)
	}
	if err != nil {
		k.Fatal(err)
	}
	r.Asked, r.NotBefore = false, x.NotBefore
	if x.Outcome != Failed {
		r.Last, r.Items = x.At, append(r.Items, x.Items...)
	}
}

// kill begins anew with what was kept.
func (k *keeper) kill(now time.Time) (anew int) {
	k.Helper()
	k.c = read(k.T, k.pooled)
	anew, err := k.c.Recall(now, func(yield func(Recalled) bool) {
		for _, name := range slices.Sorted(maps.Keys(k.kept)) {
			if !yield(*k.kept[name]) {
				return
			}
		}
	})
	if err != nil {
		k.Fatal(err)
	}
	return anew
}

func (k *keeper) beliefs() map[string]Belief {
	all := map[string]Belief{}
	for name := range k.kept {
		b, err := k.c.Belief(name)
		if err != nil {
			k.Fatal(err)
		}
		all[name] = b
	}
	return all
}

// publish returns the items of a source between two times: source i has one every gap.
func publish(i int, from, to time.Time) (items []Item) {
	gap := time.Duration(1+i*i) * 20 * time.Minute
	for at := from.Truncate(gap).Add(gap); !at.After(to); at = at.Add(gap) {
		items = append(items, Item{Published: at, Worth: new(1 + float64(i%3))})
	}
	return items
}

// learn has every source crawled now and then, for some hours.
func (k *keeper) learn(r *stream.Rand, from time.Time, hours int) time.Time {
	for range hours {
		for i := range 12 {
			at := from.Add(time.Duration(r.Intn(3600)) * time.Second)
			name := fmt.Sprint(i)
			last := at.Add(-time.Hour)
			if old := k.kept[name]; old != nil {
				last = old.Last
			}
			if r.Intn(1+i) == 0 && at.After(last) {
				k.update(Crawl{Source: name, At: at, Items: publish(i, last, at)})
			}
		}
		from = from.Add(time.Hour)
	}
	return from
}

func near(a, b, by float64) bool { return math.Abs(a-b) <= by*max(math.Abs(a), math.Abs(b)) }

// TestRecall: what was reported of a source before a kill is known after it, also where what
// is pooled is older.
func TestRecall(t *testing.T) {
	for _, old := range []int{0, 1, 6} {
		t.Run(fmt.Sprint("pooled ", old, " hours old"), func(t *testing.T) {
			k, r := keep(t, CrawlerOptions{Budget: 3}), stream.New(1, stream.Test)
			now := k.learn(r, began, 300)
			for range 5 {
				k.c.Select(now, 0)
				k.save()
				now = k.learn(r, now, old)
				k.c.Select(now, 0)
				before := k.beliefs()
				by := .002 + .02*float64(old)
				if anew := k.kill(now); anew > 0 {
					t.Fatalf("%d sources begin anew", anew)
				}
				k.c.Select(now, 0)
				for name, b := range k.beliefs() {
					a := before[name]
					if !a.Last.Equal(b.Last) || !near(a.Items, b.Items, by) || !near(a.Interest, b.Interest, by) {
						t.Errorf("%s: before the kill\n%+v\nafter it\n%+v", name, a, b)
					}
				}
			}
		})
	}
}

// TestRecallOddEpochs: epochs whose seconds no float has exactly are as long after a kill, so that
// no source begins anew.
func TestRecallOddEpochs(t *testing.T) {
	for _, perHour := range []int{7, 107, 212, 214} {
		k := keep(t, CrawlerOptions{Budget: 4, Epoch: 4 * time.Hour / time.Duration(perHour)})
		k.update(Crawl{Source: "a", At: began, Items: publish(0, began.Add(-time.Hour), began)})
		if anew := k.kill(began); anew > 0 {
			t.Errorf("%d crawls per hour: a source begins anew, in epochs of %v", perHour, k.c.Epoch())
		}
	}
}

// TestRecallAnew: where the states are of another version, the program's own record of
// each source stands in.
func TestRecallAnew(t *testing.T) {
	k, r := keep(t, CrawlerOptions{Budget: 3}), stream.New(1, stream.Test)
	now := k.learn(r, began, 300)
	for _, r := range k.kept {
		r.State = []byte(`{"of":"another"}`)
	}
	last := map[string]time.Time{}
	for name, r := range k.kept {
		last[name] = r.Last
	}
	k.pooled = nil
	k.c = newTestCrawler(t, CrawlerOptions{Budget: 3})
	k.save()
	if anew := k.kill(now); anew != len(k.kept) {
		t.Errorf("%d sources begin anew, of %d", anew, len(k.kept))
	}
	k.c.Select(now, 0)
	for name, b := range k.beliefs() {
		var i int
		fmt.Sscan(name, &i)
		want := 3 / float64(1+i*i)
		if !near(b.Items, want, .3) || b.Last.After(last[name]) || last[name].Sub(b.Last) > time.Hour {
			t.Errorf("%s: %+v; it publishes %.3g items an hour, and its last crawl was at %v",
				name, b, want, last[name])
		}
	}
}

// TestRecallRules: however often a program is killed, its budget and dates are kept, and
// its sources are crawled as without kills.
func TestRecallRules(t *testing.T) {
	crawls := map[bool]map[string]int{}
	for _, kills := range []bool{false, true} {
		k, r := keep(t, CrawlerOptions{Budget: 4}), stream.New(1, stream.Test)
		for i := range 12 {
			k.update(Crawl{Source: fmt.Sprint(i), At: began})
		}
		n, epoch, inEpoch, killed := map[string]int{}, -1, 0, 0
		free := map[string]time.Time{}
		for now := began.Add(time.Minute); now.Before(began.AddDate(0, 0, 30)); now = now.Add(7 * time.Minute) {
			if e := int(now.Sub(began) / time.Hour); e != epoch {
				epoch, inEpoch = e, 0
			}
			if r.Intn(40) == 0 {
				k.save()
			}
			if r.Intn(15) == 0 && kills {
				k.kill(now)
				killed++
			}
			names := k.c.Select(now, 2)
			for _, name := range names {
				k.kept[name].Asked = true
			}
			if r.Intn(15) == 0 && kills {
				k.kill(now) // while crawls are under way
				killed++
			}
			for _, name := range names {
				if inEpoch++; epoch > 1 && inEpoch > 4 {
					t.Fatalf("%v: %d crawls in an epoch", now, inEpoch)
				}
				if now.Before(free[name]) {
					t.Fatalf("%v: %s is crawled before %v", now, name, free[name])
				}
				var i int
				fmt.Sscan(name, &i)
				x := Crawl{Source: name, At: now, Items: publish(i, k.kept[name].Last, now)}
				if r.Intn(5) == 0 {
					x.NotBefore = now.Add(3 * time.Hour)
					free[name] = x.NotBefore
				}
				k.update(x)
				n[name]++
			}
		}
		crawls[kills] = n
		t.Logf("%d kills: %v", killed, n)
	}
	var sum [2]int
	for name, n := range crawls[false] {
		sum[0] += n
		sum[1] += crawls[true][name]
		if !near(float64(n), float64(crawls[true][name]), .35) {
			t.Errorf("%s is crawled %d times without kills, and %d times with them", name, n, crawls[true][name])
		}
	}
	if !near(float64(sum[0]), float64(sum[1]), .05) {
		t.Errorf("%d crawls without kills, %d with them", sum[0], sum[1])
	}
}

// TestAddAgain: a source that was removed for a while goes on where it was, and what it published
// meanwhile counts as what its next crawl finds. Its longest interval has gone on, too.
func TestAddAgain(t *testing.T) {
	for _, tt := range []struct {
		source, away int // hours
		rate         float64
		first        bool // it is crawled next
	}{{1, 0, 1.5, false}, {1, 1, 1.5, false}, {1, 50, 1.5, true}, {11, 50, 3. / 122, true}} {
		t.Run(fmt.Sprintf("source %d, %d hours", tt.source, tt.away), func(t *testing.T) {
			k, r := keep(t, CrawlerOptions{Budget: 3}), stream.New(1, stream.Test)
			now := k.learn(r, began, 2000)
			k.c.Select(now, 0)
			name := fmt.Sprint(tt.source)
			k.update(Crawl{Source: name, At: now, Items: publish(tt.source, k.kept[name].Last, now)})
			before := k.beliefs()[name]
			state, err := k.c.SourceState(name)
			if err == nil {
				err = k.c.Remove(name)
			}
			if err != nil {
				t.Fatal(err)
			}
			gone := *k.kept[name]
			delete(k.kept, name)
			for range tt.away {
				for i := 2; i < 11; i++ {
					if name := fmt.Sprint(i); r.Intn(i) == 0 {
						k.update(Crawl{Source: name, At: now, Items: publish(i, k.kept[name].Last, now)})
					}
				}
				now = now.Add(time.Hour)
				k.c.Select(now, 0)
			}
			if anew, err := k.c.AddAgain(name, Source{Longest: 24 * time.Hour}, state); err != nil || anew {
				t.Fatal(anew, err)
			}
			k.kept[name] = &gone
			if got := k.beliefs()[name]; !near(got.Items, before.Items, 1e-9) || got.Last != before.Last {
				t.Errorf("%+v is thought of it; before it was %+v", got, before)
			}
			now = now.Add(time.Hour)
			if names := k.c.Select(now, 3); tt.first && !slices.Contains(names, name) {
				t.Errorf("%v are crawled next", names)
			}
			k.update(Crawl{Source: name, At: now, Items: publish(tt.source, gone.Last, now)})
			k.c.Select(now.Add(2*time.Hour), 0)
			if got := k.beliefs()[name]; !near(got.Items, tt.rate, .1) {
				t.Errorf("it is thought to publish %v items an hour; it publishes %v", got.Items, tt.rate)
			}
		})
	}
	c := newTestCrawler(t, CrawlerOptions{Budget: 3})
	if anew, err := c.AddAgain("1", Source{}, []byte(`{"of":"another"}`)); err != nil || !anew || !c.Has("1") {
		t.Errorf("with another learner's state: new is %v, %v", anew, err)
	}
	if anew, err := c.AddAgain("1", Source{}, nil); err == nil {
		t.Errorf("a source that is there was added: %v", anew)
	}
}

// TestAddAgainEarlier: a source that is added again after the clock was set back was crawled just now, as one that
// stayed, and what is saved then is taken up.
func TestAddAgainEarlier(t *testing.T) {
	c, now := newTestCrawler(t, CrawlerOptions{Budget: 2}), began
	rules := Source{Longest: 30 * time.Hour}
	for _, name := range []string{"left", "stayed"} {
		if err := c.Add(name, rules); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		now = now.Add(time.Hour)
		for _, name := range c.Select(now, 2) {
			if err := c.Update(Crawl{Source: name, At: now, Items: []Item{{Published: now}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	state, err := c.SourceState("left")
	if err == nil {
		err = c.Remove("left")
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Select(now.Add(-20*time.Hour), 0)
	if anew, err := c.AddAgain("left", rules, state); anew || err != nil {
		t.Fatalf("it began anew: %v, %v", anew, err)
	}
	c = restarted(t, c)
	left, err := c.Belief("left")
	stayed, err2 := c.Belief("stayed")
	same := left.Last.Equal(stayed.Last) && left.Free.Equal(stayed.Free) && left.Due.Equal(stayed.Due)
	if err != nil || err2 != nil || !same {
		t.Errorf("%v, %v: one that was added again is\n%+v\nand one that stayed\n%+v", err, err2, left, stayed)
	}
}

// TestAddAgainAmongNew: a source that is added again goes on where it was, and does not wait until as many new ones as
// there are were crawled.
func TestAddAgainAmongNew(t *testing.T) {
	waits := map[bool]int{}
	for _, again := range []bool{false, true} {
		k := keep(t, CrawlerOptions{Budget: 2})
		now, name := k.learn(stream.New(1, stream.Test), began, 300), "0"
		for i := range 1000 {
			if err := k.c.Add(fmt.Sprint("new ", i), Source{}); err != nil {
				t.Fatal(err)
			}
		}
		k.c.Select(now, 0)
		if again {
			state, err := k.c.SourceState(name)
			if err == nil {
				err = k.c.Remove(name)
			}
			if err != nil {
				t.Fatal(err)
			}
			if anew, err := k.c.AddAgain(name, Source{}, state); anew || err != nil {
				t.Fatal(anew, err)
			}
			k.c = restarted(t, k.c)
		}
		for ; waits[again] < 1000; waits[again]++ {
			now = now.Add(time.Hour)
			names := k.c.Select(now, 2)
			if slices.Contains(names, name) {
				break
			}
			for _, name := range names {
				if err := k.c.Update(Crawl{Source: name, At: now}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if waits[true] > waits[false]+1 {
		t.Errorf("it waits for %d hours; as one that was not removed it would for %d", waits[true], waits[false])
	}
}
