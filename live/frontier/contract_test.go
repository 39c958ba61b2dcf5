package frontier

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"ephemera/live/clock"
	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// service is a server behind a real connection, whose clock the test turns.
type service struct {
	*testing.T
	pb.URLFrontierClient
	server  *Server
	store   *store.Store
	fs      vfs.FS
	address string
	stop    func()
	clock   *atomic.Int64 // ms
	ahead   *atomic.Int64 // of time, ms
	boot    string        // of the machine; without one nothing tells steps of the clock from time that passes
}

const start = 1_700_000_000 // seconds

func serve(t *testing.T, learn ...LearnOptions) *service { return serveOn(t, vfs.NewMem(), learn...) }

func serveOn(t *testing.T, fs vfs.FS, learn ...LearnOptions) *service {
	s := &service{T: t, fs: fs, clock: &atomic.Int64{}, ahead: &atomic.Int64{}}
	s.clock.Store(start * 1000)
	s.start(learn...)
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *service) start(learn ...LearnOptions) {
	s.store = must(store.Open("frontier", &store.Options{
		FS: s.fs, Delay: StoreDelay, Memory: 16 << 20,
		Now: func() time.Time { return time.UnixMilli(s.clock.Load()) }, Uptime: s.uptime,
	}))
	o := Options{Address: "me"}
	crawls := map[string]LearnOptions{}
	for _, opt := range learn {
		crawls["L"] = opt
	}
	log := slog.New(slog.NewTextHandler(s.Output(), nil))
	o.Learned = must(NewLearned(s.store, log, crawls))
	s.server = must(New(s.store, o))
	g := grpc.NewServer(s.server.Interceptors()...)
	pb.RegisterURLFrontierServer(g, s.server)
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	go g.Serve(l)
	s.address = l.Addr().String()
	// With a window that is set it does not grow by how fast the machine is, so that a client that does not
	// read is sent the same each time.
	conn := must(grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(1<<16), grpc.WithInitialConnWindowSize(1<<16)))
	s.URLFrontierClient = pb.NewURLFrontierClient(conn)
	s.stop = func() {
		s.server.Closing()
		conn.Close()
		g.Stop()
		s.store.Close()
	}
}

func (s *service) uptime() clock.Uptime {
	return clock.Uptime{Boot: s.boot, Up: time.Duration(s.clock.Load()-s.ahead.Load()) * time.Millisecond}
}

func (s *service) restart(learn ...LearnOptions) {
	s.stop()
	s.start(learn...)
}

func (s *service) wait(seconds float64) { s.clock.Add(int64(seconds * 1000)) }

var ctx = context.Background()

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// all returns what a stream brings.
func all[T any](stream interface{ Recv() (T, error) }) (got []T) {
	for {
		x, err := stream.Recv()
		if err == io.EOF {
			return got
		}
		got = append(got, must(x, err))
	}
}

func info(url string) *pb.URLInfo { return &pb.URLInfo{Url: url} }

func discovered(url string) *pb.URLItem { return discoveredInfo(info(url)) }

func discoveredInfo(u *pb.URLInfo) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: u}}}
}

func known(url string, date uint64) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info(url), RefetchableFromDate: date}}}
}

// put returns the acks as "ID status", from a stream that stays open until all are in.
func (s *service) put(items ...*pb.URLItem) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := must(s.PutURLs(ctx))
	var acks []string
	for _, item := range items {
		stream.Send(item)
	}
	for range items {
		a := must(stream.Recv())
		acks = append(acks, a.ID+" "+a.Status.String())
	}
	stream.CloseSend()
	stream.Recv() // the call has ended, and is counted
	return strings.Join(acks, ", ")
}

func (s *service) get(p *pb.GetParams) string {
	var urls []string
	for _, u := range s.infos(p) {
		urls = append(urls, u.Url)
	}
	return strings.Join(urls, " ")
}

func (s *service) infos(p *pb.GetParams) []*pb.URLInfo { return all(must(s.GetURLs(ctx, p))) }

func (s *service) stats(key, crawl string) string {
	n := must(s.GetStats(ctx, &pb.QueueWithinCrawlParams{Key: key, CrawlID: crawl}))
	return fmt.Sprintf("size %d process %d queues %d completed %d active %d crawl %s",
		n.Size, n.InProcess, n.NumberOfQueues, n.Counts["completed"], n.Counts["active_queues"], n.CrawlID)
}

func (s *service) queues(p *pb.Pagination) string {
	return strings.Join(must(s.ListQueues(ctx, p)).Values, " ")
}

func (s *service) list(p *pb.ListUrlParams) string {
	var urls []string
	for _, item := range all(must(s.ListURLs(ctx, p))) {
		known := item.GetKnown()
		urls = append(urls, fmt.Sprint(known.GetInfo().GetUrl(), "@", known.GetRefetchableFromDate()))
	}
	return strings.Join(urls, " ")
}

func (s *service) want(got, want any) {
	s.Helper()
	if got != want {
		s.Fatalf("got  %v\nwant %v", got, want)
	}
}

var anyCrawl = &pb.GetParams{Item: &pb.GetParams_AnyCrawlID{AnyCrawlID: &pb.AnyCrawlID{}}}

func inCrawl(crawl string) *pb.GetParams {
	return &pb.GetParams{Item: &pb.GetParams_CrawlID{CrawlID: crawl}}
}

func TestPutURLs(t *testing.T) {
	s := serve(t)
	s.want(s.put(
		discovered("http://h/1"), discovered("http://h/1"),
		known("http://h/2", 0), discovered("http://h/2"),
		known("http://new/", start),
	), "http://h/1 OK, http://h/1 SKIPPED, http://h/2 OK, http://h/2 SKIPPED, http://new/ OK")
	long := info("http://h/3")
	long.Key = strings.Repeat("k", 256)
	withID := discovered("http://h/4")
	withID.ID = "mine"
	s.want(s.put(discovered("no key"), &pb.URLItem{ID: "neither"}, discoveredInfo(long), withID),
		"no key SKIPPED, neither SKIPPED, http://h/3 SKIPPED, mine OK")
	long.Key = long.Key[1:]
	s.want(s.put(discoveredInfo(long)), "http://h/3 OK")

	// A client that half-closes gets all of its acks and the end.
	stream := must(s.PutURLs(ctx))
	for i := range 3000 {
		stream.Send(discovered(fmt.Sprint("http://many/", i)))
	}
	stream.CloseSend()
	s.want(len(all(stream)), 3000)
}

func TestIdentity(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"http://gac.icann.org?language_id=9", "gac.icann.org"},
		{"http://H.com:80/a", "h.com"},
		{"https://h.com#f", "h.com"},
		{"http://h.com&x", "h.com"},
		{"http://user:pw@h.com/", "h.com"},
		{"http://MÜNCHEN.example/", "xn--mnchen-3ya.example"},
		{"http://a b%zz/", "a b%zz"},
		{"http://[2001:DB8::1]:8080/", "[2001:db8::1]"},
		{"http://[::1", ""},
		{"h.com", ""},
		{"http:///x", ""},
		{"", ""},
	} {
		t.Run(tt.url, func(t *testing.T) {
			if got := Key(tt.url); got != tt.want {
				t.Errorf("%q: %q, want %q", tt.url, got, tt.want)
			}
		})
	}
	s := serve(t)
	var items []*pb.URLItem
	// The case of a key that was given is kept.
	for _, id := range []*pb.URLInfo{{}, {CrawlID: "  "}, {CrawlID: "other"}, {Key: "K"}} {
		id.Url = "http://h/"
		items = append(items, discoveredInfo(id))
	}
	s.want(s.put(items...), "http://h/ OK, http://h/ SKIPPED, http://h/ OK, http://h/ OK")
	s.want(s.queues(&pb.Pagination{}), "K h")
}

func TestKnown(t *testing.T) {
	s := serve(t)
	item := known("http://h/", start)
	item.GetKnown().Info.Metadata = map[string]*pb.StringList{"a": {Values: []string{"1", "2"}}}
	s.put(discovered("http://h/"))
	s.want(s.get(anyCrawl), "http://h/")
	s.wait(5)
	s.want(s.stats("h", ""), "size 1 process 1 queues 1 completed 0 active 1 crawl DEFAULT")
	s.put(item) // the hold is released, the metadata are replaced
	got := s.infos(anyCrawl)
	if len(got) != 1 || !slices.Equal(got[0].Metadata["a"].GetValues(), []string{"1", "2"}) ||
		got[0].Key != "h" || got[0].CrawlID != "DEFAULT" {
		t.Fatal(got)
	}
	s.want(must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h/"})).CreationDate, uint64(start))
	item.GetKnown().RefetchableFromDate = 0
	for range 2 { // completing twice counts once
		s.put(item)
		s.want(s.stats("", ""), "size 0 process 0 queues 1 completed 1 active 0 crawl DEFAULT")
	}
	m := must(s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h/"})).GetKnown()
	if m.RefetchableFromDate != 0 || len(m.Info.Metadata) != 0 {
		t.Fatal(m)
	}
	// A completed one that is due again is listed once, with its date.
	s.put(known("http://h/", start+1))
	s.want(s.stats("", ""), "size 1 process 0 queues 1 completed 0 active 1 crawl DEFAULT")
	s.want(s.list(&pb.ListUrlParams{}), fmt.Sprint("http://h/@", start+1))
	s.put(known("http://h/", math.MaxUint64))
	s.wait(1000)
	s.want(s.get(anyCrawl), "")
}

// TestMilliseconds: the page tells of the first date that seems to be in milliseconds, which is kept; one that may be
// meant as never, in the year 9999 or later than any, is no mistake.
func TestMilliseconds(t *testing.T) {
	s := serve(t)
	s.want(s.put(known("http://a/", 253402300799), known("http://b/", math.MaxUint64), known("http://c/", start+10)),
		"http://a/ OK, http://b/ OK, http://c/ OK")
	if page := s.page(); strings.Contains(page, "milliseconds") {
		t.Errorf("the page tells of a date that is none of milliseconds:\n%s", page)
	}
	s.want(s.put(known("http://d/", start*1000), known("http://e/", start*1000)), "http://d/ OK, http://e/ OK")
	s.want(s.list(&pb.ListUrlParams{Key: "d"}), fmt.Sprint("http://d/@", start*1000))
	if page := s.page(); strings.Count(page, "milliseconds") != 1 || !strings.Contains(page, "http://d/") {
		t.Errorf("the page does not tell once of dates in milliseconds:\n%s", page)
	}
}

func TestPutDiscovered(t *testing.T) {
	s := serve(t)
	stream := must(s.PutDiscovered(ctx))
	for _, batch := range [][2]string{
		{"http://h/1 http://h/2 http://h/1 x", "[OK OK SKIPPED SKIPPED]"},
		{"", "[]"},
		{"http://h/2", "[SKIPPED]"},
	} {
		b := &pb.DiscoveredBatch{ID: batch[1]}
		for _, url := range strings.Fields(batch[0]) {
			b.Items = append(b.Items, info(url))
		}
		stream.Send(b)
		ack := must(stream.Recv())
		s.want(fmt.Sprint(ack.Statuses), batch[1])
		s.want(ack.ID, batch[1])
	}
}

func TestGetURLs(t *testing.T) {
	s := serve(t)
	s.put(
		known("http://a/late", start), known("http://a/b", start-10), known("http://a/a", start-10),
		known("http://b/", start-5), known("http://c/", start+100),
	)
	one := &pb.GetParams{MaxUrlsPerQueue: 1, MaxQueues: 1}
	s.want(s.get(one), "http://a/a") // by date, then by URL
	s.want(s.get(one), "http://b/")  // the next queue's turn
	s.want(s.get(one), "")
	s.wait(2)
	s.want(s.get(&pb.GetParams{MaxUrlsPerQueue: 1}), "") // as many in process as are allowed
	s.want(s.get(&pb.GetParams{MaxUrlsPerQueue: 2}), "http://a/b")
	s.wait(2)
	s.want(s.get(&pb.GetParams{}), "http://a/late") // 0 is no limit
	s.wait(25.9)
	s.want(s.get(anyCrawl), "")
	s.wait(.1)                                      // the holds of 30 s of the first two end
	s.want(s.get(anyCrawl), "http://b/ http://a/a") // b was served longer ago
	s.wait(100)
	s.put(known("http://x/1", start), known("http://x/2", start))
	s.want(s.get(&pb.GetParams{Key: "x"}), "") // no crawl
	k := inCrawl("DEFAULT")
	k.Key, k.DelayRequestable = "x", 7
	s.want(s.get(k), "http://x/1 http://x/2")
	s.wait(6.9)
	s.want(s.get(k), "")
	s.wait(.1)
	s.want(s.get(k), "http://x/1 http://x/2")
	k.Key = "unknown"
	s.want(s.get(k), "")
	s.want(s.get(inCrawl("unknown")), "")
	// An explicit blank crawl is DEFAULT.
	s.want(s.get(inCrawl("")), "http://c/ http://b/ http://a/a http://a/b http://a/late")
}

// TestLongQueue: a queue is handed out in parts, each URL once and in order, and a client that reads none
// of them has few.
func TestLongQueue(t *testing.T) {
	s := serve(t)
	const n = 30_000
	for i := range n {
		id := schedule.ID{Crawl: DefaultCrawl, Key: "h", URL: fmt.Sprintf("http://h/%05d", i)}
		must(s.store.Put(id, 1000, start*1000, nil))
	}
	stream := must(s.GetURLs(ctx, &pb.GetParams{MaxUrlsPerQueue: n - 1}))
	got := []string{must(stream.Recv()).Url}
	if held := must(s.GetStats(ctx, &pb.QueueWithinCrawlParams{})).InProcess; held > n/3 {
		t.Errorf("a client that read one URL has %d; want at most %d", held, n/3)
	}
	for _, u := range all(stream) {
		got = append(got, u.Url)
	}
	s.want(len(got), n-1)
	for i, url := range got {
		s.want(url, fmt.Sprintf("http://h/%05d", i))
	}
}

// TestHoldsThatEndTogether: holds that are over end a thousand at each call. Until then their URLs are in
// process, and who asks for no number of queues waits for all of them.
func TestHoldsThatEndTogether(t *testing.T) {
	const n = 3500
	for _, tt := range []struct {
		queues int
		p      *pb.GetParams
	}{
		{1, &pb.GetParams{Key: "k0", DelayRequestable: 3, Item: &pb.GetParams_CrawlID{}}},
		{1, &pb.GetParams{MaxQueues: 1, DelayRequestable: 3}},
		{n, &pb.GetParams{DelayRequestable: 3}},
	} {
		s := serve(t)
		for i := range n {
			id := schedule.ID{Crawl: DefaultCrawl, Key: fmt.Sprint("k", i%tt.queues), URL: fmt.Sprint("http://h/", i)}
			must(s.store.Put(id, 1000, start*1000, nil))
		}
		s.want(len(all(must(s.GetURLs(ctx, tt.p)))), n)
		s.wait(10)
		for _, left := range []uint32{n - 1000, n - 2000} {
			got := must(s.GetStats(ctx, &pb.QueueWithinCrawlParams{}))
			s.want(fmt.Sprint(got.Size, got.InProcess), fmt.Sprint(uint64(n), left))
		}
		want := n
		if tt.p.MaxQueues > 0 {
			want = 3000 // which the calls so far have ended
		}
		s.want(len(all(must(s.GetURLs(ctx, tt.p)))), want)
	}
}

// TestLongMetadata: of URLs with much metadata fewer are read ahead for a client, so that memory has room for
// those of many.
func TestLongMetadata(t *testing.T) {
	s := serve(t)
	const n, bytes = 3 * together, 40_000
	for i := range n {
		id := schedule.ID{Crawl: DefaultCrawl, Key: "h", URL: fmt.Sprint("http://h/", i)}
		long := map[string]*pb.StringList{"m": {Values: []string{strings.Repeat("x", bytes)}}}
		must(s.store.Put(id, 1000, start*1000, metadata(&pb.URLInfo{Metadata: long}, 1000, nil)))
	}
	stream := must(s.GetURLs(ctx, &pb.GetParams{}))
	const read = together/2 + 1 // from there on the next ones are read ahead
	for range read {
		must(stream.Recv())
	}
	for {
		held := must(s.GetStats(ctx, &pb.QueueWithinCrawlParams{})).InProcess
		if held > together+bytesTogether/bytes {
			t.Fatalf("a client that read %d URLs has %d", read, held)
		}
		if held > together { // those that are read ahead are taken
			break
		}
	}
	s.want(len(all(stream)), n-read)
}

func TestGateOfQueue(t *testing.T) {
	s := serve(t)
	key := &pb.GetParams{Key: "h", MaxUrlsPerQueue: 0, DelayRequestable: 1, Item: &pb.GetParams_CrawlID{}}
	s.put(known("http://h/1", start-1))
	next := func() int64 { // waits until the queue is served, and returns when
		for s.get(key) == "" {
			s.wait(.1)
		}
		return s.clock.Load()
	}
	gap := func() int64 {
		first := next()
		return next() - first
	}
	s.want(gap(), int64(2000)) // the default delay of 1 s in whole seconds
	for _, tt := range []struct {
		delay uint32 // s
		want  int64  // ms
	}{{0, 1000}, {1, 2000}, {3, 4000}} {
		must(s.SetDelay(ctx, &pb.QueueDelayParams{Key: "h", DelayRequestable: tt.delay}))
		s.want(gap(), tt.want)
	}
	now := uint64(s.clock.Load() / 1000)
	block := func(until uint64) {
		must(s.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "h", Time: until}))
	}
	block(now + 20)
	for s.clock.Load()/1000 <= int64(now+20) {
		s.want(s.get(key), "")
		s.wait(.5)
	}
	s.want(s.get(key), "http://h/1")
	block(now + 10_000)
	block(0)
	s.wait(5)
	s.want(s.get(key), "http://h/1")

	s.put(known("http://h/2", 0), known("http://h/3", 0))
	limit := func(n uint32) {
		must(s.SetCrawlLimit(ctx, &pb.CrawlLimitParams{Key: "h", Limit: n}))
		s.wait(5)
	}
	limit(2)
	s.want(s.get(key), "")
	s.want(s.put(discovered("http://h/4")), "http://h/4 OK") // puts are still taken
	limit(3)
	s.want(s.get(key), "http://h/1 http://h/4")
	limit(1)
	limit(0)
	s.want(s.get(key), "http://h/1 http://h/4")
	_, err := s.SetCrawlLimit(ctx, &pb.CrawlLimitParams{Key: "x"})
	s.want(status.Code(err), codes.Unknown)

	must(s.SetDelay(ctx, &pb.QueueDelayParams{DelayRequestable: 9})) // of all
	s.put(known("http://z/", start))
	s.get(anyCrawl)
	s.wait(9.9)
	s.want(s.get(&pb.GetParams{Key: "z", Item: &pb.GetParams_CrawlID{}}), "")
	must(s.SetDelay(ctx, &pb.QueueDelayParams{Key: "none", DelayRequestable: 9}))
	must(s.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "none", Time: 9}))
	s.want(s.queues(&pb.Pagination{IncludeInactive: true}), "h z") // nothing was created
}

// TestGateIsAtomic holds that calls at once never pass the gate together.
func TestGateIsAtomic(t *testing.T) {
	s := serve(t)
	for i := range 50 {
		s.put(known(fmt.Sprint("http://h/", i), start))
	}
	for range 5 {
		var got atomic.Int32
		var g sync.WaitGroup
		for range 16 {
			g.Go(func() { got.Add(int32(len(s.infos(&pb.GetParams{MaxUrlsPerQueue: 1, DelayRequestable: 1})))) })
		}
		g.Wait()
		s.want(got.Load(), int32(1))
		s.wait(2)
	}
}

func TestSetActive(t *testing.T) {
	s := serve(t)
	s.put(discovered("http://h/1"))
	must(s.SetActive(ctx, &pb.Active{State: false}))
	s.restart()
	s.want(must(s.GetActive(ctx, &pb.Local{})).State, false)
	s.want(s.get(anyCrawl), "")
	s.want(s.put(discovered("http://h/2")), "http://h/2 OK")
	must(s.SetActive(ctx, &pb.Active{State: true}))
	s.want(s.get(anyCrawl), "http://h/1 http://h/2")
}

// TestSetActiveMeanwhile: what a call under way has not handed out yet stays.
func TestSetActiveMeanwhile(t *testing.T) {
	const n = 3000
	s := serve(t)
	long := map[string]*pb.StringList{"m": {Values: []string{strings.Repeat("x", 1500)}}}
	items := make([]*pb.URLItem, n)
	for i := range items {
		items[i] = discoveredInfo(&pb.URLInfo{Url: fmt.Sprintf("http://h%d/", i), Metadata: long})
	}
	s.put(items...)
	stream := must(s.GetURLs(ctx, anyCrawl))
	must(stream.Recv())
	must(s.SetActive(ctx, &pb.Active{State: false}))
	if got := 1 + len(all(stream)); got > 1000 {
		t.Errorf("%d of %d URLs are handed out, most of them after nothing was to be", got, n)
	}
}

func TestLists(t *testing.T) {
	s := serve(t)
	s.want(s.stats("none", ""), "size 0 process 0 queues 0 completed 0 active 0 crawl DEFAULT")
	for i := range 150 {
		s.put(known(fmt.Sprintf("http://q%03d/A", i), start))
	}
	s.want(len(strings.Fields(s.queues(&pb.Pagination{}))), 100)
	s.want(s.queues(&pb.Pagination{Start: 148, Size: 5}), "q148 q149")
	must(s.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "q000", Time: start + 10}))
	s.put(known("http://q001/A", 0))
	s.get(&pb.GetParams{Key: "q002", Item: &pb.GetParams_CrawlID{}}) // held is active
	s.want(s.queues(&pb.Pagination{Size: 2}), "q002 q003")
	l := must(s.ListQueues(ctx, &pb.Pagination{Size: 2, Start: 1, IncludeInactive: true}))
	s.want(fmt.Sprint(l.Values, l.Total, l.Start, l.Size, l.CrawlID), "[q001 q002] 0 1 2DEFAULT")
	s.want(s.stats("", ""), "size 149 process 1 queues 150 completed 1 active 149 crawl DEFAULT")

	s.want(len(strings.Fields(s.list(&pb.ListUrlParams{}))), 100)
	// Completed ones too.
	s.want(s.list(&pb.ListUrlParams{Size: 2}), fmt.Sprintf("http://q000/A@%d http://q001/A@0", start))
	s.want(s.list(&pb.ListUrlParams{Key: "q149"}), fmt.Sprintf("http://q149/A@%d", start))
	filter, ignore := "Q14", true
	s.want(s.list(&pb.ListUrlParams{Filter: &filter}), "")
	s.want(s.list(&pb.ListUrlParams{Filter: &filter, IgnoreCase: &ignore, Start: 9}),
		fmt.Sprintf("http://q149/A@%d", start))
	s.want(must(s.CountURLs(ctx, &pb.CountUrlParams{Filter: &filter, IgnoreCase: &ignore})).Value, uint64(10))
	s.want(must(s.CountURLs(ctx, &pb.CountUrlParams{})).Value, uint64(150))
	s.want(must(s.CountURLs(ctx, &pb.CountUrlParams{Key: "q001"})).Value, uint64(1))

	_, err := s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://none/"})
	s.want(status.Code(err), codes.NotFound)
	_, err = s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "none"})
	s.want(status.Code(err), codes.InvalidArgument)
	s.want(must(s.ListNodes(ctx, &pb.Empty{})).Values[0], "me")
	must(s.SetLogLevel(ctx, &pb.LogLevelParams{Package: "none", Level: pb.LogLevelParams_ERROR}))
}

// TestDeleting holds that names which are prefixes of each other or have odd
// characters differ, and are served.
func TestDeleting(t *testing.T) {
	s := serve(t)
	names := []string{"crawl", "crawl2", "_", "a_b", "/", "\x00", "\x01",
		"[::1]", "_DEFAULT_", strings.Repeat("k", 255),
	}
	for _, crawl := range names {
		for _, key := range names {
			s.want(s.put(discoveredInfo(&pb.URLInfo{Url: "http://h/", CrawlID: crawl, Key: key})), "http://h/ OK")
		}
	}
	s.want(len(s.infos(&pb.GetParams{DelayRequestable: 1000})), 100)
	for i, crawl := range names {
		for _, want := range []uint64{1, 0} { // what is deleted is gone
			s.want(must(s.DeleteQueue(ctx, &pb.QueueWithinCrawlParams{Key: names[i], CrawlID: crawl})).Value, want)
		}
		for _, want := range []uint64{9, 0} {
			s.want(must(s.DeleteCrawl(ctx, &pb.DeleteCrawlMessage{Value: crawl})).Value, want)
		}
		s.restart()
		n := 0
		for _, c := range must(s.ListCrawls(ctx, &pb.Local{})).Values {
			n += int(must(s.CountURLs(ctx, &pb.CountUrlParams{CrawlID: c})).Value)
		}
		s.want(n, 90-10*i)
	}
	s.want(s.put(discovered("http://h/")), "http://h/ OK") // writing goes on
}

func TestPurge(t *testing.T) {
	s := serve(t)
	s.put(known("http://h/old", start), known("http://h/done", 0), known("http://i/old", 0))
	s.wait(2 * 86400)
	s.put(known("http://h/new", start))
	purge := func(key string, days uint32) uint64 {
		return must(s.PurgeURLs(ctx, &pb.PurgeUrlParams{Key: key, Days: days})).Value
	}
	s.want(purge("", 3), uint64(0))
	s.want(purge("h", 1), uint64(2))
	s.want(purge("", 1), uint64(1))
	s.restart()
	s.want(s.queues(&pb.Pagination{IncludeInactive: true}), "h i") // emptied queues stay
	s.want(s.list(&pb.ListUrlParams{}), fmt.Sprintf("http://h/new@%d", start))
}

// TestPage holds that a browser shows crawls and what is thought of learned URLs.
func TestPage(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("EPHEMERA_REQUIRE_ALL") == "" {
		t.Skip(err)
	}
	s := serve(t, LearnOptions{PerHour: 1})
	s.put(discovered("http://h/"), report("http://l/<b>", 0, []time.Time{s.server.now()}))
	web := httptest.NewServer(s.server.HTTP())
	defer web.Close()
	out, err := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--timeout=5000",
		"--user-data-dir="+t.TempDir(), "--dump-dom", web.URL).Output()
	for _, want := range []string{
		"<td>DEFAULT</td><td>1</td><td>1</td><td>1</td><td>0</td>",
		"L: learned",
		"http://l/&lt;b&gt;",
	} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%v: no %q in %s", err, want, out)
		}
	}
}

// TestCountOfClientThatLeft: a count ends when its client has gone, also where nothing matches.
func TestCountOfClientThatLeft(t *testing.T) {
	s := serve(t)
	s.put(discovered("http://h/1"), discovered("http://h/2"))
	gone, leave := context.WithCancel(ctx)
	leave()
	filter := "no URL has this"
	_, err := s.server.CountURLs(gone, &pb.CountUrlParams{Filter: &filter})
	s.want(status.Code(err), codes.Canceled)
	s.want(status.Code(s.server.ownURLs(gone, &pb.ListUrlParams{Filter: &filter}, nil)), codes.Canceled)
}
