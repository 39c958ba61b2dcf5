package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"ephemera/cmd/internal/clitest"
	pb "ephemera/live/frontier/urlfrontier"
)

var full = flag.Bool("full", false, "kill the service a hundred times, not five, and measure it")

func TestMain(m *testing.M) { clitest.Main(m, main) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// listen listens at a port that is none of those that the system gives to connections, which others
// make all the time.
func listen() net.Listener {
	for {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(20_000)))
		if err == nil {
			return l
		}
	}
}

// freeAddress returns an address that nobody listens at.
func freeAddress() string {
	l := listen()
	defer l.Close()
	return l.Addr().String()
}

// soon has a client ask again at once, and then more rarely, while nobody listens: processes of tests begin in a
// tenth of a second.
var soon = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second},
	MinConnectTimeout: 20 * time.Second,
})

func dial(
	t *testing.T, address string, creds credentials.TransportCredentials, more ...grpc.DialOption,
) *grpc.ClientConn {
	conn := must(grpc.NewClient(address, append(more, soon, grpc.WithTransportCredentials(creds))...))
	t.Cleanup(func() { conn.Close() })
	return conn
}

// service is the command in a process of its own, with a client.
type service struct {
	pb.URLFrontierClient
	*exec.Cmd
	conn          *grpc.ClientConn
	address, page string
}

// launch starts the command on a directory and waits until it serves.
func launch(t *testing.T, dir string, args ...string) *service {
	s := &service{address: freeAddress(), page: freeAddress()}
	s.Cmd = clitest.Process(t, append(args, "-listen", s.address, "-http", s.page, "-dir", dir)...)
	s.begin(t)
	return s
}

// races passes on what a process logs. Built with the race detector, it says there what it found.
type races struct{ *testing.T }

func (r races) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("DATA RACE")) {
		r.Error("the process has a data race")
	}
	return os.Stderr.Write(p)
}

func (s *service) begin(t *testing.T) {
	s.Stderr, s.WaitDelay = races{t}, time.Second
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Process.Kill()
		s.Wait()
	})
	s.conn = dial(t, s.address, insecure.NewCredentials())
	s.URLFrontierClient = pb.NewURLFrontierClient(s.conn)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	must(healthpb.NewHealthClient(s.conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)))
}

// runHere runs the command in this process until the end of the test.
func runHere(t *testing.T, alive keepalive.ServerParameters, args ...string) {
	set, ended := settings{keepAlive: alive}, make(chan error)
	if _, err := set.parse(args, io.Discard); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- set.run(t.Context(), io.Discard, io.Discard) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// receive calls f with what a stream brings, until its end, and returns how much it was.
func receive[T any](stream interface{ Recv() (T, error) }, f func(T)) (n int, err error) {
	for {
		x, err := stream.Recv()
		if err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
		f(x)
	}
}

// TestKill holds that over kill -9 under load nothing acknowledged is lost, no URL is
// handed out twice within its hold, and no delay or block is broken.
func TestKill(t *testing.T) {
	t.Parallel()
	rounds := 5
	if *full {
		rounds = 100
	}
	dir := t.TempDir()
	var mu sync.Mutex
	acked, handed, fetched := map[string]bool{}, map[string]bool{}, 0
	served := map[string]time.Time{} // of each queue
	for round := range rounds {
		s := launch(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for stream := range 6 {
			wg.Go(func() {
				puts, err := s.PutURLs(ctx)
				if err != nil {
					return
				}
				wg.Go(func() {
					url := func(i int) string { return fmt.Sprintf("http://host%d/%d/%d/%d", i%50, round, stream, i) }
					for i := 0; puts.Send(discovered(url(i))) == nil; i++ {
						time.Sleep(200 * time.Microsecond)
					}
				})
				receive(puts, func(ack *pb.AckMessage) {
					mu.Lock()
					defer mu.Unlock()
					acked[ack.ID] = acked[ack.ID] || ack.Status == pb.AckMessage_OK
				})
			})
		}
		for range 2 {
			wg.Go(func() {
				for err := error(nil); err == nil; time.Sleep(10 * time.Millisecond) {
					s.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "host7", Time: 1 << 40})
					gets, failed := s.GetURLs(ctx,
						&pb.GetParams{MaxUrlsPerQueue: 1 << 20, MaxQueues: 5, DelayRequestable: 100_000})
					if failed != nil {
						return
					}
					seen := map[string]bool{}
					_, err = receive(gets, func(u *pb.URLInfo) {
						now := time.Now()
						mu.Lock()
						defer mu.Unlock()
						fetched++
						if handed[u.Url] {
							t.Errorf("round %d: %s is handed out twice within its hold", round, u.Url)
						}
						handed[u.Url] = true
						if !seen[u.Key] && now.Sub(served[u.Key]) < time.Second {
							t.Errorf("round %d: %s is served again after %v", round, u.Key, now.Sub(served[u.Key]))
						}
						seen[u.Key], served[u.Key] = true, now
						if u.Key == "host7" && round > 0 {
							t.Errorf("round %d: the blocked queue is served", round)
						}
					})
				}
			})
		}
		for begun := false; !begun; mu.Unlock() { // a busy machine takes longer
			time.Sleep(time.Duration(300+round*37%400) * time.Millisecond)
			mu.Lock()
			begun = fetched > 0
		}
		s.Process.Signal(syscall.SIGKILL)
		s.Wait()
		cancel()
		wg.Wait()
	}
	list := must(launch(t, dir).ListURLs(t.Context(), &pb.ListUrlParams{Size: 1 << 31}))
	maps.DeleteFunc(acked, func(_ string, ok bool) bool { return !ok })
	n := len(acked)
	must(receive(list, func(item *pb.URLItem) { delete(acked, item.GetKnown().GetInfo().GetUrl()) }))
	if len(acked) > 0 || n == 0 || fetched == 0 {
		t.Fatalf("%d of %d acknowledged URLs are lost, %d were handed out", len(acked), n, fetched)
	}
	t.Logf("%d kills, %d URLs acknowledged, %d handed out", rounds, n, fetched)
}

// TestKillLearned holds that over kill -9 under load every URL of a learned crawl whose put
// was acknowledged is known to the learner, with what was reported of it.
func TestKillLearned(t *testing.T) {
	t.Parallel()
	rounds := 5
	if *full {
		rounds = 100
	}
	dir := t.TempDir()
	var mu sync.Mutex
	acked, puts := map[string]int{}, 0 // of each URL the fetches that are acknowledged
	learn := []string{"-learn", "L:3600"}
	for round := range rounds {
		s := launch(t, dir, learn...)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for k := range 6 {
			wg.Go(func() {
				stream, err := s.PutURLs(ctx)
				if err != nil {
					return
				}
				wg.Go(func() {
					for i := 0; ; i++ { // one in ten is new; of the others most are known from earlier rounds
						url := fmt.Sprintf("http://host%d/0/%d/%d", i%50, k, i%1000)
						if i%10 == 0 {
							url = fmt.Sprintf("http://host%d/%d/%d/%d", i%50, 1+round, k, i)
						}
						item := discovered(url)
						info := item.GetDiscovered().Info
						info.CrawlID = "L"
						now := &pb.StringList{Values: []string{fmt.Sprint(time.Now().Unix())}}
						info.Metadata = map[string]*pb.StringList{"ephemera.items": now}
						item.Item = &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info}}
						if stream.Send(item) != nil {
							return
						}
						time.Sleep(200 * time.Microsecond)
					}
				})
				receive(stream, func(ack *pb.AckMessage) {
					mu.Lock()
					defer mu.Unlock()
					if ack.Status == pb.AckMessage_OK {
						acked[ack.ID]++
						puts++
					}
				})
			})
		}
		mu.Lock()
		before := puts
		mu.Unlock()
		for begun := false; !begun; mu.Unlock() { // a busy machine takes longer
			time.Sleep(time.Duration(300+round*37%400) * time.Millisecond)
			mu.Lock()
			begun = puts > before
		}
		s.Process.Signal(syscall.SIGKILL)
		s.Wait()
		cancel()
		wg.Wait()
	}
	s, lost := launch(t, dir, learn...), 0
	for url := range acked {
		item, err := s.GetURLStatus(t.Context(), &pb.URLStatusRequest{Url: url, CrawlID: "L"})
		why := item.GetKnown().GetInfo().GetMetadata()["ephemera.why"]
		if err != nil || !strings.Contains(fmt.Sprint(why), "items per hour") {
			lost++
		}
	}
	if lost > 0 || puts == 0 {
		t.Fatalf("the learner does not know %d of %d URLs that were acknowledged, in %d puts", lost, len(acked), puts)
	}
	t.Logf("%d kills, %d puts of %d learned URLs acknowledged", rounds, puts, len(acked))
}

// TestTerminate holds that after SIGTERM what was received is answered, and the
// command ends without an error, also with a client that is connected and answers nothing.
func TestTerminate(t *testing.T) {
	t.Parallel()
	s := launch(t, t.TempDir())
	puts := must(s.PutURLs(t.Context()))
	puts.Send(discovered("http://h/"))
	if ack := must(puts.Recv()); ack.Status != pb.AckMessage_OK {
		t.Fatal(ack)
	}
	silent := must(net.Dial("tcp", s.address))
	defer silent.Close()
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" // no settings
	must(silent.Write([]byte(preface)))
	must(silent.Read(make([]byte, 9))) // the service's settings
	began := time.Now()
	s.Process.Signal(syscall.SIGTERM)
	if _, err := puts.Recv(); status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v to end", took)
	}
}

// TestImportOfStandardInput: it is read where it has no name by which it can be opened, too, as on Windows.
func TestImportOfStandardInput(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	usual := os.Stdin
	os.Stdin = in
	t.Cleanup(func() {
		os.Stdin = usual
		in.Close()
	})
	fmt.Fprintln(out, `{"known":{"info":{"url":"http://a/"},"refetchableFromDate":"1"}}`)
	fmt.Fprintln(out, "?")
	out.Close()
	_, _, err = clitest.Call(t, run, "-import", "-", "-dir", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "standard input: line 2") ||
		!strings.Contains(err.Error(), "the 1 URLs before it are kept") {
		t.Errorf("the error is %v; want one of line 2 of standard input", err)
	}
}

// TestMoveBesideService holds that next to a service that runs the command says so and what
// to do, and that this exports what the service has.
func TestMoveBesideService(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := launch(t, dir)
	put(t, s, 0, 1000, 10, 0)
	out, later := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "later")
	for _, tt := range []struct{ args, want string }{
		{"-export out", "runs; to export from it, add -from and its -listen address: -export out -from " + s.address},
		{"-import in", "end it before -import, or add -to and its -listen address: -import in -to " + s.address},
		{"", "give another -dir"},
	} {
		_, _, err := clitest.Call(t, run, append(strings.Fields(tt.args), "-dir", dir, "-listen", s.address)...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v", tt.args, err)
		}
	}
	if _, _, err := clitest.Call(t, run, "-export", out, "-from", s.address); err != nil {
		t.Fatal(err)
	}
	s.Process.Signal(syscall.SIGTERM)
	s.Wait()
	if _, _, err := clitest.Call(t, run, "-export", later, "-dir", dir); err != nil {
		t.Fatal(err)
	}
	squeezed := func(path string) string { return strings.ReplaceAll(string(must(os.ReadFile(path))), " ", "") }
	was, is := squeezed(out), squeezed(later)
	if n := strings.Count(was, "\n"); n != 1000 || was != is {
		t.Errorf("%d URLs are exported from the service, and %d after it", n, strings.Count(is, "\n"))
	}
}

// TestLost holds that a service whose log was cut says what it found, and what it lost.
func TestLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := launch(t, dir)
	for i := range 10 {
		put(t, s, 100*i, 100*(i+1), 10, 0)
	}
	s.Process.Kill()
	s.Wait()
	logs := must(filepath.Glob(dir + "/*.log"))
	file := logs[len(logs)-1]
	if err := os.Truncate(file, must(os.Stat(file)).Size()-100); err != nil {
		t.Fatal(err)
	}
	s = launch(t, dir)
	_, page := fetch(s.page, "/")
	for _, want := range []string{"with 1000 URLs in 1 crawls; found are", "What can be done"} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %q in %s", want, page)
		}
	}
}

// TestTLS holds that with a certificate clients speak TLS.
func TestTLS(t *testing.T) {
	t.Parallel()
	other := httptest.NewTLSServer(nil) // has a certificate of 127.0.0.1
	defer other.Close()
	cert := other.TLS.Certificates[0]
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "certificate"), filepath.Join(dir, "key")
	write := func(file, name string, der []byte) {
		os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der}), 0o600)
	}
	write(certificate, "CERTIFICATE", cert.Certificate[0])
	write(key, "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(cert.PrivateKey)))
	address, page := freeAddress(), freeAddress()
	runHere(t, keepAlive, "-listen", address, "-http", page, "-dir", filepath.Join(dir, "s"),
		"-tls-cert", certificate, "-tls-key", key)
	roots := x509.NewCertPool()
	roots.AddCert(other.Certificate())
	client := pb.NewURLFrontierClient(dial(t, address, credentials.NewTLS(&tls.Config{RootCAs: roots})))
	must(client.GetActive(t.Context(), &pb.Local{}, grpc.WaitForReady(true)))
	if _, _, err := clitest.Call(t, run, "-export", "-", "-from", address, "-tls-cert", certificate); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct{ path, want string }{
		{"/", "There is no URL yet"},
		{"/metrics", "frontier_sync_seconds"},
		{"/health", ""},
	} {
		if status, body := fetch(page, tt.path); status != 200 || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s; want 200 and %q", tt.path, status, body, tt.want)
		}
	}
}

// fetch reads one of the service's pages.
func fetch(page, path string) (status int, body string) {
	r := must(http.Get("http://" + page + path))
	defer r.Body.Close()
	return r.StatusCode, string(must(io.ReadAll(r.Body)))
}

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
	t.Parallel()
	s := launch(t, t.TempDir())
	other := func(o ...grpc.DialOption) pb.URLFrontierClient { // on a connection of its own
		return pb.NewURLFrontierClient(dial(t, s.address, insecure.NewCredentials(), o...))
	}
	stats := func(crawl string) *pb.Stats {
		return must(s.GetStats(t.Context(), &pb.QueueWithinCrawlParams{CrawlID: crawl}))
	}
	hundred := &pb.GetParams{MaxQueues: 100, MaxUrlsPerQueue: 1}
	put(t, s, 0, 50_000, 10_000, 0)
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
	if take(t, s, 100, hundred); held > 10_000 {
		t.Errorf("a client that read one URL has %d", held)
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
		connect := func(_ context.Context, a string) (conn net.Conn, err error) {
			wire, err = net.Dial("tcp", a)
			return wire, err
		}
		c := dial(t, s.address, insecure.NewCredentials(), grpc.WithContextDialer(connect))
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
	take(t, s, 100, hundred)
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
	t.Parallel()
	address, alive := freeAddress(), keepalive.ServerParameters{Time: time.Second, Timeout: time.Second} // the shortest
	runHere(t, alive, "-listen", address, "-http", "", "-dir", t.TempDir())
	var silent atomic.Bool
	ended := make(chan bool, 1)
	connect := func(context.Context, string) (net.Conn, error) {
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
	}
	client := pb.NewURLFrontierClient(dial(t, address, insecure.NewCredentials(), grpc.WithContextDialer(connect)))
	puts := must(client.PutURLs(t.Context(), grpc.WaitForReady(true)))
	puts.Send(item("c", 1))
	must(puts.Recv())
	time.Sleep(3 * time.Second)
	if len(ended) > 0 {
		t.Fatal("a client that answers was ended")
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
	t.Parallel()
	_, port, _ := net.SplitHostPort(launch(t, t.TempDir()).address)
	c := exec.Command("mvn", "-q", "-B", "-f", "java/pom.xml",
		"-Dout="+t.TempDir(), "-DargLine=-Dfrontier.port="+port, "test")
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

// put puts the URLs from one number to another, known ones with a date if it is not 0.
func put(t *testing.T, client pb.URLFrontierClient, from, to, queues int, date uint64) {
	putIn(t, client, "", from, to, queues, date)
}

func putIn(t *testing.T, client pb.URLFrontierClient, crawl string, from, to, queues int, date uint64) {
	putEach(t, client, from, to, func(i int) *pb.URLItem {
		item := discovered(fmt.Sprintf("https://www.host%07d.example/articles/%08d.html", i%queues, i))
		info := item.GetDiscovered().Info
		info.Key, info.CrawlID = fmt.Sprintf("host%07d", i%queues), crawl
		if date > 0 {
			item.Item = &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info, RefetchableFromDate: date}}
		}
		return item
	})
}

// putEach puts items with their numbers.
func putEach(t *testing.T, client pb.URLFrontierClient, from, to int, item func(i int) *pb.URLItem) {
	const streams = 4
	var g sync.WaitGroup
	for k := range streams {
		puts := must(client.PutURLs(t.Context()))
		g.Go(func() {
			for i := from + k; i < to; i += streams {
				puts.Send(item(i)) // Recv has the error
			}
			puts.CloseSend()
		})
		g.Go(func() {
			must(receive(puts, func(ack *pb.AckMessage) {
				if ack.Status != pb.AckMessage_OK {
					t.Error(ack)
				}
			}))
		})
	}
	g.Wait()
}

// take gets so many URLs.
func take(t *testing.T, client pb.URLFrontierClient, want int, p *pb.GetParams) {
	t.Helper()
	if got := must(receive(must(client.GetURLs(t.Context(), p)), func(*pb.URLInfo) {})); got != want {
		t.Fatalf("%d URLs are handed out, not %d", got, want)
	}
}
