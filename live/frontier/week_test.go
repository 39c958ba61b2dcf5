package frontier

import (
	"context"
	"flag"
	"fmt"
	"math"
	"net"
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
	rule     string
	web      *http.Client
	seen     map[string]int       // items of a feed up to the last look
	minutes  map[string][]float64 // until each was found
	interval map[string]int64     // of the adaptive rule
	fetches  []int64              // when
	empty    []int64
}

func (f *fetcher) fetch() {
	if f.rule == "learned" {
		f.server.opt.Learned.Advance(f.server.opt.Now())
	}
	one := inCrawl("L")
	one.MaxQueues, one.MaxUrlsPerQueue = 1, 1
	for _, u := range f.infos(one) {
		res, err := f.web.Get(u.Url)
		if err != nil {
			f.Fatal(err)
		}
		now := f.clock.Load() / 1000
		var found []time.Time
		for {
			var n int
			var at int64
			if _, err := fmt.Fscan(res.Body, &n, &at); err != nil {
				break
			}
			if n >= f.seen[u.Url] {
				found = append(found, time.Unix(at, 0))
				f.seen[u.Url], f.minutes[u.Url][n] = n+1, float64(now-at)/60
			}
		}
		res.Body.Close()
		f.fetches = append(f.fetches, now)
		// StormCrawler's adaptive scheduler with its defaults: a day, half of it after
		// a change, half as much again without, an hour at least.
		next := max(3600, f.interval[u.Url]/2)
		if len(found) == 0 {
			f.empty = append(f.empty, now)
			next = max(3600, f.interval[u.Url]*3/2)
		}
		if f.interval[u.Url] == 0 {
			next = day
		}
		f.interval[u.Url] = next
		again := map[string]int64{"fixed": now + int64(float64(len(f.minutes))*3600/perHour), "adaptive": now + next}
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
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		all := feeds["http://"+q.Host+"/"]
		n, _ := slices.BinarySearch(all, clock.Load()/1000+1)
		for i := max(0, n-shown); i < n; i++ {
			fmt.Fprintln(w, i, all[i])
		}
	}))
	defer web.Close()
	to := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, web.Listener.Addr().String())
	}}}
	var fetchers []*fetcher
	set := func(ms int64) {
		clock.Store(ms)
		for _, f := range fetchers {
			f.clock.Store(ms)
		}
	}
	for _, rule := range []string{"fixed", "adaptive", "learned"} {
		f := &fetcher{service: serve(t), rule: rule, web: to, seen: map[string]int{}, minutes: map[string][]float64{}, interval: map[string]int64{}}
		fetchers = append(fetchers, f)
		set(monday * 1000)
		if rule == "learned" {
			f.restart(LearnOptions{PerHour: perHour, Longest: Duration(48 * time.Hour)})
		}
		for url, all := range feeds {
			slices.Sort(all)
			f.minutes[url] = slices.Repeat([]float64{math.Inf(1)}, len(all))
			item := report(url, monday, nil)
			item.GetKnown().Info.Metadata = nil
			f.put(item)
		}
	}
	for now := int64(monday); now < weekEnd-day; now += pause {
		set(now * 1000)
		for _, f := range fetchers {
			f.fetch()
		}
	}
	began := time.Now()
	var g sync.WaitGroup
	for _, f := range fetchers {
		g.Go(func() {
			for range time.Tick(pause * time.Second / speed) {
				if f.clock.Load() >= weekEnd*1000 {
					return
				}
				f.fetch()
			}
		})
	}
	for range time.Tick(10 * time.Millisecond) {
		if set((weekEnd-day)*1000 + time.Since(began).Milliseconds()*speed); clock.Load() >= weekEnd*1000 {
			break
		}
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
	missed, late := 0, 0
	for url, all := range feeds {
		for i, at := range all {
			m := f.minutes[url][i]
			if i >= f.seen[url] {
				m = float64(weekEnd-at) / 60 // it may still be found
			}
			if at < from {
				continue
			}
			minutes = append(minutes, m)
			if math.IsInf(m, 1) {
				missed++
			} else if m > day/60 {
				late++
			}
		}
	}
	slices.Sort(minutes)
	fmt.Printf("%d days, %-9s %d feeds, %d fetches, %d empty; %d items: median %.0f min, 90 %% %.0f min, %d after a day, %d missed\n",
		(weekEnd-from)/day, f.rule, len(feeds), since(f.fetches), since(f.empty), len(minutes), minutes[len(minutes)/2], minutes[len(minutes)*9/10], late, missed)
}
