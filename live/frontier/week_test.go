package frontier

import (
	"bufio"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var full = flag.Bool("full", false, "play a week of recordings and print a table")

// recorded adds the sources of a recording, with the times of their items from a
// Monday on, moved to the service's first one.
func recorded(t *testing.T, name string, monday, first int64, items map[string][]int64) {
	f, err := os.Open("../../../shared/data/" + name)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(z)
	for in.Scan() {
		source, rest, _ := strings.Cut(in.Text(), ",")
		var at int64
		if fmt.Sscan(strings.Split(rest, ",")[0], &at); at >= monday {
			url := "http://" + strings.Map(func(r rune) rune {
				if r == ' ' || r == '/' {
					return '-'
				}
				return r
			}, source) + "/" + name
			items[url] = append(items[url], at-monday+first)
		}
	}
}

// TestWeek plays two recordings behind URLs for a week. The client fetches one URL
// every three minutes: the one that the learner wants, or the one that is due for
// longest by fixed intervals or by those of StormCrawler's adaptive scheduler.
func TestWeek(t *testing.T) {
	if !*full {
		t.Skip("without -full")
	}
	const (
		first, days = 1_700_438_400, 7 // from a Monday on
		step        = 180              // seconds
		perHour     = 17.5             // fetches, as many as the adaptive rule makes
	)
	items := map[string][]int64{}
	recorded(t, "trace_hn.csv.gz", 1_606_694_400, first, items)
	recorded(t, "trace_fbmedia2016.csv.gz", 1_457_913_600, first, items)
	for _, rule := range []string{"fixed", "adaptive", "learned"} {
		s := serve(t)
		s.clock.Store(first * 1000)
		if rule == "learned" {
			s.stop()
			s.start(LearnOptions{PerHour: perHour, Longest: Duration(48 * time.Hour)})
		}
		found := map[string]int{}
		interval := map[string]int64{}
		for url := range items {
			item := report(url, first, nil)
			item.GetKnown().Info.Metadata = nil
			s.put(item)
		}
		var late, lastDay []float64
		fetches, empty := 0, 0
		for now := int64(first); now < first+days*86400; now += step {
			s.clock.Store(now * 1000)
			if rule == "learned" {
				s.server.learned.Advance(s.server.now())
			}
			one := inCrawl("L")
			one.MaxQueues, one.MaxUrlsPerQueue = 1, 1
			for _, u := range s.infos(one) {
				var new []time.Time
				for all := items[u.Url]; found[u.Url] < len(all) && all[found[u.Url]] <= now; found[u.Url]++ {
					at := all[found[u.Url]]
					new = append(new, time.Unix(at, 0))
					late = append(late, float64(now-at)/60)
					if now >= first+(days-1)*86400 {
						lastDay = append(lastDay, float64(now-at)/60)
					}
				}
				fetches++
				item := report(u.Url, 0, new)
				// Defaults of StormCrawler: a day, half of it after a change, half
				// as much again without, an hour at least.
				next := max(3600, interval[u.Url]*3/2)
				if len(new) == 0 {
					empty++
				} else {
					next = max(3600, interval[u.Url]/2)
				}
				if interval[u.Url] == 0 {
					next = 86400
				}
				interval[u.Url] = next
				switch rule {
				case "fixed":
					item = report(u.Url, now+int64(float64(len(items))*3600/perHour), nil)
				case "adaptive":
					item = report(u.Url, now+next, nil)
				}
				s.put(item)
			}
		}
		for url, all := range items {
			for _, at := range all[found[url]:] {
				if end := int64(first + days*86400); at < end {
					late = append(late, float64(end-at)/60)
					lastDay = append(lastDay, float64(end-at)/60)
				}
			}
		}
		over := func(l []float64) int {
			n := 0
			for _, m := range l {
				if m > 24*60 {
					n++
				}
			}
			return n
		}
		for _, l := range [][]float64{late, lastDay} {
			slices.Sort(l)
			fmt.Printf("%-9s %d URLs, %d fetches, %d empty; %d items: median %.0f min, 90 %% %.0f min, %d after a day or not at all\n",
				rule, len(items), fetches, empty, len(l), l[len(l)/2], l[len(l)*9/10], over(l))
		}
	}
}
