package frontier

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	pb "ephemera/live/frontier/urlfrontier"
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

// play has a client fetch what is due until an hour, from URLs of which i publishes
// an item every gaps[i] hours, and returns how often it fetched each.
func (s *service) play(gaps []float64, until int) []int {
	s.Helper()
	fetches := make([]int, len(gaps))
	last := make([]float64, len(gaps)) // hours
	hours := func() float64 { return float64(s.clock.Load()-start*1000) / 3.6e6 }
	for i := range last {
		last[i] = hours()
	}
	for hours() < float64(until) {
		s.server.opt.Learned.Advance(s.server.opt.Now())
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
	opt := LearnOptions{PerHour: 1, Longest: Duration(48 * time.Hour)}
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
	why := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h0/", CrawlID: "L"})).GetKnown().Info.Metadata[metaWhy]
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
	// Without what was found, the date is the client's, and 0 completes.
	s.put(inL("http://h1/", 0))
	s.want(s.stats("h1", "L"), "size 0 process 0 queues 1 completed 1 active 0 crawl L")
	s.play(gaps, 260)
	if n := s.server.opt.Learned.Summaries(0)[0].Sources; n != 2 {
		t.Fatalf("%d sources; the completed one should be forgotten", n)
	}
}

// TestShadow holds that in the shadow the client's dates stand, and that it is told
// what both find.
func TestShadow(t *testing.T) {
	s := serve(t, LearnOptions{PerHour: 1, Shadow: true})
	for hour := range 200 {
		now := s.server.opt.Now()
		for i, gap := range []int{1, 50} {
			if hour%2 != i { // the client fetches in turn
				continue
			}
			var found []time.Time
			for k := range 2 {
				if at := now.Add(-time.Duration(2-k)*time.Hour + time.Minute); (hour+k)%gap == 0 {
					found = append(found, at)
				}
			}
			url := fmt.Sprintf("http://h%d/", i)
			s.put(report(url, now.Unix()+7200, found))
			item := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: url, CrawlID: "L"}))
			s.want(item.GetKnown().RefetchableFromDate, uint64(now.Unix()+7200))
		}
		for range 60 {
			s.wait(60)
			s.server.opt.Learned.Advance(s.server.opt.Now())
		}
	}
	sum := s.server.opt.Learned.Summaries(1)[0]
	if sum.Items < 100 || sum.Found < sum.Items*8/10 || sum.Delay >= sum.ClientDelay || sum.Asked > 201 {
		t.Fatalf("%+v", sum)
	}
}

// TestItems holds that a client's mistake in the metadata is logged and not learned.
func TestItems(t *testing.T) {
	for _, m := range []map[string]*pb.StringList{
		{metaItems: {Values: []string{"yesterday"}}}, {metaNew: {Values: []string{"-1"}}},
		{metaItems: {Values: []string{"1700000000"}}, metaWorth: {Values: []string{"much"}}},
	} {
		if _, err := items(&pb.URLInfo{Metadata: m}, time.Time{}, time.Now()); err == nil {
			t.Error(m)
		}
	}
	now := time.Unix(start, 0)
	found, err := items(&pb.URLInfo{Metadata: map[string]*pb.StringList{metaNew: {Values: []string{"2"}}}}, now.Add(-4*time.Hour), now)
	if err != nil || len(found) != 2 || now.Sub(found[0].Published) != 3*time.Hour || now.Sub(found[1].Published) != time.Hour {
		t.Fatal(found, err)
	}
}
