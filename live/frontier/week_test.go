package frontier

import (
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ephemera/env"
)

var full = flag.Bool("full", false, "play a week of recordings and print a table")

const (
	monday, day = 1_700_438_400, 86_400 // seconds
	weekEnd     = monday + 7*day
	perHour     = 17.5 // fetches at most, and those of the adaptive rule on the last day
	pause       = 205  // seconds between two fetches, so that they are no more
	speed       = 100  // of the last day
	shown       = 20   // items of a feed
)

// recorded adds the sources of a recording as feeds, with the times of their items
// from a Monday on, as if it were the week's.
func recorded(t *testing.T, name string, from int64, feeds map[string][]int64) {
	rec, err := env.ReadRecording(t.Context(), "../../../shared/data/trace_"+name+".csv.gz")
	if err != nil {
		t.Skip(err)
	}
	url := func(i int) string { return fmt.Sprintf("http://%s%d.test/", name, i) }
	for i := range rec.Names {
		feeds[url(i)] = nil
	}
	rec.Each(func(i int, at int64, _ float64) {
		if at >= from && at < from+7*day {
			feeds[url(i)] = append(feeds[url(i)], at-from+monday)
		}
	})
}

// fetcher asks a frontier of its own what to fetch, fetches it, and puts it back as
// its rule says.
type fetcher struct {
	*service
	rule    string
	web     string // server of the feeds
	known   map[string]*history
	fetches []int64 // when
	empty   []int64
}

// history is what a fetcher knows of a feed.
type history struct {
	seen     int       // items up to the last look
	minutes  []float64 // until each was found
	interval int64     // of the adaptive rule
}

func (f *fetcher) fetch() {
	if f.rule == "learned" {
		f.server.opt.Learned.Advance(f.server.opt.Now())
	}
	one := inCrawl("L")
	one.MaxQueues, one.MaxUrlsPerQueue = 1, 1
	for _, u := range f.infos(one) {
		res, err := http.Get(f.web + "?" + u.Url)
		f.want(err, nil)
		now, k := f.clock.Load()/1000, f.known[u.Url]
		var found []time.Time
		var n int
		for at := int64(0); err == nil; {
			if _, err = fmt.Fscan(res.Body, &n, &at); err == nil && n >= k.seen {
				found = append(found, time.Unix(at, 0))
				k.seen, k.minutes[n] = n+1, float64(now-at)/60
			}
		}
		res.Body.Close()
		f.fetches = append(f.fetches, now)
		// StormCrawler's adaptive scheduler with its defaults: a day, half of it after
		// a change, half as much again without, an hour at least.
		next := max(3600, k.interval/2)
		if len(found) == 0 {
			f.empty = append(f.empty, now)
			next = max(3600, k.interval*3/2)
		}
		if k.interval == 0 {
			next = day
		}
		k.interval = next
		again := map[string]int64{"fixed": now + int64(float64(len(f.known))*3600/perHour), "adaptive": now + next}
		f.put(report(u.Url, again[f.rule], found))
	}
}

// TestWeek plays a week of two recordings as feeds over HTTP that show 20 items each:
// six days as fast as they can be, and the last one a hundred times as fast as it was.
// Three fetchers may make as many requests each: for the URL that the learner wants, or
// for the one that is due for longest by fixed intervals or by those of StormCrawler's
// adaptive scheduler.
func TestWeek(t *testing.T) {
	if !*full {
		t.Skip("without -full")
	}
	feeds := map[string][]int64{}
	recorded(t, "hn", 1_606_694_400, feeds)
	recorded(t, "fbmedia2016", 1_457_913_600, feeds)
	var clock atomic.Int64
	clock.Store(monday * 1000)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		all := feeds[q.URL.RawQuery]
		n, _ := slices.BinarySearch(all, clock.Load()/1000+1)
		for i := max(0, n-shown); i < n; i++ {
			fmt.Fprintln(w, i, all[i])
		}
	}))
	defer web.Close()
	var fetchers []*fetcher
	for _, rule := range []string{"fixed", "adaptive", "learned"} {
		f := &fetcher{service: serve(t), rule: rule, web: web.URL, known: map[string]*history{}}
		fetchers = append(fetchers, f)
		f.clock = &clock
		if rule == "learned" {
			f.restart(LearnOptions{PerHour: perHour, Longest: Duration(48 * time.Hour)})
		}
		for url, all := range feeds {
			slices.Sort(all)
			f.known[url] = &history{minutes: slices.Repeat([]float64{math.Inf(1)}, len(all))}
			f.put(inL(url, monday))
		}
	}
	for ; clock.Load() < (weekEnd-day)*1000; clock.Add(pause * 1000) {
		for _, f := range fetchers {
			f.fetch()
		}
	}
	var g sync.WaitGroup
	for _, f := range fetchers {
		g.Go(func() {
			for range time.Tick(pause * time.Second / speed) {
				if clock.Load() >= weekEnd*1000 {
					return
				}
				f.fetch()
			}
		})
	}
	for began := time.Now(); clock.Load() < weekEnd*1000; time.Sleep(10 * time.Millisecond) {
		clock.Store((weekEnd-day)*1000 + time.Since(began).Milliseconds()*speed)
	}
	g.Wait()
	for _, from := range []int64{monday, weekEnd - day} {
		for _, f := range fetchers {
			f.print(feeds, from)
		}
	}
}

// print tells of the items that were published from a time on.
func (f *fetcher) print(feeds map[string][]int64, from int64) {
	since := func(times []int64) int {
		before, _ := slices.BinarySearch(times, from)
		return len(times) - before
	}
	var minutes []float64
	for url, k := range f.known {
		for i, at := range feeds[url] {
			if i >= k.seen {
				k.minutes[i] = float64(weekEnd-at) / 60 // it may still be found
			}
		}
		minutes = append(minutes, k.minutes[len(k.minutes)-since(feeds[url]):]...)
	}
	slices.Sort(minutes)
	found, _ := slices.BinarySearch(minutes, math.Inf(1))
	soon, _ := slices.BinarySearch(minutes, day/60+1e-9)
	fmt.Printf("%d days, %-9s %d feeds, %d fetches, %d empty; %d items: median %.0f min, 90 %% %.0f min, %d after a day, %d missed\n",
		(weekEnd-from)/day, f.rule, len(feeds), since(f.fetches), since(f.empty), len(minutes), minutes[len(minutes)/2], minutes[len(minutes)*9/10], found-soon, len(minutes)-found)
}
