package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	pb "ephemera/live/frontier/urlfrontier"
)

// metric reads a number of the service's page of metrics.
func metric(t *testing.T, page, name string) (v float64) {
	t.Helper()
	r, err := http.Get("http://" + page + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
	if _, err := fmt.Sscan(rest, &v); err != nil {
		t.Fatal(name, err)
	}
	return v
}

// TestClientsThatStall holds that clients that stop reading, that are killed, or
// that only keep their streams open do not keep others waiting, and leave nothing.
func TestClientsThatStall(t *testing.T) {
	page := freeAddress(t)
	address := freeAddress(t)
	_, conn := launch(t, address, "-dir", t.TempDir(), "-http", page)
	client := pb.NewURLFrontierClient(conn)
	other := func(o ...grpc.DialOption) pb.URLFrontierClient { // on a connection of its own
		return pb.NewURLFrontierClient(dial(t, address, insecure.NewCredentials(), o...))
	}
	stats := func(crawl string) *pb.Stats {
		n, err := client.GetStats(t.Context(), &pb.QueueWithinCrawlParams{CrawlID: crawl})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	fill(t, client, 10_000, 50_000, 0)
	goroutines := metric(t, page, "go_goroutines")

	// One that takes everything and reads one URL: the others are not taken.
	slow, stop := context.WithCancel(t.Context())
	gets, err := other().GetURLs(slow, &pb.GetParams{})
	if err == nil {
		_, err = gets.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	// Ten streams that put and read no answer.
	deaf := other(grpc.WithInitialWindowSize(1 << 16)) // a client that makes no more room for answers
	var sent sync.WaitGroup
	for k := range 10 {
		puts, err := deaf.PutURLs(slow)
		if err != nil {
			t.Fatal(err)
		}
		sent.Go(func() {
			for i := k; puts.Send(item("deaf", i)) == nil; i += 10 {
			}
		})
	}
	time.Sleep(time.Second)
	held := stats("").InProcess
	if got := take(t, client, &pb.GetParams{MaxQueues: 100, MaxUrlsPerQueue: 1}); got != 100 || held > 10_000 {
		t.Errorf("%d URLs of 100, beside a client that has %d", got, held)
	}
	for last, wait := uint64(0), 0; last == 0 || last < stats("deaf").Size; wait++ {
		last = stats("deaf").Size
		if time.Sleep(300 * time.Millisecond); wait > 200 {
			t.Fatalf("%d URLs are put by streams that read no answer, and still more", last)
		}
	}
	stop()
	sent.Wait()

	// Killed ones: the connection is reset in the middle of both.
	for round := range 20 {
		var wire net.Conn
		c := dial(t, address, insecure.NewCredentials(), grpc.WithContextDialer(func(_ context.Context, a string) (conn net.Conn, err error) {
			wire, err = net.Dial("tcp", a)
			return wire, err
		}))
		doomed := pb.NewURLFrontierClient(c)
		doomed.GetURLs(t.Context(), &pb.GetParams{MaxQueues: 100})
		puts, err := doomed.PutURLs(t.Context())
		for i := 0; err == nil && i < 1000; i++ {
			err = puts.Send(item("killed", round*1000+i))
		}
		if _, err := puts.Recv(); err != nil {
			t.Fatal(err)
		}
		wire.(*net.TCPConn).SetLinger(0)
		wire.Close()
		c.Close()
	}

	// Ten thousand that wait.
	before := metric(t, page, "process_resident_memory_bytes")
	var idle []pb.URLFrontier_PutURLsClient
	waiting, end := context.WithCancel(t.Context())
	many := other()
	for i := range 10_000 {
		puts, err := many.PutURLs(waiting)
		if err == nil {
			err = puts.Send(item("idle", i))
		}
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, puts)
	}
	for _, puts := range idle {
		if _, err := puts.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if got := take(t, client, &pb.GetParams{MaxQueues: 100, MaxUrlsPerQueue: 1}); got != 100 {
		t.Fatal(got)
	}
	each := (metric(t, page, "process_resident_memory_bytes") - before) / 10_000
	t.Logf("10 000 idle streams: %.0f kB each, %.0f goroutines", each/1000, metric(t, page, "go_goroutines"))
	if each > 150_000 {
		t.Errorf("an idle stream takes %.0f bytes", each)
	}
	end()
	// Three connections are still open, with three goroutines each.
	for wait := 0; metric(t, page, "go_goroutines") > goroutines+14; wait++ {
		if time.Sleep(100 * time.Millisecond); wait > 300 {
			t.Fatalf("%.0f goroutines are left of %.0f", metric(t, page, "go_goroutines"), goroutines)
		}
	}
}

// TestSilentClient holds that the service ends the streams of a client whose packets
// are lost from a moment on.
func TestSilentClient(t *testing.T) {
	keepAlive = keepalive.ServerParameters{Time: time.Second, Timeout: time.Second} // no shorter ones are taken
	address := freeAddress(t)
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var service sync.WaitGroup
	service.Go(func() { run(ctx, []string{"-listen", address, "-http", "", "-dir", dir}, io.Discard, io.Discard) })
	defer service.Wait()
	defer stop()
	var silent atomic.Bool
	ended := make(chan bool, 1)
	client := pb.NewURLFrontierClient(dial(t, address, insecure.NewCredentials(), grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
		server, err := net.Dial("tcp", address)
		here, there := net.Pipe()
		pass := func(to io.Writer, from io.Reader) {
			for b := make([]byte, 1<<16); ; {
				n, err := from.Read(b)
				if err != nil {
					break
				}
				if !silent.Load() {
					to.Write(b[:n])
				}
			}
		}
		if err == nil {
			go pass(server, there)
			go func() {
				pass(there, server)
				ended <- true
			}()
		}
		return here, err
	})))
	puts, err := client.PutURLs(t.Context(), grpc.WaitForReady(true))
	if err == nil {
		puts.Send(item("c", 1))
		_, err = puts.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	select {
	case <-ended:
		t.Fatal("a client that answers was ended")
	default:
	}
	silent.Store(true)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the connection of a client that answers no more is still open")
	}
}

func discovered(url string) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: &pb.URLInfo{Url: url}}}}
}

// item is a URL of a crawl that nobody knows yet.
func item(crawl string, i int) *pb.URLItem {
	u := discovered(fmt.Sprintf("http://%s/%d", crawl, i))
	u.GetDiscovered().Info.CrawlID = crawl
	return u
}
