package frontier

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"ephemera/env"
	"ephemera/learner"
	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/schedule"
	"ephemera/live/store"
	"ephemera/live/store/storetest"
)

// report is what a client puts back after a fetch at a time that found the items.
func report(url string, date int64, found []time.Time) *pb.URLItem {
	item, l := inL(url, date), &pb.StringList{}
	for _, at := range found {
		l.Values = append(l.Values, at.Format(time.RFC3339))
	}
	item.GetKnown().Info.Metadata = map[string]*pb.StringList{metaItems: l, "kept": {Values: []string{"x"}}}
	return item
}

// inL is a known URL of the learned crawl, without metadata.
func inL(url string, date int64) *pb.URLItem {
	item := known(url, uint64(date))
	item.GetKnown().Info.CrawlID = "L"
	return item
}

// done is a known URL of the learned crawl that is not to be fetched again.
func done(url string) *pb.URLItem {
	item := inL(url, 0)
	item.GetKnown().Info.Metadata = map[string]*pb.StringList{metaDone: {}}
	return item
}

// play has a client fetch what is due until an hour, from URLs of which i publishes
// an item every gaps[i] hours, and returns how often it fetched each.
func (s *service) play(gaps []float64, until int) []int {
	s.Helper()
	fetches := make([]int, len(gaps))
	hours := func() float64 { return float64(s.clock.Load()-start*1000) / 3.6e6 }
	last := slices.Repeat([]float64{hours()}, len(gaps))
	for hours() < float64(until) {
		s.server.opt.Learned.Advance()
		for _, u := range s.infos(inCrawl("L")) {
			if _, ok := u.Metadata[metaItems]; ok || len(u.Metadata) > 0 && u.Metadata["kept"] == nil {
				s.Fatal("metadata ", u.Metadata)
			}
			var i int
			fmt.Sscanf(u.Url, "http://h%d/", &i)
			var found []time.Time
			for k := math.Ceil(last[i] / gaps[i]); k*gaps[i] < hours(); k++ {
				found = append(found, time.Unix(start+int64(k*gaps[i]*3600), 0))
			}
			last[i] = hours()
			fetches[i]++
			s.want(s.put(report(u.Url, 0, found)), u.Url+" OK")
		}
		s.wait(300)
	}
	return fetches
}

// TestLearned holds that the budget is kept, that URLs are fetched for what they
// publish, also after a restart, and that it is said why.
func TestLearned(t *testing.T) {
	opt := LearnOptions{PerHour: 1, Longest: Duration{48 * time.Hour}}
	s := serve(t, opt)
	gaps := []float64{.5, 5, 1000}
	for i := range gaps {
		s.put(discoveredInfo(&pb.URLInfo{Url: fmt.Sprintf("http://h%d/", i), CrawlID: "L"}))
	}
	s.play(gaps, 100)
	s.server.opt.Learned.Save()
	s.restart(opt)
	n := s.play(gaps, 200)
	if sum := n[0] + n[1] + n[2]; sum > 103 || n[0] < 2*n[1] || n[1] < 2*n[2] || n[2] < 2 {
		t.Fatalf("%d fetches in 100 hours of at most 1", n)
	}
	status := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h0/", CrawlID: "L"}))
	why := status.GetKnown().Info.Metadata[metaWhy]
	var rate float64
	if fmt.Sscanf(strings.Join(why.GetValues(), "\n"), "items per hour %g", &rate); rate < 1 || rate > 4 {
		t.Fatalf("2 items per hour are thought to be %v", why)
	}

	// The client's date is the earliest.
	s.put(report("http://h0/", s.clock.Load()/1000+36000, nil))
	if n := s.play(gaps, 209); n[0] != 0 {
		t.Fatalf("fetched %d times before the client's date", n[0])
	}
	if n := s.play(gaps, 220); n[0] == 0 {
		t.Fatal("not fetched after the client's date")
	}
	// Without what was found, a date of 0 completes nothing: only ephemera.done does.
	s.put(inL("http://h1/", 0))
	s.want(s.stats("h1", "L"), "size 1 process 0 queues 1 completed 0 active 1 crawl L")
	if n := s.play(gaps, 240); n[1] == 0 {
		t.Fatal("not fetched after a fetch that failed, whose date is 0")
	}
	s.put(done("http://h1/"))
	s.want(s.stats("h1", "L"), "size 0 process 0 queues 1 completed 1 active 0 crawl L")
	s.play(gaps, 280)
	if n := s.server.opt.Learned.Summaries(0)[0].Sources; n != 2 {
		t.Fatalf("%d sources; the completed one should be forgotten", n)
	}
}

// TestBudget holds that many URLs take no more than the budget, also where it is too small for the longest interval,
// or for the dates at which the client would try again what failed.
func TestBudget(t *testing.T) {
	const n, hours = 100, 48
	for _, longest := range []time.Duration{0, 2 * time.Hour} {
		for _, tt := range []struct {
			name       string
			first, put func(url string, date int64) *pb.URLItem
		}{
			{"pages", page, page},
			{"feeds", feed, feed},
			{"failed", feed, inL},
		} {
			t.Run(fmt.Sprint(tt.name, longest), func(t *testing.T) {
				s := serve(t, LearnOptions{PerHour: 1, Longest: Duration{longest}})
				for i := range n {
					s.put(tt.first(fmt.Sprintf("http://h%d/", i), 0))
				}
				fetches := 0
				for range hours * 6 {
					s.server.opt.Learned.Advance()
					for _, u := range s.infos(inCrawl("L")) {
						fetches++
						s.put(tt.put(u.Url, s.clock.Load()/1000+3600))
					}
					s.wait(600)
				}
				if fetches < hours*3/4 || fetches > hours+4 {
					t.Errorf("%d fetches in %d hours of one", fetches, hours)
				}
			})
		}
	}
}

// page is a page that has not changed, and feed a feed without new items, of the learned crawl.
func page(url string, date int64) *pb.URLItem { return with(url, date, metaSignature, "a") }
func feed(url string, date int64) *pb.URLItem { return report(url, date, nil) }

// TestShadow holds that in the shadow the client's dates stand, and that it gets the learner's
// what both find.
func TestShadow(t *testing.T) {
	s := serve(t, LearnOptions{PerHour: 1, Shadow: true})
	for hour := range 200 {
		now := s.server.now()
		i := hour % 2 // the client fetches in turn
		var found []time.Time
		for k := range 2 {
			if at := now.Add(-time.Duration(2-k)*time.Hour + time.Minute); (hour+k)%[]int{1, 50}[i] == 0 {
				found = append(found, at)
			}
		}
		url := fmt.Sprintf("http://h%d/", i)
		s.put(report(url, now.Unix()+7200, found))
		item := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: url, CrawlID: "L"}))
		s.want(item.GetKnown().RefetchableFromDate, uint64(now.Unix()+7200))
		for range 60 {
			s.wait(60)
			s.server.opt.Learned.Advance()
		}
	}
	sum := s.server.opt.Learned.Summaries(1)[0]
	if sum.Items < 100 || sum.Found < sum.Items*8/10 || sum.Delay >= sum.ClientDelay || sum.Asked > 201 {
		t.Fatalf("%+v", sum)
	}
	s.put(report("http://h0/", 0, nil)) // by the client's schedule it is not to be fetched again
	for range 2 {
		s.want(s.server.opt.Learned.Summaries(0)[0].Sources, 1)
		s.restart(LearnOptions{PerHour: 1, Shadow: true})
	}
}

// TestItems holds that a client's mistake in the metadata is found.
func TestItems(t *testing.T) {
	for _, said := range mistakes {
		if found, err := items(said, time.Time{}, time.Now()); err == nil || !strings.Contains(err.Error(), "allowed") {
			t.Error(said, found, err)
		}
	}
	now := time.Unix(start, 0)
	found, err := items(map[string][]string{metaNew: {"2"}}, now.Add(-4*time.Hour), now)
	if err != nil || len(found) != 2 ||
		now.Sub(found[0].Published) != 3*time.Hour || now.Sub(found[1].Published) != time.Hour {
		t.Fatal(found, err)
	}
}

// TestManyItems: the mean times until items are found are right however many were, and however late.
func TestManyItems(t *testing.T) {
	l := must(NewLearned(serve(t).store, slog.Default(), map[string]LearnOptions{"L": {PerHour: 1, Shadow: true}}))
	c, now := l.crawls["L"], time.Unix(start, 0)
	const late = 100 * 365 * 24 * time.Hour
	for range 5 {
		c.shadow("u").picks = []time.Time{now.Add(-time.Hour)}
		found := []learner.Item{{Published: now.Add(-late)}}
		c.compare("u", now.Add(-2*late), found, now)
	}
	if s := l.summary("L", c, now, 0); s.ClientDelay != late || s.Delay != late-time.Hour {
		t.Errorf("the client found items after %v, the learner would have after %v; want %v and an hour less",
			s.ClientDelay, s.Delay, late)
	}
}

// TestSummaryOfMany: while what all URLs are thought to publish is summed up others get at the learners, and
// little memory is taken.
func TestSummaryOfMany(t *testing.T) {
	l := must(NewLearned(serve(t).store, slog.Default(), map[string]LearnOptions{"L": {PerHour: 1}}))
	c, now := l.crawls["L"], time.Unix(start, 0)
	const n = 20_000
	for k := range n {
		name := sourceName(schedule.ID{Crawl: "L", Key: "k", URL: fmt.Sprint("http://k/", k)})
		c.sources[name] = (&history{}).pack()
		if err := c.crawler.Add(name, c.rules()); err != nil {
			t.Fatal(err)
		}
		crawl := learner.Crawl{Source: name, At: now, Items: make([]learner.Item, k%10)}
		for i := range crawl.Items {
			crawl.Items[i].Published = now
		}
		if err := c.crawler.Update(crawl); err != nil {
			t.Fatal(err)
		}
	}
	turns := 0
	l.pause = func() { turns++ }
	s := l.Summaries(100)[0]
	if turns < n/namesAtOnce || len(s.Beliefs) != 100 || cap(s.Beliefs) > 1000 || s.Sources != n {
		t.Errorf("of %d URLs %d are shown, in a place for %d; others had %d turns meanwhile, want %d",
			s.Sources, len(s.Beliefs), cap(s.Beliefs), turns, n/namesAtOnce)
	}
}

// TestItemsWorthNothing: items that are worth nothing bring no fetches, also after a start with another learner's
// state; those of which earlier versions kept a 0 were worth 1.
func TestItemsWorthNothing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		worth []string
		want  bool
	}{{"0", slices.Repeat([]string{"0"}, 3), false}, {"unsaid", nil, true}} {
		s := serve(t, LearnOptions{PerHour: 1})
		for range 100 {
			s.wait(7200)
			now := s.server.now()
			item := report("http://h/", 0, []time.Time{now.Add(-2 * time.Hour), now.Add(-time.Hour), now})
			if tt.worth != nil {
				item.GetKnown().Info.Metadata[metaWorth] = &pb.StringList{Values: tt.worth}
			}
			s.put(item)
		}
		s.wait(7200)
		b, err := s.server.opt.Learned.crawls["L"].crawler.Belief("1:hhttp://h/")
		if err != nil || b.Interest > .5 != tt.want {
			t.Errorf("worth %s: %v an hour is published (%v)", tt.name, b.Interest, err)
		}
	}
	h := history{Items: [][2]float64{{start, 0}}}
	h.add(time.Unix(start, 0), []learner.Item{{Published: time.Unix(start, 0), Worth: new(0.)}}, true)
	if !(h.Items[1][1] > 0) {
		t.Errorf("a worth of 0 is kept as %v, which stands for 1", h.Items[1][1])
	}
}

// mistakes are what clients may say of a fetch by mistake.
var mistakes = []map[string][]string{
	{metaItems: {"yesterday"}},
	{metaNew: {"-1"}},
	{metaNew: {"many"}},
	{metaItems: {"1700000000"}, metaWorth: {"much"}},
	{metaItems: {"1700000000"}, metaWorth: {"-1"}},
	{metaItems: {"1700000000"}, metaWorth: {"NaN"}},
	{metaItems: {"1700000000"}, metaWorth: {"1e308"}},
	{"ephemera.itmes": {"1700000000"}},
}

// hours lets the client fetch nothing for so many hours, and returns when the URLs of the
// learned crawl were handed out first.
func (s *service) hours(n int) map[string]int {
	s.Helper()
	first := map[string]int{}
	for hour := range n {
		s.server.opt.Learned.Advance()
		for _, u := range s.infos(inCrawl("L")) {
			if _, ok := first[u.Url]; !ok {
				first[u.Url] = hour
			}
			if u.Metadata[metaState] != nil {
				s.Fatal("what is learned is handed out: ", u)
			}
		}
		s.wait(3600)
	}
	return first
}

// TestMistakes holds that a URL whose client makes a mistake in what it says of a fetch is
// fetched again, that nobody else suffers, and that the client can find out.
func TestMistakes(t *testing.T) {
	for _, said := range mistakes {
		t.Run(fmt.Sprint(said), func(t *testing.T) {
			s := serve(t, LearnOptions{PerHour: 2})
			s.want(s.put(report("http://good/", 0, []time.Time{s.server.now()})), "http://good/ OK")
			for _, url := range []string{"http://new/", "http://good/"} { // unknown before, and known
				item := inL(url, 0)
				item.GetKnown().Info.Metadata = map[string]*pb.StringList{}
				for key, values := range said {
					item.GetKnown().Info.Metadata[key] = &pb.StringList{Values: values}
				}
				s.want(s.put(item), url+" OK")
				status := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: url, CrawlID: "L"})).GetKnown()
				why := fmt.Sprint(status.Info.Metadata[metaWhy])
				if status.RefetchableFromDate == 0 || !strings.Contains(why, "allowed") {
					t.Errorf("%s: due at %d, %s", url, status.RefetchableFromDate, why)
				}
			}
			if page := s.page(); !strings.Contains(page, "allowed") {
				t.Errorf("the page does not tell of the mistake:\n%s", page)
			} else if strings.Contains(page, "01 Jan") {
				t.Errorf("the page has a last fetch of a URL that was not fetched:\n%s", page)
			}
			s.crash(LearnOptions{PerHour: 2})
			first := s.hours(100)
			if _, ok := first["http://new/"]; !ok || len(first) != 2 {
				t.Errorf("within 100 hours are handed out, by hour: %v", first)
			}
		})
	}
}

// TestLongMistakes: of a value that is as long as a page, the beginning is told, so that little is kept of it, and
// clients can read it.
func TestLongMistakes(t *testing.T) {
	long := strings.Repeat("\x00", longestInfo-1000)
	s := serve(t, LearnOptions{PerHour: 1})
	for _, name := range []string{metaItems, metaWorth, metaNew, metaOurs + long} {
		item := with("http://h/", 0, name, long)
		switch name {
		case metaItems, metaNew:
		case metaWorth:
			item = with("http://h/", 0, name, long, metaItems, fmt.Sprint(start))
		default:
			item = with("http://h/", 0, name, "1")
		}
		s.want(s.put(item), "http://h/ OK")
		why := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h/", CrawlID: "L"})).GetKnown().Info.Metadata
		mistake := strings.Join(why[metaWhy].GetValues(), "\n")
		if !strings.Contains(mistake, "allowed") || len(mistake) > 2000 {
			t.Errorf("of a long %.30q %d bytes are told: %.100q", name, len(mistake), mistake)
		}
	}
	s.put(with("http://h/", 0, metaPing, long))
	s.put(with("http://h/", 0, metaPing, "2099-01-01T00:00:00."+strings.Repeat("0", len(long))+"Z"))
	s.put(discoveredInfo(with("http://h/"+long, 0, metaPriority, "x").GetKnown().Info))
	s.put(discoveredInfo(with("http://i/", 0, metaPriority, long).GetKnown().Info))
	if n := len(s.page()); n > 50_000 {
		t.Errorf("the page has %d bytes", n)
	}
}

func (s *service) page() string {
	w := httptest.NewRecorder()
	s.server.HTTP().ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/", nil))
	return w.Body.String()
}

// crash begins again with what is on disk, without what a service keeps at its end.
func (s *service) crash(learn ...LearnOptions) { s.restart(learn...) }

// TestKilled holds that a URL which was put is learned after a kill, however soon that is.
func TestKilled(t *testing.T) {
	opt := LearnOptions{PerHour: 2, Longest: Duration{20 * 24 * time.Hour}}
	s := serve(t, opt)
	gaps := []float64{.5, 5, 50}
	for i := range gaps {
		s.put(discoveredInfo(&pb.URLInfo{Url: fmt.Sprintf("http://h%d/", i), CrawlID: "L"}))
		s.put(report(fmt.Sprintf("http://h%d/", i), 0, []time.Time{s.server.now()}))
	}
	s.crash(opt)
	if first := s.hours(24); len(first) != 3 {
		t.Fatalf("of three URLs that were put before a kill are handed out, by hour: %v", first)
	}
	before := s.play(gaps, 200)
	rates := map[int]float64{}
	rate := func(i int) (r float64) {
		item := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: fmt.Sprintf("http://h%d/", i), CrawlID: "L"}))
		fmt.Sscanf(strings.Join(item.GetKnown().Info.Metadata[metaWhy].GetValues(), "\n"), "items per hour %g", &r)
		return r
	}
	for i := range gaps {
		rates[i] = rate(i)
	}
	for range 10 {
		s.crash(opt)
	}
	for i := range gaps {
		if r := rate(i); r == 0 || math.Abs(r/rates[i]-1) > .1 {
			t.Errorf("URL %d is thought to have %g items an hour, and after a kill %g", i, rates[i], r)
		}
	}
	s.crash(opt)
	after := s.play(gaps, 400)
	t.Log(before, after)
	if n := after[0] + after[1] + after[2]; n > 404 || after[0] < after[1] || after[1] < 2*after[2] {
		t.Errorf("%d fetches in 200 hours of at most 2", after)
	}

	// A later put completes a URL, or deletes it: it stays so.
	s.put(done("http://h0/"))
	s.DeleteQueue(ctx, &pb.QueueWithinCrawlParams{Key: "h1", CrawlID: "L"})
	s.crash(opt)
	if n := s.server.opt.Learned.Summaries(0)[0].Sources; n != 1 {
		t.Errorf("%d sources are learned, of 1 that is left", n)
	}
	// A failed fetch leaves what is known, until the client's date.
	s.put(inL("http://h2/", s.clock.Load()/1000+50*3600))
	s.crash(opt)
	if first := s.hours(49); len(first) > 0 {
		t.Errorf("handed out before the client's date: %v", first)
	}
	if first := s.hours(49); len(first) != 1 || rate(2) == 0 {
		t.Errorf("handed out after the client's date: %v; %v items an hour", first, rate(2))
	}
}

// TestFullDisk holds that nothing is learned of a put that is refused, so that one that is
// sent again does not count twice.
func TestFullDisk(t *testing.T) {
	disk := &storetest.Disk{FS: vfs.NewMem()}
	s := serveOn(t, disk, LearnOptions{PerHour: 2})
	item := func() *pb.URLItem { return report("http://h/", 0, []time.Time{s.server.now()}) }
	disk.Full.Store(true)
	time.Sleep(100 * time.Millisecond) // the store looks again after 50
	for range 3 {
		s.want(s.put(item()), "http://h/ FAIL")
	}
	sum := s.server.opt.Learned.Summaries(0)[0]
	s.want(fmt.Sprint(sum.Sources, sum.Fetched), "0 0")
	must(s.SetActive(ctx, &pb.Active{State: false}))
	must(s.SetActive(ctx, &pb.Active{State: true}))
	disk.Full.Store(false)
	time.Sleep(100 * time.Millisecond)
	s.want(s.put(item()), "http://h/ OK")
}

// TestAskedWhenThereIsRoom: what a learner would have fetched while the disk is nearly full is handed out once
// there is room.
func TestAskedWhenThereIsRoom(t *testing.T) {
	disk := &storetest.Disk{FS: vfs.NewMem()}
	s := serveOn(t, disk, LearnOptions{PerHour: 10})
	for range 20 {
		s.wait(3600)
		s.put(report("http://h/", 0, []time.Time{s.server.now()}))
	}
	disk.Full.Store(true)
	time.Sleep(100 * time.Millisecond) // the store looks again after 50
	for range 20 {
		s.wait(3600)
		s.server.opt.Learned.Advance()
	}
	disk.Full.Store(false)
	time.Sleep(100 * time.Millisecond)
	s.server.opt.Learned.Advance()
	s.want(s.get(inCrawl("L")), "http://h/")
}

// TestBackupOnFullDisk: a copy with learners as they were kept before is made, and not reported as one of now.
func TestBackupOnFullDisk(t *testing.T) {
	disk := &storetest.Disk{FS: vfs.Default}
	t.Chdir(t.TempDir())
	s := serveOn(t, disk, LearnOptions{PerHour: 10})
	s.server.opt.Backups = "copies"
	s.put(report("http://h/", 0, []time.Time{s.server.now()}))
	disk.Full.Store(true)
	time.Sleep(100 * time.Millisecond) // the store looks again after 50
	_, err := s.server.Backup()
	made, _ := os.ReadDir("copies")
	if !errors.Is(err, store.ErrFull) || len(made) != 1 || !strings.Contains(err.Error(), made[0].Name()) {
		t.Errorf("the copies are %v, and the error is %v; want one, and %v that names it", made, err, store.ErrFull)
	}
}

// TestFarDate holds that a date which is more than 292 years ahead is kept.
func TestFarDate(t *testing.T) {
	opt := LearnOptions{PerHour: 2}
	s := serve(t, opt)
	for _, date := range []int64{20_000_000_000, 1 << 62, -1} {
		s.put(report("http://far/", date, nil), report("http://near/", 0, nil))
		if first := s.hours(1000); len(first) != 1 {
			t.Fatalf("the date is %d; handed out, by hour: %v", uint64(date), first)
		}
		s.crash(opt)
	}
}

// TestOtherVersion holds that where what was learned is of another version, it is kept
// under another name, and the URLs begin anew with their last items.
func TestOtherVersion(t *testing.T) {
	for _, how := range []string{"version", "damaged", "objective"} {
		t.Run(how, func(t *testing.T) {
			opt := LearnOptions{PerHour: 1, Longest: Duration{48 * time.Hour}}
			s := serve(t, opt)
			gaps := []float64{1, 10}
			for i := range gaps {
				s.put(report(fmt.Sprintf("http://h%d/", i), 0, nil))
			}
			s.play(gaps, 200)
			rate := func(i int) float64 {
				id := schedule.ID{Key: fmt.Sprint("h", i), URL: fmt.Sprintf("http://h%d/", i)}
				b := must(s.server.opt.Learned.crawls["L"].crawler.Belief(sourceName(id)))
				return b.Items
			}
			before := []float64{rate(0), rate(1)}
			state := must(s.store.Value(stateName("L")))
			switch how {
			case "version":
				state = regexp.MustCompile(`"version":\d+`).ReplaceAll(state, []byte(`"version":1`))
			case "damaged":
				state = state[:len(state)/2]
			case "objective":
				opt.Objective = env.Objective{Law: env.LawDelay, Exponent: 2}
			}
			s.want(s.store.SetValue(stateName("L"), state), nil)
			s.crash(opt)
			for i, was := range before {
				if now := rate(i); math.Abs(now/was-1) > .5 {
					t.Errorf("URL %d is thought to have %.3g items an hour, and anew %.3g", i, was, now)
				}
			}
			aside := 0
			s.store.Values(stateName("L")+" until ", "", func(_ string, data []byte) bool {
				aside++
				return bytes.Equal(data, state)
			})
			s.want(aside, 1)
			if n := s.play(gaps, 300); n[0] < 2*n[1] || n[1] == 0 {
				t.Errorf("%d fetches", n)
			}
			s.crash(opt) // what began anew is kept
			if n := s.server.opt.Learned.Summaries(0)[0].Sources; n != 2 {
				t.Errorf("%d sources", n)
			}
		})
	}
}

// TestWholeState holds that what an earlier version kept of all URLs in one is taken up.
func TestWholeState(t *testing.T) {
	opt := LearnOptions{PerHour: 2}
	s := serve(t, opt)
	s.put(report("http://h0/", 0, []time.Time{s.server.now()}))
	s.play([]float64{1}, 100)
	var whole bytes.Buffer
	c := s.server.opt.Learned.crawls["L"]
	s.want(c.crawler.Save(&whole), nil)
	s.want(s.store.SetValue(stateName("L"), whole.Bytes()), nil)
	id := schedule.ID{Crawl: "L", Key: "h0", URL: "http://h0/"}
	must(s.store.SetData(id, nil)) // as it was without what is learned
	for range 2 {                  // once it is taken up, and once it is in the record
		s.crash(opt)
		if first := s.hours(10); len(first) != 1 {
			t.Fatalf("handed out, by hour: %v", first)
		}
	}
}

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
	rec.Between(from, from+7*day).Each(func(i int, at int64, _ float64) {
		feeds[url(i)] = append(feeds[url(i)], at-from+monday)
	})
}

// fetcher asks a frontier of its own what to fetch, fetches it, and puts it back as
// its rule says.
type fetcher struct {
	*service
	rule    string
	web     string // server of the feeds
	known   map[string]*pastOfFeed
	fetches []int64 // when
	empty   []int64
}

// pastOfFeed is what a fetcher knows of a feed.
type pastOfFeed struct {
	seen     int       // items up to the last look
	minutes  []float64 // until each was found
	interval int64     // of the adaptive rule
}

func (f *fetcher) fetch() {
	if f.rule == "learned" {
		f.server.opt.Learned.Advance()
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
		f := &fetcher{service: serve(t), rule: rule, web: web.URL, known: map[string]*pastOfFeed{}}
		fetchers = append(fetchers, f)
		f.clock = &clock
		if rule == "learned" {
			f.restart(LearnOptions{PerHour: perHour, Longest: Duration{48 * time.Hour}})
		}
		for url, all := range feeds {
			f.known[url] = &pastOfFeed{minutes: slices.Repeat([]float64{math.Inf(1)}, len(all))}
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
	fmt.Printf("%d days, %-9s %d feeds, %d fetches, %d empty; "+
		"%d items: median %.0f min, 90 %% %.0f min, %d after a day, %d missed\n",
		(weekEnd-from)/day, f.rule, len(feeds), since(f.fetches), since(f.empty),
		len(minutes), minutes[len(minutes)/2], minutes[len(minutes)*9/10], found-soon, len(minutes)-found)
}

// TestRemoved holds that URLs which were deleted, purged or are done are forgotten at once, so that the budget
// goes to those that are there, and that one which is put anew has no past.
func TestRemoved(t *testing.T) {
	for _, tt := range []struct {
		name   string
		remove func(s *service)
		left   int // of 3 learned URLs
	}{
		{"crawl", func(s *service) { must(s.DeleteCrawl(ctx, &pb.DeleteCrawlMessage{Value: "L"})) }, 0},
		{"done", func(s *service) { s.put(done("http://h/1")) }, 2},
		{"purge", func(s *service) { must(s.PurgeURLs(ctx, &pb.PurgeUrlParams{CrawlID: "L", Days: 1})) }, 1},
		{"queue", func(s *service) {
			must(s.DeleteQueue(ctx, &pb.QueueWithinCrawlParams{CrawlID: "L", Key: "h"}))
		}, 1},
		{"queue without a name", func(s *service) {
			must(s.DeleteQueue(ctx, &pb.QueueWithinCrawlParams{CrawlID: "L"}))
			s.put(done("http://h/1"))
		}, 2},
	} {
		for _, shadow := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, " shadow ", shadow), func(t *testing.T) {
				s := serve(t, LearnOptions{PerHour: 1, Shadow: shadow})
				const later = start + 10*86400 // by which the client goes in the shadow
				s.put(page("http://h/1", later), page("http://h/2", later))
				s.wait(2 * 86400)
				s.put(page("http://i/", later))
				tt.remove(s)
				s.put(inL("http://h/1", 0)) // it is not known, or done, and nothing was reported
				if got := s.server.opt.Learned.Summaries(0)[0].Sources; got != tt.left {
					t.Errorf("%d URLs are learned, needed are %d", got, tt.left)
				}
				item := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h/1", CrawlID: "L"}))
				if date := item.GetKnown().RefetchableFromDate; date != 0 {
					t.Errorf("without a report the date is %d, put was 0", date)
				}
			})
		}
	}
}

// TestRemovedInParts holds that while learned URLs of a queue, or a crawl, are forgotten others get at the learners
// after each hundred, that what is put meanwhile is learned, without what was before, and that a start after a kill
// in between finds the same.
func TestRemovedInParts(t *testing.T) {
	const n = 1000
	url := func(i int) string { return fmt.Sprint("http://h/", i) }
	for _, tt := range []struct {
		name   string
		remove func(s *service) uint64
		left   int // of n URLs of a queue, and 1 of another
	}{
		{"crawl", func(s *service) uint64 {
			return must(s.DeleteCrawl(ctx, &pb.DeleteCrawlMessage{Value: "L"})).Value
		}, 0},
		{"queue", func(s *service) uint64 {
			return must(s.DeleteQueue(ctx, &pb.QueueWithinCrawlParams{CrawlID: "L", Key: "h"})).Value
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			disk := vfs.NewCrashableMem()
			s := serveOn(t, disk, LearnOptions{PerHour: 1})
			for i := range n {
				s.put(with(url(i), 0, metaSignature, "a"))
			}
			s.put(with("http://i/", 0, metaSignature, "a"))
			s.wait(3600)
			l := s.server.opt.Learned
			c := l.crawls["L"]
			turns, before := 0, c.crawler.Len()
			var put []string
			var killed vfs.FS
			l.pause = func() {
				had := c.crawler.Len()
				if before-had > namesAtOnce {
					t.Errorf("%d URLs are forgotten at once", before-had)
				}
				l.mu.Unlock()
				defer l.mu.Lock()
				turns++
				switch u := url(37 * turns); turns {
				case 1: // it is not learned again
					s.put(discoveredInfo(&pb.URLInfo{Url: u, CrawlID: "L"}), inL(u, 0))
					put = append(put, u)
				case 2, 3:
					s.put(with(u, 0, metaSignature, "b"))
					put = append(put, u)
				case 4:
					killed = disk.CrashClone(vfs.CrashCloneCfg{})
				case 5: // as after an import
					if err := l.recall("L"); err != nil {
						t.Error(err)
					}
				}
				before = c.crawler.Len()
			}
			deleted := tt.remove(s)
			if turns < n/namesAtOnce {
				t.Errorf("others had %d turns while %d URLs were forgotten", turns, n)
			}
			l.pause = func() {}
			check := func(s *service) {
				t.Helper()
				c := s.server.opt.Learned.crawls["L"]
				if got := c.crawler.Len(); got != tt.left+2 || len(c.sources) != got {
					t.Errorf("%d URLs are learned, and %d kept, needed are %d", got, len(c.sources), tt.left+2)
				}
				for i, u := range put {
					h := c.sources[sourceName(schedule.ID{Crawl: "L", Key: "h", URL: u})].unpack()
					item := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: u, CrawlID: "L"}))
					date := item.GetKnown().RefetchableFromDate
					if want := min(i, 1); len(h.Checks) != want || date > 0 != (i > 0) {
						t.Errorf("%s was fetched %d times, needed is %d; it is due at %d", u, len(h.Checks), want, date)
					}
				}
			}
			s.want(deleted, uint64(n+1-tt.left))
			s.want(c.removing, 0)
			check(s)
			check(serveOn(t, killed, LearnOptions{PerHour: 1})) // what is learned of each URL is in its record
		})
	}
}
