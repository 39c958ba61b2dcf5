package frontier

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/schedule"
)

// TestMoved: what a dump brings from one frontier to another that runs is what is known of learned
// URLs, from the start and after the next one, and what queues are held to. Nobody else is shown it.
func TestMoved(t *testing.T) {
	opt := LearnOptions{PerHour: 2, Longest: Duration{20 * 24 * time.Hour}}
	s := serve(t, opt)
	gaps := []float64{.5, 5, 50}
	for i := range gaps {
		s.put(discoveredInfo(&pb.URLInfo{Url: fmt.Sprintf("http://h%d/", i), CrawlID: "L"}))
		s.put(report(fmt.Sprintf("http://h%d/", i), 0, []time.Time{s.server.now()}))
	}
	s.play(gaps, 200)
	s.put(discovered("http://free/"), discovered("http://a/1"), discovered("http://a/2"))
	must(s.SetDelay(ctx, &pb.QueueDelayParams{Key: "a", DelayRequestable: 7}))
	must(s.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "a", Time: 1 << 40}))
	must(s.SetCrawlLimit(ctx, &pb.CrawlLimitParams{Key: "a", Limit: 9}))
	s.put(done("http://gone/"))
	rates := func(s *service) (r [3]float64) {
		for i := range r {
			item := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: fmt.Sprintf("http://h%d/", i), CrawlID: "L"}))
			info := item.GetKnown().Info
			fmt.Sscanf(strings.Join(info.Metadata[metaWhy].GetValues(), "\n"), "items per hour %g", &r[i])
			delete(info.Metadata, metaWhy)
			for name := range info.Metadata {
				if strings.HasPrefix(name, metaOurs) {
					t.Errorf("GetURLStatus shows %v", info.Metadata)
				}
			}
		}
		return r
	}

	var dump bytes.Buffer
	if n, err := ExportFrom(ctx, &dump, s); n != 7 || err != nil {
		t.Fatalf("%d URLs are written: %v", n, err)
	}
	text := dump.String()
	to := serve(t, opt)
	to.clock.Store(s.clock.Load())
	if n, err := ImportTo(ctx, &dump, to); n != 7 || err != nil {
		t.Fatalf("%d URLs are read: %v", n, err)
	}
	check := func(to *service) {
		t.Helper()
		was, is := rates(s), rates(to)
		for i := range was {
			if math.Abs(math.Log(is[i]/was[i])) > math.Log(1.05) {
				t.Errorf("items an hour were %.3g, and are %.3g", was, is)
			}
		}
		for _, key := range []string{"a", "h0", "free"} {
			crawl := map[string]string{"h0": "L"}[key]
			l, _ := s.store.Limits(crawlOf(crawl), key)
			if moved, ok := to.store.Limits(crawlOf(crawl), key); !ok || moved != l {
				t.Errorf("the limits of %s were %+v, and are %+v", key, l, moved)
			}
		}
		gone := &pb.ListUrlParams{CrawlID: "L", Key: "gone"}
		to.want(to.list(gone), s.list(gone))
	}
	check(to)
	set := schedule.Limits{Delay: 8000, Blocked: openAfter(1 << 40), Most: 9}
	if l, _ := to.store.Limits(DefaultCrawl, "a"); l != set {
		t.Errorf("the limits of a are %+v", l)
	}
	to.restart(opt)
	check(to)

	// The same from a store that no service has, and into one.
	var again bytes.Buffer
	if _, err := Export(&again, s.store); err != nil || plain(again.String()) != plain(text) {
		t.Errorf("a store gives another dump: %v\n%s\n%s", err, again.String(), text)
	}
	into := serve(t)
	if _, err := Import(&again, into.store, s.clock.Load()); err != nil {
		t.Fatal(err)
	}
	into.clock.Store(s.clock.Load())
	into.restart(opt)
	check(into)
}

// TestMovedPages: the learner of a frontier that pages are moved to goes on with what that of the
// other one knew, of all fetches and not of the last ones alone, also where it began at another time
// and spends another budget, in epochs of another length.
func TestMovedPages(t *testing.T) {
	const pages = 8
	s := serve(t, LearnOptions{PerHour: 4})
	for i := range pages {
		s.put(discoveredInfo(&pb.URLInfo{Url: fmt.Sprintf("http://h%d/", i), CrawlID: "L"}))
	}
	rng, version := rand.New(rand.NewPCG(9003, 1)), [pages]int{}
	for range 30 * 24 * 4 { // a month of quarters of an hour
		s.server.opt.Learned.Advance()
		for i := range pages { // changes once in 2 to 65 hours
			if rng.Float64() < .25/(2*math.Pow(1.64, float64(i))) {
				version[i]++
			}
		}
		for _, u := range s.infos(inCrawl("L")) {
			var i int
			fmt.Sscanf(u.Url, "http://h%d/", &i)
			s.put(stormCrawler(u.Url, fmt.Sprint(version[i]), "200", s.clock.Load()/1000))
		}
		s.wait(900)
	}
	rates := func(s *service) (r [pages]float64) {
		for i := range r {
			item := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: fmt.Sprintf("http://h%d/", i), CrawlID: "L"}))
			why := strings.Join(item.GetKnown().Info.Metadata[metaWhy].GetValues(), "\n")
			if _, err := fmt.Sscanf(why, "changes per hour %g", &r[i]); err != nil {
				t.Fatal(why, err)
			}
		}
		return r
	}
	was := rates(s)
	var dump bytes.Buffer
	must(ExportFrom(ctx, &dump, s))
	for _, perHour := range []float64{4, 1.5, 60} {
		to := serve(t, LearnOptions{PerHour: perHour})
		to.clock.Store(s.clock.Load())
		must(ImportTo(ctx, bytes.NewReader(dump.Bytes()), to))
		for _, when := range []string{"after the move", "after a restart"} {
			for i, is := range rates(to) {
				if math.Abs(math.Log(is/was[i])) > math.Log(1.1) {
					t.Errorf("with %v fetches an hour, %s, page %d changes %.3g times an hour, before %.3g",
						perHour, when, i, is, was[i])
				}
			}
			to.restart(LearnOptions{PerHour: perHour})
		}
	}
}

// TestMovedFromClockAhead: what a machine whose clock is ahead has written keeps no queue waiting, and a start ends
// no hold for it.
func TestMovedFromClockAhead(t *testing.T) {
	s := serve(t)
	const line = `{"known":{"info":{"url":"http://h/","crawlID":"c","metadata":{"ephemera.queue":` +
		`{"values":["{\"Delay\":-1,\"Last\":%d}"]}}},"refetchableFromDate":"1"},"creationDate":"%d"}`
	dump := fmt.Sprintf(line, (start+3600)*1000, start+3600)
	must(ImportTo(ctx, strings.NewReader(dump), s))
	s.want(listed(s, &pb.ListUrlParams{CrawlID: "c"})[0].CreationDate, uint64(start))
	hold := &pb.GetParams{Item: anyCrawl.Item, DelayRequestable: 600}
	s.wait(10)
	s.want(s.get(hold), "http://h/")
	for range 2 {
		s.restart()
		s.wait(10)
		s.want(s.get(hold), "")
	}
}

// TestMovedLongMetadata: a learned URL whose metadata are as long as they may be can be moved, with what a dump adds.
func TestMovedLongMetadata(t *testing.T) {
	from := serve(t, LearnOptions{PerHour: 1})
	item := with("http://h/", 0, metaSignature, "a", "m", "")
	m := item.GetKnown().Info.Metadata["m"]
	for long := longestInfo; sizeOf(item.GetKnown().Info) != longestInfo; long-- {
		m.Values[0] = strings.Repeat("x", long)
	}
	from.want(from.put(item), "http://h/ OK")
	must(from.SetCrawlLimit(ctx, &pb.CrawlLimitParams{Key: "h", CrawlID: "L", Limit: 5}))
	var dump bytes.Buffer
	must(ExportFrom(ctx, &dump, from))
	to := serve(t, LearnOptions{PerHour: 1})
	to.want(must(ImportTo(ctx, &dump, to)), 1)
	to.want(to.server.opt.Learned.Summaries(0)[0].Sources, 1)
}

// plain is a dump without the blanks that its encoder sets by chance.
func plain(dump string) string { return strings.ReplaceAll(dump, " ", "") }

// TestImportToNamesLine: a line that cannot be put ends the import with its number, and those before it
// are there.
func TestImportToNamesLine(t *testing.T) {
	s := serve(t)
	line := `{"known":{"info":{"url":%q,"crawlID":"c"},"refetchableFromDate":"1"}}` + "\n"
	dump := fmt.Sprintf(line+line+line, "http://ok.org/1", "www.nokey.org/1", "urn:isbn:1")
	n, err := ImportTo(ctx, strings.NewReader(dump), s)
	if n != 1 || err == nil || !strings.Contains(err.Error(), `line 2: URL "www.nokey.org/1" has the key ""`) {
		t.Errorf("%d URLs are put, and the error is %v; want one, and that line 2 has no key", n, err)
	}
	s.want(s.list(&pb.ListUrlParams{CrawlID: "c"}), "http://ok.org/1@1")
	long := strings.Repeat("x", longestInfo)
	_, err = ImportTo(ctx, strings.NewReader(fmt.Sprintf(line, "http://h/"+long)), s)
	if got := fmt.Sprint(err); len(got) > 2000 || !strings.Contains(got, "has 1048589 bytes") {
		t.Errorf("of a URL that is too long it says %.100s (%d bytes)", got, len(got))
	}
}
