package frontier

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"ephemera/env"
	"ephemera/learner"
	pb "ephemera/live/frontier/urlfrontier"
)

// with is a known URL of the learned crawl with metadata, in pairs.
func with(url string, date int64, pairs ...string) *pb.URLItem {
	item := inL(url, date)
	item.GetKnown().Info.Metadata = map[string]*pb.StringList{}
	for i := 0; i < len(pairs); i += 2 {
		item.GetKnown().Info.Metadata[pairs[i]] = &pb.StringList{Values: []string{pairs[i+1]}}
	}
	return item
}

// TestWhatIsSaid: what a client says of a fetch of a page that was fetched before.
func TestWhatIsSaid(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pairs []string
		// whether it counts as a fetch that tells something, and as one that saw a change
		fetched, changed bool
	}{
		{"304 without a signature", []string{metaStatus, "304"}, true, false},
		{"304, and the signature of before", []string{metaSignature, "a", metaStatus, "304"}, true, false},
		{"404, and the signature of before", []string{metaSignature, "a", metaStatus, "404"}, false, false},
		{"another signature", []string{metaSignature, "b", metaStatus, "200"}, true, true},
		{"another signature without a status", []string{metaSignature, "b"}, true, true},
		{"items", []string{metaItems, "1700000000"}, true, true},
		{"no connection", []string{metaSignature, "a", metaStatus, "200", metaErrors, "1"}, false, false},
		{"no items, and another signature", []string{metaNew, "0", metaSignature, "b"}, true, false},
		{"nothing", nil, false, false},
		{"the end after many errors", []string{metaSignature, "b", metaErrorCause, "x"}, false, false},
		{"the same signature", []string{metaSignature, "a", metaStatus, "200"}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, LearnOptions{PerHour: 1, Objective: env.Objective{Law: env.LawFreshness}})
			s.put(with("http://h/", 0, metaSignature, "a", metaStatus, "200"))
			s.wait(3600)
			s.crash(LearnOptions{PerHour: 1, Objective: env.Objective{Law: env.LawFreshness}}) // it is in the record
			before := s.server.opt.Learned.Summaries(0)[0]
			s.want(s.put(with("http://h/", 0, tt.pairs...)), "http://h/ OK")
			after := s.server.opt.Learned.Summaries(0)[0]
			fetched, changed := after.Fetched > before.Fetched, after.Changes > before.Changes
			if fetched != tt.fetched || changed != tt.changed {
				t.Errorf("that it is a fetch is %v, and that it saw a change %v; want %v and %v",
					fetched, changed, tt.fetched, tt.changed)
			}
			s.want(s.stats("", "L"), "size 1 process 0 queues 1 completed 0 active 1 crawl L")
		})
	}
}

// TestAim: what the first fetch of a crawl reports says what fetches are to bring about, and that
// stays so, also after a kill, however soon that is.
func TestAim(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first *pb.URLItem
		want  string
	}{
		{"items", report("http://h/", 0, nil), "delay"},
		{"signature", with("http://h/", 0, metaSignature, "a"), "freshness"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, LearnOptions{PerHour: 1})
			s.put(tt.first)
			s.put(with("http://i/", 0, metaSignature, "a"), report("http://j/", 0, nil))
			for range 2 {
				got := s.server.opt.Learned.Summaries(0)[0]
				s.want(fmt.Sprint(got.Objective, " of ", got.Sources), tt.want+" of 3")
				s.crash(LearnOptions{PerHour: 1})
			}
		})
	}
}

// TestStatusMeanwhile: what is asked about a URL while reports say what fetches are to bring about is of one of them;
// the race detector sees where it is of both.
func TestStatusMeanwhile(t *testing.T) {
	s := serve(t, LearnOptions{PerHour: 1})
	var asked sync.WaitGroup
	asking, end := context.WithCancel(ctx)
	asked.Go(func() {
		for asking.Err() == nil {
			s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h/", CrawlID: "L"})
		}
	})
	for range 50 {
		s.put(page("http://h/", 0), done("http://h/"), feed("http://h/", 0), done("http://h/"))
	}
	end()
	asked.Wait()
}

// TestNeverDue: of a page that changes too often to be worth a fetch it is said that it is due never.
func TestNeverDue(t *testing.T) {
	s := serve(t, LearnOptions{PerHour: 1})
	for k := range 100 {
		s.put(with("http://fast/", 0, metaSignature, fmt.Sprint(k)))
		s.put(with("http://slow/", 0, metaSignature, fmt.Sprint(k/50)))
		s.wait(600)
		s.server.opt.Learned.Advance()
	}
	why := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://fast/", CrawlID: "L"})).GetKnown().Info.Metadata
	if got := why[metaWhy].GetValues(); len(got) != 4 || got[3] != "due never" {
		t.Errorf("of the fast one it says %q", got)
	}
	if page := s.page(); strings.Count(page, "<td>never</td>") != 1 {
		t.Errorf("the page says never of %d URLs, want 1", strings.Count(page, "<td>never</td>"))
	}
}

// TestDates: a date of the client's is the earliest time of the next fetch, or nothing.
func TestDates(t *testing.T) {
	for _, tt := range []struct {
		name  string
		dates Dates
		put   func(url string, date int64) *pb.URLItem
		waits bool
	}{
		{"earliest, of a page", Earliest, page, true},
		{"ignored, of items", Ignore, feed, false},
		{"usual, of a page", Dates{}, page, false},
		{"usual, of a page after an error", Dates{}, func(url string, d int64) *pb.URLItem {
			return with(url, d, metaSignature, "a", metaErrors, "1")
		}, false},
		{"usual, of items", Dates{}, feed, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, LearnOptions{PerHour: 10, Longest: Duration{20 * time.Hour}, Dates: tt.dates})
			first := tt.put("http://h/", 0)
			delete(first.GetKnown().Info.Metadata, metaErrors)
			s.put(first)
			s.put(tt.put("http://h/", start+100*3600))
			if n := len(s.hours(50)); (n == 0) != tt.waits {
				t.Errorf("%d URLs are handed out in half of the time up to the client's date", n)
			}
			if s.wait(100 * 3600); len(s.hours(50)) != 1 {
				t.Error("it is not handed out after the client's date")
			}
		})
	}
}

// TestItemsSentAgain: a feed's last items, sent each time, count once.
func TestItemsSentAgain(t *testing.T) {
	at := func(hours ...int) (times []time.Time) {
		for _, h := range hours {
			times = append(times, time.Unix(start+int64(h)*3600, 0))
		}
		return times
	}
	long := make([]int, 30)
	for i := range long {
		long[i] = i
	}
	for _, tt := range []struct {
		name          string
		first, second []time.Time
		want          int
	}{
		{"all again, and one more", at(-3, -2, -1), at(-3, -2, -1, 0), 1},
		{"late ones", at(-1), at(-3, -1), 1},
		{"more than are kept", at(long...), at(long...), 0},
		{"only new ones", at(-3, -2), at(-1, 0), 2},
		{"three of one second, of which two were there", at(-1, -1), at(-1, -1, -1), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var h history
			h.add(time.Unix(start, 0), itemsAt(tt.first), true)
			if got := h.unseen(itemsAt(tt.second)); len(got) != tt.want {
				t.Errorf("%d items are new, want %d", len(got), tt.want)
			}
		})
	}
	// So the rate of a slow feed is its rate.
	s := serve(t, LearnOptions{PerHour: 1})
	var all []time.Time
	for hour := 0; hour < 400; hour += 10 {
		all = append(all, s.server.now())
		s.wait(36_000)
		s.put(report("http://h/", 0, all[max(0, len(all)-20):]))
	}
	status := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h/", CrawlID: "L"}))
	why := status.GetKnown().Info.Metadata[metaWhy]
	var rate float64
	if fmt.Sscanf(why.GetValues()[0], "items per hour %g", &rate); math.Abs(rate/.1-1) > .3 {
		t.Errorf("an item in ten hours, sent with the 19 before it, is thought to be %g an hour", rate)
	}
}

func itemsAt(times []time.Time) (items []learner.Item) {
	for _, at := range times {
		items = append(items, learner.Item{Published: at})
	}
	return items
}

// TestPing: a ping makes a page older once, and is no fetch; with a time it is one if the page
// was not fetched since.
func TestPing(t *testing.T) {
	s := serve(t, LearnOptions{PerHour: 1})
	fresh := func() float64 {
		s.server.opt.Learned.Advance()
		return must(s.server.opt.Learned.crawls["L"].crawler.Belief("1:hhttp://h/")).Fresh
	}
	for i := range 20 { // it changes each other hour, and pings tell of each
		s.put(with("http://h/", 0, metaSignature, fmt.Sprint(i/2), metaStatus, "200"))
		s.wait(3600)
		if i%2 == 1 {
			s.put(with("http://h/", 0, metaPing, ""))
		}
		s.wait(3600)
		fresh()
	}
	s.put(with("http://h/", 0, metaSignature, "last", metaStatus, "200"))
	s.wait(7200)
	before, stats := fresh(), s.stats("h", "L")
	at := s.clock.Load() / 1000
	for _, tt := range []struct {
		name, want string
		item       *pb.URLItem
	}{
		{"of before the last fetch", "SKIPPED", with("http://h/", 0, metaPing, fmt.Sprint(at-10_000))},
		{"of no time", "SKIPPED", with("http://h/", 0, metaPing, "often")},
		{"in milliseconds", "SKIPPED", with("http://h/", 0, metaPing, fmt.Sprint(at*1000))},
		{"of an unknown URL", "OK", with("http://i/", 0, metaPing, "")},
	} {
		s.want(s.put(tt.item), tt.item.GetKnown().Info.Url+" "+tt.want)
		if got := fresh(); got != before {
			t.Errorf("a ping %s has it fresh with %v, before %v", tt.name, got, before)
		}
	}
	info := with("http://h/", 0, metaPing, fmt.Sprint(at)).GetKnown().Info
	for _, want := range []string{"OK", "SKIPPED"} { // a sitemap says so again
		s.want(s.put(discoveredInfo(info)), "http://h/ "+want)
		info.Metadata[metaPing] = &pb.StringList{Values: []string{fmt.Sprint(at)}}
	}
	after := fresh()
	if after > .8*before {
		t.Errorf("after a ping it is fresh with %v, before with %v", after, before)
	}
	s.crash(LearnOptions{PerHour: 1})
	if got := fresh(); math.Abs(got-after) > .01 {
		t.Errorf("after a kill it is fresh with %v, before with %v", got, after)
	}
	s.want(s.stats("h", "L"), stats)
}

// TestPriority: a discovered URL goes before those that wait for less long than its priority
// says, is due at once, and keeps nothing of it.
func TestPriority(t *testing.T) {
	s := serve(t)
	put := func(url string, pairs ...string) {
		s.put(discoveredInfo(with(url, 0, pairs...).GetKnown().Info))
	}
	for _, tt := range []struct{ path, priority string }{
		{"1", ""}, {"2", "60"}, {"3", "much"}, {"4", "100000000"}, {"5", "4000000000"}, {"6", "-1"},
	} {
		if put("http://h/"+tt.path, metaPriority, tt.priority); tt.priority == "" {
			s.wait(30)
		}
	}
	all := &pb.GetParams{Item: &pb.GetParams_CrawlID{CrawlID: "L"}}
	s.want(s.get(all), "http://h/5 http://h/4 http://h/2 http://h/1 http://h/3 http://h/6")
	if page := s.page(); !strings.Contains(page, "much") || !strings.Contains(page, "allowed are seconds") {
		t.Errorf("the page does not say what is wrong with a priority: %s", page)
	}
	info := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h/2", CrawlID: "L"})).GetKnown().Info
	if len(info.Metadata) > 0 {
		t.Errorf("the priority is kept as metadata: %v", info.Metadata)
	}
}

// TestOursAreNotKept: of the names that begin with ephemera. none is handed out, of whatever URL in
// whatever crawl, so that a client which puts back what it was given reports nothing.
func TestOursAreNotKept(t *testing.T) {
	for _, tt := range []struct{ crawl, how string }{
		{"L", "discovered"}, {"other", "discovered"}, {"other", "known"},
		{"L", "by an earlier version"}, {"other", "by an earlier version"},
	} {
		t.Run(tt.how+" in "+tt.crawl, func(t *testing.T) {
			s := serve(t, LearnOptions{PerHour: 1})
			item := with("http://h/", start, metaItems, "1700000000", metaDone, "", metaWhy, "x", metaState, "{}",
				metaQueue, "{}", metaPriority, "1", "ephemera.mine", "x", "mine", "x")
			info := item.GetKnown().Info
			info.CrawlID = tt.crawl
			id, _ := identify(info)
			switch tt.how {
			case "discovered":
				s.put(discoveredInfo(info))
			case "known":
				s.put(item)
			default:
				must(s.store.Put(id, start*1000, start*1000, must(proto.Marshal(&pb.URLInfo{Metadata: info.Metadata}))))
			}
			names := func(info *pb.URLInfo) string { return fmt.Sprint(slices.Collect(maps.Keys(info.Metadata))) }
			got := s.infos(anyCrawl)
			s.want(len(got), 1)
			s.want(names(got[0]), "[mine]")
			if kept := must(wholeInfo(must(s.store.Find(id)))); tt.how != "by an earlier version" {
				s.want(names(kept), "[mine]")
			}
			again := &pb.KnownURLItem{Info: got[0], RefetchableFromDate: start + 100}
			s.put(&pb.URLItem{Item: &pb.URLItem_Known{Known: again}})
			s.want(s.list(&pb.ListUrlParams{CrawlID: tt.crawl}), fmt.Sprint("http://h/@", start+100))
			s.want(s.server.opt.Learned.Summaries(0)[0].Sources, 0)
		})
	}
}

// TestItemsToCome: items of a client that counts in milliseconds, or whose clock is wrong, are a
// mistake, and hide none that are found later; a clock that is ahead by less is none.
func TestItemsToCome(t *testing.T) {
	s := serve(t, LearnOptions{PerHour: 1})
	put := func(after time.Duration) string {
		s.wait(3600)
		now := s.server.now()
		s.want(s.put(report("http://h0/", 0, slices.Repeat([]time.Time{now.Add(after)}, mostKept))), "http://h0/ OK")
		item := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h0/", CrawlID: "L"}))
		return fmt.Sprint(item.GetKnown().GetInfo().GetMetadata()[metaWhy])
	}
	put(-time.Minute)
	for _, after := range []time.Duration{25 * time.Hour, 200 * 365 * 24 * time.Hour} {
		if why := put(after); !strings.Contains(why, "which is to come") {
			t.Errorf("items %v ahead: %s", after, why)
		}
	}
	s.want(s.server.opt.Learned.Summaries(0)[0].Items, 0)
	for k, after := range []time.Duration{-time.Minute, time.Hour, -time.Minute} {
		if why := put(after); strings.Contains(why, "which is to come") {
			t.Errorf("items %v ahead: %s", after, why)
		}
		s.want(s.server.opt.Learned.Summaries(0)[0].Items, (k+1)*mostKept)
	}
}

// TestLongest: what is put reaches clients that read as much as they write; what is longer is not
// put.
func TestLongest(t *testing.T) {
	s := serve(t)
	for _, tt := range []struct {
		url, metadata int
		want          string
	}{{0, 1000, "OK"}, {0, longestInfo, "SKIPPED"}, {longestInfo, 0, "SKIPPED"}, {longestInfo - 100, 0, "OK"}} {
		info := &pb.URLInfo{Url: "http://h/" + strings.Repeat("u", tt.url), Key: fmt.Sprint(tt)}
		if tt.metadata > 0 {
			info.Metadata = map[string]*pb.StringList{"m": {Values: []string{strings.Repeat("x", tt.metadata)}}}
		}
		item := discoveredInfo(info)
		item.ID = "id"
		s.want(s.put(item), "id "+tt.want)
	}
	s.wait(10)
	if got := len(s.infos(&pb.GetParams{MaxUrlsPerQueue: 10, MaxQueues: 10})); got != 2 {
		t.Errorf("%d URLs are handed out", got)
	}
}

// TestEvenly: items of a long absence lie between the two fetches, also where they are many.
func TestEvenly(t *testing.T) {
	last := time.Unix(start, 0)
	now := last.Add(60 * 24 * time.Hour)
	before := last
	for _, it := range evenly(mostNew, last, now) {
		if !it.Published.After(before) || !it.Published.Before(now) {
			t.Fatalf("an item is of %v, the one before of %v; the fetches were at %v and %v",
				it.Published, before, last, now)
		}
		before = it.Published
	}
}

// TestPingBehindPut: a ping that comes right behind a fetch, before that is on disk, leaves what the client put
// with the fetch, and is not acknowledged before that.
func TestPingBehindPut(t *testing.T) {
	s := serve(t, LearnOptions{PerHour: 1})
	s.put(with("http://h/", 0, metaSignature, "0", "mine", "0"))
	for i := range 50 {
		s.wait(60)
		mine := fmt.Sprint(i)
		fetch, ping := with("http://h/", 0, metaSignature, mine, "mine", mine), with("http://h/", 0, metaPing, "")
		s.server.known(fetch.GetKnown())
		if status, commit := s.server.discovered(proto.CloneOf(ping.GetKnown().Info)); commit == nil {
			t.Errorf("a ping that is no news is answered %v before its URL is on disk", status)
		}
		s.wait(60)
		_, commit := s.server.discovered(ping.GetKnown().Info)
		commit.Wait()
		item := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h/", CrawlID: "L"}))
		s.want(fmt.Sprint(item.GetKnown().Info.Metadata["mine"].GetValues()), fmt.Sprint([]string{mine}))
	}
}
