package frontier

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// TestOwner: the hash codes are those that Java has of these strings.
func TestOwner(t *testing.T) {
	for _, tt := range []struct {
		key  string
		hash int32
		of   int // of three
	}{
		{"", 0, 0},
		{"a", 97, 1},
		{"hello", 99162322, 1},
		{"polygenelubricants", -2147483648, 2},
		{"é", 233, 2},
		{"😀", 1772899, 1},
	} {
		t.Run(tt.key, func(t *testing.T) {
			if hash, of := hashCode(tt.key), Owner(tt.key, 3); hash != tt.hash || of != tt.of {
				t.Errorf("the hash code is %d and the owner %d, want %d and %d", hash, of, tt.hash, tt.of)
			}
		})
	}
}

// neighbours starts so many services that know each other, in the order of their addresses.
func neighbours(t *testing.T, n int, learn ...LearnOptions) (all []*service) {
	var listeners []net.Listener
	for range n {
		listeners = append(listeners, must(net.Listen("tcp", "127.0.0.1:0")))
	}
	slices.SortFunc(listeners, func(a, b net.Listener) int {
		return strings.Compare(a.Addr().String(), b.Addr().String())
	})
	conns := map[string]grpc.ClientConnInterface{}
	for _, l := range listeners {
		conn := must(grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials())))
		t.Cleanup(func() { conn.Close() })
		conns[l.Addr().String()] = conn
	}
	now := &atomic.Int64{}
	now.Store(start * 1000)
	for _, l := range listeners {
		s := &service{T: t, fs: vfs.NewMem(), clock: now, address: l.Addr().String()}
		s.store = must(store.Open("frontier", &store.Options{
			FS: s.fs, Delay: StoreDelay, Memory: 16 << 20, Now: func() time.Time { return time.UnixMilli(now.Load()) },
		}))
		o := Options{Address: s.address}
		for _, opt := range learn {
			opt.Nodes = n
			o.Learned = must(NewLearned(s.store, slog.New(slog.DiscardHandler), map[string]LearnOptions{"L": opt}))
		}
		o.Peers = map[string]grpc.ClientConnInterface{}
		for address, conn := range conns {
			if address != s.address {
				o.Peers[address] = conn
			}
		}
		s.server = must(New(s.store, o))
		s.URLFrontierClient = pb.NewURLFrontierClient(conns[s.address])
		g := grpc.NewServer(s.server.Interceptors()...)
		pb.RegisterURLFrontierServer(g, s.server)
		RegisterNodes(g, s.server)
		go g.Serve(l)
		s.stop = func() {
			s.server.Closing()
			g.Stop()
			s.store.Close()
		}
		all = append(all, s)
		t.Cleanup(func() { s.stop() })
	}
	return all
}

// TestOtherList: what a node hands on that has another list is refused, and the refusal says why.
func TestOtherList(t *testing.T) {
	nodes := neighbours(t, 3)
	wrong := nodes[1].server
	wrong.nodes = newNodes(wrong.opt.Address, map[string]grpc.ClientConnInterface{
		nodes[0].address: wrong.opt.Peers[nodes[0].address],
	})
	for k := range 60 {
		key := fmt.Sprintf("h%d", k)
		handsOn := []bool{Owner(key, 3) == 1, Owner(key, 2) == 0}
		for i, handsOn := range handsOn {
			got := nodes[i].put(discovered("http://" + key + "/"))
			if refused := strings.Contains(got, "FAIL"); refused != handsOn {
				t.Errorf("%s is put to node %d: %s", key, i, got)
			}
		}
	}
	_, err := nodes[0].GetStats(ctx, &pb.QueueWithinCrawlParams{})
	want := fmt.Sprintf("node %s: its -nodes are %s,%s, and the node that asks it has others; needed is the same list",
		nodes[1].address, nodes[0].address, nodes[1].address)
	if !strings.Contains(fmt.Sprint(err), want) || status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the totals of all: %v; want %s", err, want)
	}
}

// TestOtherPlace: a state with URLs is not taken up by a node that owns other keys.
func TestOtherPlace(t *testing.T) {
	s := neighbours(t, 3)[1]
	start := func(addresses ...string) error {
		peers := map[string]grpc.ClientConnInterface{}
		for _, address := range addresses {
			peers[address] = nil
		}
		_, err := New(s.store, Options{Address: "b", Peers: peers})
		return err
	}
	if err := start(); err != nil {
		t.Errorf("it has no URL, and is refused: %v", err)
	}
	if err := start("a", "c"); err != nil {
		t.Errorf("it has no URL, and is refused: %v", err)
	}
	must(s.store.Put(schedule.ID{Crawl: DefaultCrawl, Key: "h", URL: "http://h/"}, 1000, 1000, nil))
	if err := start("a", "d"); err != nil {
		t.Errorf("it owns the same keys, and is refused: %v", err)
	}
	for _, tt := range []struct {
		peers []string
		want  string
	}{
		{nil, "the state is of node 2 of 3, and -nodes make this one node 1 of 1"},
		{[]string{"a"}, "the state is of node 2 of 3, and -nodes make this one node 2 of 2"},
		{[]string{"c", "d"}, "the state is of node 2 of 3, and -nodes make this one node 1 of 3"},
	} {
		if err := start(tt.peers...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("next to %v: %v; want %s", tt.peers, err, tt.want)
		}
	}
}

// ender is a writer that ends what writes to it.
type ender func()

func (e ender) Write(b []byte) (int, error) {
	e()
	return len(b), nil
}

// TestLongListOfCrawls: the names of so many crawls that they take more than the 4 MB of a message that clients
// read by default reach a client that reads more, also those of another node. An export is such a client.
func TestLongListOfCrawls(t *testing.T) {
	nodes := neighbours(t, 2)
	const n = 17_000
	for i := range n {
		id := schedule.ID{Crawl: fmt.Sprintf("%0*d", longestKey, i), Key: "h", URL: "http://h/"}
		must(nodes[1].store.Put(id, 1000, start*1000, nil))
	}
	for _, s := range nodes {
		got, err := s.ListCrawls(ctx, &pb.Local{}, grpc.MaxCallRecvMsgSize(8<<20))
		if len(got.GetValues()) != n || err != nil {
			t.Errorf("listed are %d crawls of %d: %v", len(got.GetValues()), n, err)
		}
		if _, err := s.ListCrawls(ctx, &pb.Local{}); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a client that reads 4 MB gets the error %v", err)
		}
	}
	some, enough := context.WithCancel(ctx)
	if exported, err := ExportFrom(some, ender(enough), nodes[0].URLFrontierClient); exported == 0 {
		t.Errorf("nothing is exported: %v", err)
	}
}

// TestNodes: whichever of three nodes is asked, the owner of a key has its URLs and answers.
func TestNodes(t *testing.T) {
	nodes := neighbours(t, 3)
	a := nodes[0]
	host := func(i int) string { return fmt.Sprintf("h%02d", i) }
	var items []*pb.URLItem
	want := [3]uint64{}
	var acks []string
	for i := range 30 {
		items = append(items, discovered("http://"+host(i)+"/"))
		acks = append(acks, "http://"+host(i)+"/ OK")
		want[Owner(host(i), 3)]++
	}
	if slices.Contains(want[:], 0) {
		t.Fatal("a node has no key", want)
	}
	a.want(a.put(items...), strings.Join(acks, ", "))
	a.want(nodes[1].put(items...), strings.ReplaceAll(strings.Join(acks, ", "), "OK", "SKIPPED"))
	stream := must(nodes[2].PutDiscovered(ctx))
	stream.Send(&pb.DiscoveredBatch{Items: []*pb.URLInfo{
		info("http://h00/"), info("http://h01/new"), info("no key"), info("http://h02/new"), info("http://h02/new"),
	}})
	a.want(fmt.Sprint(must(stream.Recv()).Statuses), "[SKIPPED OK SKIPPED OK SKIPPED]")
	want[Owner("h01", 3)]++
	want[Owner("h02", 3)]++

	for i, s := range nodes {
		count := must(s.CountURLs(ctx, &pb.CountUrlParams{Local: new(bool)}))
		local := true
		own := must(s.CountURLs(ctx, &pb.CountUrlParams{Local: &local}))
		a.want(fmt.Sprint(count.Value, own.Value), fmt.Sprint(32, want[i]))
		all := must(s.GetStats(ctx, &pb.QueueWithinCrawlParams{}))
		mine := must(s.GetStats(ctx, &pb.QueueWithinCrawlParams{Local: true}))
		a.want(fmt.Sprint(all.Size, mine.Size), fmt.Sprint(32, want[i]))
		a.want(s.queues(&pb.Pagination{Start: 3, Size: 4}), "h03 h04 h05 h06")
		a.want(len(strings.Fields(s.queues(&pb.Pagination{Local: true}))) < 30, true)
		a.want(len(listed(s, &pb.ListUrlParams{})), 32)
		a.want(len(listed(s, &pb.ListUrlParams{Start: 5, Size: 10})), 10)
		a.want(len(listed(s, &pb.ListUrlParams{Local: true})), int(want[i]))
		a.want(len(must(s.ListNodes(ctx, &pb.Empty{})).Values), 3)
		a.want(fmt.Sprint(must(s.ListCrawls(ctx, &pb.Local{})).Values), "[DEFAULT]")
		for k := range 30 {
			if _, err := s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://" + host(k) + "/"}); err != nil {
				t.Fatal(err)
			}
			queue := must(s.GetStats(ctx, &pb.QueueWithinCrawlParams{Key: host(k)}))
			a.want(queue.NumberOfQueues, uint64(1))
		}
		_, err := s.GetURLStatus(ctx, &pb.URLStatusRequest{Url: "http://h00/none"})
		a.want(status.Code(err), codes.NotFound)
	}

	// Limits are the owner's, and a queue has one gate.
	must(a.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "h03", Time: start + 100}))
	must(a.SetDelay(ctx, &pb.QueueDelayParams{Key: "h04", DelayRequestable: 50}))
	for _, s := range nodes {
		a.want(s.get(&pb.GetParams{Key: "h03", Item: &pb.GetParams_CrawlID{}}), "")
	}
	_, err := a.SetCrawlLimit(ctx, &pb.CrawlLimitParams{Key: "none"})
	a.want(status.Code(err), codes.Unknown)
	got := ""
	for _, s := range nodes {
		got += s.get(&pb.GetParams{Key: "h04", Item: &pb.GetParams_CrawlID{}, DelayRequestable: 1})
	}
	a.want(got, "http://h04/")
	var handed []string
	for _, s := range nodes { // of any queue: each node hands out its own
		handed = append(handed, strings.Fields(s.get(anyCrawl))...)
	}
	slices.Sort(handed)
	a.want(len(handed), 30) // all but h03 and h04
	a.want(len(slices.Compact(handed)), 30)

	must(nodes[1].SetActive(ctx, &pb.Active{}))
	a.want(must(nodes[2].GetActive(ctx, &pb.Local{Local: true})).State, false)
	must(nodes[1].SetActive(ctx, &pb.Active{State: true, Local: true}))
	a.want(must(nodes[1].GetActive(ctx, &pb.Local{Local: true})).State, true)
	a.want(must(nodes[1].GetActive(ctx, &pb.Local{})).State, false)
	a.want(must(nodes[1].DeleteQueue(ctx, &pb.QueueWithinCrawlParams{Key: "h02"})).Value, uint64(2))
	a.want(must(nodes[2].DeleteCrawl(ctx, &pb.DeleteCrawlMessage{Value: "DEFAULT"})).Value, uint64(30))
	a.want(must(a.CountURLs(ctx, &pb.CountUrlParams{})).Value, uint64(0))
}

func listed(s *service, p *pb.ListUrlParams) []*pb.URLItem { return all(must(s.ListURLs(ctx, p))) }

// TestManyQueues: of nodes with more names of queues than a message may have, any part of the list is
// there, in its order, and a node that does not answer ends it.
func TestManyQueues(t *testing.T) {
	nodes := neighbours(t, 2)
	const n = 34_000 // of 255 bytes, half of them at each node
	var last [2]*store.Commit
	for i := range n + 1 {
		id := schedule.ID{Crawl: DefaultCrawl, Key: fmt.Sprintf("%0255d", i), URL: "u"}
		for k, s := range nodes {
			if i%2 == k || i == n-10 { // one is to be moved
				last[k] = must(s.store.Put(id, 1000, 1000, nil))
			}
		}
	}
	for _, commit := range last { // which is on disk after all before it
		commit.Wait()
	}
	a := nodes[0]
	var want []string
	for i := n - 20; i <= n; i++ {
		want = append(want, fmt.Sprintf("%0255d", i))
	}
	a.want(a.queues(&pb.Pagination{Start: n - 20, Size: 100}), strings.Join(want, " "))
	a.want(a.queues(&pb.Pagination{Start: n - 20, Size: 15}), strings.Join(want[:15], " "))
	nodes[1].stop()
	nodes[1].stop = func() {}
	_, err := a.ListQueues(ctx, &pb.Pagination{Start: n - 20})
	a.want(status.Code(err), codes.Unavailable)
	a.want(strings.Contains(err.Error(), nodes[1].address), true)
}

// TestNodeDown: what is of the keys of a node that does not answer fails, item by item and
// nothing else does; when it is back, all of it goes on.
func TestNodeDown(t *testing.T) {
	nodes := neighbours(t, 2)
	a, b := nodes[0], nodes[1]
	var ours, theirs string
	for i := 0; ours == "" || theirs == ""; i++ {
		if key := fmt.Sprint("h", i); Owner(key, 2) == 0 {
			ours = key
		} else {
			theirs = key
		}
	}
	url := func(key, path string) string { return "http://" + key + "/" + path }
	a.want(a.put(discovered(url(theirs, "1"))), url(theirs, "1")+" OK")
	stream := must(a.PutURLs(ctx)) // stays open over all
	send := func(key, path, want string) {
		t.Helper()
		stream.Send(discovered(url(key, path)))
		a.want(must(stream.Recv()).Status.String(), want)
	}
	send(theirs, "2", "OK")
	b.stop()
	for i := range 20 {
		send(theirs, fmt.Sprint("down", i), "FAIL")
		send(ours, fmt.Sprint("down", i), "OK")
	}
	_, err := a.GetURLStatus(ctx, &pb.URLStatusRequest{Url: url(theirs, "1")})
	a.want(status.Code(err), codes.Unavailable)
	a.want(strings.Contains(err.Error(), b.address), true)
	_, err = a.CountURLs(ctx, &pb.CountUrlParams{})
	a.want(status.Code(err), codes.Unavailable)
	a.want(len(strings.Fields(a.get(anyCrawl))), 20)

	b.store = must(store.Open("frontier", &store.Options{FS: b.fs, Memory: 16 << 20, Now: func() time.Time {
		return time.UnixMilli(b.clock.Load())
	}}))
	again := must(New(b.store, b.server.opt))
	g := grpc.NewServer()
	pb.RegisterURLFrontierServer(g, again)
	go g.Serve(must(net.Listen("tcp", b.address)))
	b.stop = func() {
		again.Closing()
		g.Stop()
		b.store.Close()
	}
	ctx := t.Context()
	must(b.GetActive(ctx, &pb.Local{Local: true}, grpc.WaitForReady(true)))
	send(theirs, "2", "SKIPPED") // what was acknowledged is there
	send(theirs, "3", "OK")
}
