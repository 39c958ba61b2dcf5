package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	pb "ephemera/live/frontier/urlfrontier"
)

// metric reads a number of the service's page of metrics.
func (s *service) metric(name string) (v float64) {
	_, page := fetch(s.page, "/metrics")
	_, rest, _ := strings.Cut(page, "\n"+name+" ")
	must(fmt.Sscan(rest, &v))
	return v
}

// TestClientsThatStall holds that clients that stop reading, that are killed, or
// that only keep their streams open do not keep others waiting, and leave nothing.
func TestClientsThatStall(t *testing.T) {
	s := launch(t, t.TempDir())
	other := func(o ...grpc.DialOption) pb.URLFrontierClient { // on a connection of its own
		return pb.NewURLFrontierClient(dial(t, s.address, insecure.NewCredentials(), o...))
	}
	stats := func(crawl string) *pb.Stats {
		return must(s.GetStats(t.Context(), &pb.QueueWithinCrawlParams{CrawlID: crawl}))
	}
	taken := func() int { return take(t, s, &pb.GetParams{MaxQueues: 100, MaxUrlsPerQueue: 1}) }
	fill(t, s, 10_000, 50_000, 0)
	goroutines := s.metric("go_goroutines")

	// One that takes everything and reads one URL: the others are not taken.
	slow, stop := context.WithCancel(t.Context())
	must(must(other().GetURLs(slow, &pb.GetParams{})).Recv())
	// Ten streams that put and read no answer.
	deaf := other(grpc.WithInitialWindowSize(1 << 16)) // a client that makes no more room for answers
	var sent sync.WaitGroup
	for k := range 10 {
		puts := must(deaf.PutURLs(slow))
		sent.Go(func() {
			for i := k; puts.Send(item("deaf", i)) == nil; i += 10 {
			}
		})
	}
	time.Sleep(time.Second)
	held := stats("").InProcess
	if got := taken(); got != 100 || held > 10_000 {
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
		c := dial(t, s.address, insecure.NewCredentials(), grpc.WithContextDialer(func(_ context.Context, a string) (conn net.Conn, err error) {
			wire, err = net.Dial("tcp", a)
			return wire, err
		}))
		doomed := pb.NewURLFrontierClient(c)
		doomed.GetURLs(t.Context(), &pb.GetParams{MaxQueues: 100})
		puts, err := doomed.PutURLs(t.Context())
		for i := 0; err == nil && i < 1000; i++ {
			err = puts.Send(item("killed", round*1000+i))
		}
		must(puts.Recv())
		wire.(*net.TCPConn).SetLinger(0)
		wire.Close()
		c.Close()
	}

	// Ten thousand that wait.
	before := s.metric("process_resident_memory_bytes")
	var idle []pb.URLFrontier_PutURLsClient
	waiting, end := context.WithCancel(t.Context())
	many := other()
	for i := range 10_000 {
		puts := must(many.PutURLs(waiting))
		puts.Send(item("idle", i))
		idle = append(idle, puts)
	}
	for _, puts := range idle {
		must(puts.Recv())
	}
	if got := taken(); got != 100 {
		t.Fatal(got)
	}
	each := (s.metric("process_resident_memory_bytes") - before) / 10_000
	t.Logf("10 000 idle streams: %.0f kB each, %.0f goroutines", each/1000, s.metric("go_goroutines"))
	if each > 150_000 {
		t.Errorf("an idle stream takes %.0f bytes", each)
	}
	end()
	// Three connections are still open, with three goroutines each.
	for wait := 0; s.metric("go_goroutines") > goroutines+14; wait++ {
		if time.Sleep(100 * time.Millisecond); wait > 300 {
			t.Fatalf("%.0f goroutines are left of %.0f", s.metric("go_goroutines"), goroutines)
		}
	}
}

// TestSilentClient holds that the service ends the streams of a client whose packets
// are lost from a moment on.
func TestSilentClient(t *testing.T) {
	keepAlive = keepalive.ServerParameters{Time: time.Second, Timeout: time.Second} // no shorter ones are taken
	address := freeAddress()
	runHere(t, "-listen", address, "-http", "", "-dir", t.TempDir())
	var silent atomic.Bool
	ended := make(chan bool, 1)
	client := pb.NewURLFrontierClient(dial(t, address, insecure.NewCredentials(), grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
		server, err := net.Dial("tcp", address)
		here, there := net.Pipe()
		pass := func(to io.Writer, from io.Reader) {
			b := make([]byte, 1<<16)
			for n, err := from.Read(b); err == nil; n, err = from.Read(b) {
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
	puts := must(client.PutURLs(t.Context(), grpc.WaitForReady(true)))
	puts.Send(item("c", 1))
	must(puts.Recv())
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

// TestJava holds that a client with the stubs which URLFrontier publishes is served.
func TestJava(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	if _, err := exec.LookPath("mvn"); err != nil && os.Getenv("EPHEMERA_REQUIRE_ALL") == "" {
		t.Skip("Java's client is not tested: ", err)
	}
	_, port, _ := net.SplitHostPort(launch(t, t.TempDir()).address)
	c := exec.Command("mvn", "-q", "-B", "-f", "java/pom.xml", "-Dout="+t.TempDir(), "-DargLine=-Dfrontier.port="+port, "test")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
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

// memory ends a process and returns how much it held at most.
func (s *service) memory() string {
	s.Process.Kill()
	s.Wait()
	return fmt.Sprintf("%d MB", s.ProcessState.SysUsage().(*syscall.Rusage).Maxrss>>10)
}

// fill puts URLs into queues, known ones with a date if it is not 0.
func fill(t *testing.T, client pb.URLFrontierClient, queues, urls int, date uint64) {
	var g sync.WaitGroup
	const streams = 4
	for k := range streams {
		g.Go(func() { put(t, client, urls*k/streams, urls*(k+1)/streams, queues, date) })
	}
	g.Wait()
}

// put puts the URLs from one number to another.
func put(t *testing.T, client pb.URLFrontierClient, from, to, queues int, date uint64) {
	puts := must(client.PutURLs(t.Context()))
	go func() {
		for i := from; i < to; i++ {
			item := discovered(fmt.Sprintf("https://www.host%07d.example/articles/%08d.html", i%queues, i))
			info := item.GetDiscovered().Info
			info.Key = fmt.Sprintf("host%07d", i%queues)
			if date > 0 {
				item.Item = &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info, RefetchableFromDate: date}}
			}
			puts.Send(item) // Recv has the error
		}
		puts.CloseSend()
	}()
	err := receive(puts, func(ack *pb.AckMessage) {
		if ack.Status != pb.AckMessage_OK {
			t.Error(ack)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func take(t *testing.T, client pb.URLFrontierClient, p *pb.GetParams) (n int) {
	if err := receive(must(client.GetURLs(t.Context(), p)), func(*pb.URLInfo) { n++ }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMeasure prints the table of docs/frontier.md.
func TestMeasure(t *testing.T) {
	if !*full {
		t.Skip("without -full")
	}
	t.Run("rates", func(t *testing.T) {
		s := launch(t, t.TempDir())
		const n = 100_000
		report := func(what string, f func()) {
			const cpu = "process_cpu_seconds_total"
			began, used := time.Now(), s.metric(cpu)
			f()
			spent := time.Since(began).Seconds()
			fmt.Printf("%s: %.0f/s, %.1f µs CPU each\n", what, n/spent, 1e6*(s.metric(cpu)-used)/n)
		}
		report("put", func() { fill(t, s, 1000, n, 0) })
		report("get", func() {
			if got := take(t, s, &pb.GetParams{DelayRequestable: 1000}); got != n {
				t.Fatal(got)
			}
		})
		report("put known", func() { fill(t, s, 1000, n, 1) })
	})
	t.Run("queues", func(t *testing.T) {
		s := launch(t, t.TempDir())
		fill(t, s, 1_000_000, 1_000_000, math.MaxUint32)
		var ms []float64
		for i := range 1000 {
			put(t, s, 100*i, 100*(i+1), 1_000_000, 1) // those become due
			time.Sleep(50 * time.Millisecond)
			began := time.Now()
			if got := take(t, s, &pb.GetParams{DelayRequestable: 10_000, MaxUrlsPerQueue: 1}); got != 100 {
				t.Fatal(got)
			}
			ms = append(ms, time.Since(began).Seconds()*1000)
		}
		slices.Sort(ms)
		fmt.Printf("1e6 queues, 100 due: p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, at most %.1f ms, %s\n", ms[500], ms[900], ms[990], ms[999], s.memory())
	})
	t.Run("urls", func(t *testing.T) {
		dir := t.TempDir()
		s := launch(t, dir)
		fill(t, s, 100_000, 10_000_000, 0)
		fmt.Println("1e7 URLs in 1e5 queues:", s.memory())
		began := time.Now()
		s = launch(t, dir)
		fmt.Println("started again:", time.Since(began).Round(time.Second), s.memory())
	})
}
