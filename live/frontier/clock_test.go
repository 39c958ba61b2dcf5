package frontier

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	pb "ephemera/live/frontier/urlfrontier"
)

// clocked is a service with a learned crawl of a few URLs, which a client fetches as they are handed
// out, and each of which has an item ten minutes before a fetch.
type clocked struct {
	*service
	minute, fetched int
	last            [8]int // minute of the last fetch of each URL
}

var clockedCrawl = LearnOptions{PerHour: 4, Longest: Duration{10 * time.Hour}}

func newClocked(t *testing.T, fs vfs.FS, boot string, clock int64) *clocked {
	s := &service{T: t, fs: fs, clock: &atomic.Int64{}, ahead: &atomic.Int64{}, boot: boot}
	s.clock.Store(clock)
	s.start(clockedCrawl)
	return &clocked{service: s}
}

func (s *clocked) pass(minutes int) {
	for end := s.minute + minutes; s.minute < end; s.minute += 15 {
		s.server.opt.Learned.Advance()
		for _, u := range s.infos(inCrawl("L")) {
			var i int
			fmt.Sscanf(u.Url, "http://h%d/", &i)
			s.last[i] = s.minute
			s.fetched++
			published := []time.Time{s.server.now().Add(-10 * time.Minute)}
			s.want(s.put(report(u.Url, 0, published)), u.Url+" OK")
		}
		s.wait(15 * 60)
	}
}

// TestClock holds that whatever the clock is set to, while the service runs or after it was
// killed, each learned URL is fetched within the longest interval, by the budget, and what
// was learned stays.
func TestClock(t *testing.T) {
	const hour, month, year = 3_600_000, 30 * 24 * 3_600_000, 365 * 24 * 3_600_000 // ms
	sizes := []int64{1000, hour, month, year, 30 * year}
	if testing.Short() {
		sizes = []int64{hour, 30 * year}
	}
	for _, boot := range []string{"", "1"} {
		// What is learned at first is the same for all, who go on from copies of the disk.
		disk := vfs.NewCrashableMem()
		first := newClocked(t, disk, boot, start*1000)
		for i := range first.last {
			first.put(discoveredInfo(&pb.URLInfo{Url: fmt.Sprintf("http://h%d/", i), CrawlID: "L"}))
		}
		first.pass(56 * 60)
		first.stop()
		for _, d := range sizes {
			for _, steps := range [][]int64{{d}, {-d}, {d, -d}, {-d, d}} {
				for _, restarts := range []bool{false, true} {
					t.Run(fmt.Sprint(steps, restarts, boot), func(t *testing.T) {
						whole := vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}
						s := newClocked(t, disk.CrashClone(whole), boot, first.clock.Load())
						defer func() { s.stop() }()
						// A step of a month that no uptime shows is taken for a month without items.
						s.keepsUp(steps, restarts, boot == "" && d == month)
					})
				}
			}
		}
	}
}

// keepsUp has some hours pass, then the clock be set by some steps, and then forty hours pass.
func (s *clocked) keepsUp(steps []int64, restarts, asTime bool) {
	s.pass(4 * 60)
	before := s.server.opt.Learned.Summaries(len(s.last))[0].Beliefs[0].Items
	for _, step := range steps {
		s.clock.Add(step)
		s.ahead.Add(step)
		if restarts {
			s.restart(clockedCrawl)
		}
		s.pass(30)
	}
	begin, had := s.minute, s.fetched
	for range 40 {
		s.pass(60)
		for i, last := range s.last {
			if wait := s.minute - max(begin, last); wait > 11*60 {
				s.Fatalf("URL %d is not fetched for %d minutes", i, wait)
			}
		}
	}
	if fetched := s.fetched - had; fetched > 4*40+8 || fetched < 2*40 {
		s.Errorf("%d fetches in 40 hours of at most 4", fetched)
	}
	after := s.server.opt.Learned.Summaries(len(s.last))[0].Beliefs[0]
	now := s.server.now()
	learned := asTime || after.Items > before/2 && after.Items < before*2
	if !learned || after.Due.After(now.Add(11*time.Hour)) {
		s.Errorf("%v items an hour are thought to be %v; the next fetch is due at %v, now is %v",
			before, after.Items, after.Due, now)
	}
}

// TestPingAfterClock: a ping is news after a clock that was ahead was set right, also where one came while it was, and
// where the service is started again an hour or two later, or nothing but a start tells of the clock.
func TestPingAfterClock(t *testing.T) {
	const ahead = 30 * 3600 * 1000
	for _, tt := range []struct {
		boot  string
		start int // hours after the clock was set; 3 for none
	}{{"1", 3}, {"1", 0}, {"1", 1}, {"1", 2}, {"", 0}, {"", 1}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			s := serve(t)
			s.boot = tt.boot
			s.restart(LearnOptions{PerHour: 1})
			s.clock.Add(ahead)
			s.ahead.Add(ahead)
			s.put(page("http://h/", 0))
			s.wait(3600)
			s.want(s.put(with("http://h/", 0, metaPing, "")), "http://h/ OK")
			s.clock.Add(-ahead)
			s.ahead.Add(-ahead)
			for hour := range 3 {
				if hour == tt.start {
					s.crash(LearnOptions{PerHour: 1})
				}
				s.server.opt.Learned.Advance()
				s.wait(3600)
			}
			s.want(s.put(with("http://h/", 0, metaPing, "")), "http://h/ OK")
		})
	}
}

// TestNewAfterClock: as many items are new as a client says, and lie in the time that has passed, after a clock that
// was ahead or behind was set right while the service ran, or was off.
func TestNewAfterClock(t *testing.T) {
	const step, each, fetches = 30 * 24 * 3600 * 1000, 5, 10
	for _, restarts := range []bool{false, true} {
		for _, sign := range []int64{1, -1} {
			t.Run(fmt.Sprint(sign, restarts), func(t *testing.T) {
				s := serve(t)
				s.boot = "1"
				s.restart(LearnOptions{PerHour: 1})
				set := func(by int64) {
					s.clock.Add(by)
					s.ahead.Add(by)
				}
				put := func(n int) {
					for range n {
						s.put(with("http://h/", 0, metaNew, fmt.Sprint(each)))
						s.wait(3600)
					}
				}
				set(sign * step)
				put(1 + fetches)
				before := s.server.opt.Learned.Summaries(0)[0].Items
				set(-sign * step)
				if restarts {
					before = 0
					s.restart(LearnOptions{PerHour: 1})
				}
				put(fetches)
				sum := s.server.opt.Learned.Summaries(0)[0]
				s.want(sum.Items-before, each*fetches)
				s.want(sum.ClientDelay, 30*time.Minute)
			})
		}
	}
}

// TestIntervalOfClock: the fixed interval that is shown is that of the time that has passed, whatever the clock is
// set to.
func TestIntervalOfClock(t *testing.T) {
	const step = 30 * 24 * 3600 * 1000
	for _, sign := range []int64{1, -1} {
		s := serve(t)
		s.boot = "1"
		s.restart(LearnOptions{PerHour: 1})
		for hour := range 10 {
			if hour == 5 {
				s.clock.Add(sign * step)
				s.ahead.Add(sign * step)
			}
			s.put(feed("http://h/", 0))
			s.wait(3600)
		}
		s.want(s.server.opt.Learned.Summaries(0)[0].Interval, time.Hour)
	}
}

// TestWaitsOfClock holds that the delay of a queue and the hold of a URL last as long as they
// were to, whatever the clock is set to while they last, and no more than a minute longer.
func TestWaitsOfClock(t *testing.T) {
	for _, steps := range [][]time.Duration{
		{time.Second}, {time.Second, time.Second / 2}, {2 * time.Second, time.Second}, {20 * time.Second},
		{time.Hour}, {-time.Second}, {-time.Hour},
		{time.Second, -2 * time.Second, time.Second}, {time.Hour, -time.Hour},
	} {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			s := serve(t)
			s.boot = "1"
			s.restart()
			s.put(discovered("http://h/1"), discovered("http://h/2"))
			first := s.get(&pb.GetParams{Item: anyCrawl.Item, MaxUrlsPerQueue: 1})
			var waits []int // half seconds until each URL is handed out
			for k := range 200 {
				if k > 0 && k <= len(steps) {
					s.clock.Add(steps[k-1].Milliseconds())
					s.ahead.Add(steps[k-1].Milliseconds())
				}
				if url := s.get(&pb.GetParams{Item: anyCrawl.Item, MaxUrlsPerQueue: 2}); url != "" {
					waits = append(waits, k)
					if len(waits) == 2 && url != first {
						t.Fatalf("%q comes after %q", url, first)
					}
				}
				s.wait(.5)
			}
			const delay, hold, minute = 4, 60, 120
			outside := func(wait, least int) bool { return wait < least || wait > least+minute }
			if len(waits) < 2 || outside(waits[0], delay) || outside(waits[1], hold) {
				t.Errorf("after half seconds %v; the delay is %d, and the hold %d", waits, delay, hold)
			}
		})
	}
}

// TestClientThatStalls: what a client is given that reads the first URLs of a call, nothing for a while
// and then the others, ends no hold of another client's, and is itself held from when it is taken.
func TestClientThatStalls(t *testing.T) {
	const n, stall = 3100, 70
	s := serve(t)
	s.put(discoveredInfo(&pb.URLInfo{Url: "http://h/", CrawlID: "victim"}))
	long := map[string]*pb.StringList{"m": {Values: []string{strings.Repeat("x", 1500)}}}
	items := make([]*pb.URLItem, n)
	for i := range items {
		items[i] = discoveredInfo(&pb.URLInfo{Url: fmt.Sprintf("http://h%d/", i), CrawlID: "many", Metadata: long})
	}
	s.put(items...)
	many := inCrawl("many")
	many.DelayRequestable = 90
	stream := must(s.GetURLs(ctx, many))
	for range 10 {
		must(stream.Recv())
	}
	s.wait(stall)
	victim := inCrawl("victim")
	victim.DelayRequestable = 90
	s.want(s.get(victim), "http://h/")
	s.want(len(all(stream)), n-10)
	s.wait(90 - 1)
	s.want(s.get(victim), "")
	if early := len(s.infos(many)); early == 0 || early == n {
		t.Errorf("%d of %d URLs are due %d s after the call; want those that were taken before it stalled",
			early, n, stall+90-1)
	}
}
