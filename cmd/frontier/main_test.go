package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/clitest"
	pb "ephemera/live/frontier/urlfrontier"
)

var full = flag.Bool("full", false, "kill the service a hundred times, not five, and measure it")

func TestMain(m *testing.M) {
	clitest.Main(m, func() {
		main()
		os.Exit(0)
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// freeAddress returns an address that nobody listens at.
func freeAddress() string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().String()
}

func dial(t *testing.T, address string, creds credentials.TransportCredentials, more ...grpc.DialOption) *grpc.ClientConn {
	conn := must(grpc.NewClient(address, append(more, grpc.WithTransportCredentials(creds))...))
	t.Cleanup(func() { conn.Close() })
	return conn
}

// service is the command in a process of its own, with a client.
type service struct {
	pb.URLFrontierClient
	*exec.Cmd
	address, page string
}

// launch starts the command on a directory and waits until it serves.
func launch(t *testing.T, dir string) *service {
	t.Helper()
	s := &service{address: freeAddress(), page: freeAddress()}
	s.Cmd = clitest.Process(t, "-listen", s.address, "-http", s.page, "-dir", dir)
	s.begin(t)
	return s
}

func (s *service) begin(t *testing.T) {
	t.Helper()
	s.Stderr = os.Stderr
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Process.Kill() })
	conn := dial(t, s.address, insecure.NewCredentials())
	s.URLFrontierClient = pb.NewURLFrontierClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	must(healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)))
}

// runHere runs the command in this process until the end of the test.
func runHere(t *testing.T, args ...string) {
	ended := make(chan error)
	go func() { ended <- run(t.Context(), args, io.Discard, io.Discard) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// receive calls f with what a stream brings, until its end.
func receive[T any](stream interface{ Recv() (T, error) }, f func(T)) error {
	for {
		x, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		f(x)
	}
}

// TestKill holds that over kill -9 under load nothing acknowledged is lost, no URL is
// handed out twice within its hold, and no delay or block is broken.
func TestKill(t *testing.T) {
	rounds := 5
	if *full {
		rounds = 100
	}
	dir := t.TempDir()
	var mu sync.Mutex
	acked, handed := map[string]bool{}, map[string]bool{}
	served := map[string]time.Time{} // of each queue
	fetched := 0
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
					for i := 0; puts.Send(discovered(fmt.Sprintf("http://host%d/%d/%d/%d", i%50, round, stream, i))) == nil; i++ {
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
				for ctx.Err() == nil {
					s.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "host7", Time: 1 << 40})
					gets, err := s.GetURLs(ctx, &pb.GetParams{MaxUrlsPerQueue: 1 << 20, MaxQueues: 5, DelayRequestable: 100_000})
					if err != nil {
						return
					}
					seen := map[string]bool{}
					err = receive(gets, func(u *pb.URLInfo) {
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
					if err != nil {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		time.Sleep(time.Duration(300+round*37%400) * time.Millisecond)
		s.Process.Signal(syscall.SIGKILL)
		s.Wait()
		cancel()
		wg.Wait()
	}
	list := must(launch(t, dir).ListURLs(t.Context(), &pb.ListUrlParams{Size: 1 << 31}))
	maps.DeleteFunc(acked, func(_ string, ok bool) bool { return !ok })
	n := len(acked)
	err := receive(list, func(item *pb.URLItem) { delete(acked, item.GetKnown().GetInfo().GetUrl()) })
	if err != nil || len(acked) > 0 || n == 0 || fetched == 0 {
		t.Fatalf("%d of %d acknowledged URLs are lost, %d were handed out: %v", len(acked), n, fetched, err)
	}
	t.Logf("%d kills, %d URLs acknowledged, %d handed out", rounds, n, fetched)
}

// TestTerminate holds that after SIGTERM what was received is answered, and the
// command ends without an error.
func TestTerminate(t *testing.T) {
	s := launch(t, t.TempDir())
	puts := must(s.PutURLs(t.Context()))
	puts.Send(discovered("http://h/"))
	if ack := must(puts.Recv()); ack.Status != pb.AckMessage_OK {
		t.Fatal(ack)
	}
	s.Process.Signal(syscall.SIGTERM)
	if _, err := puts.Recv(); status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "learn.toml")
	os.WriteFile(file, []byte("[crawl.a]\nper_hour = 1\nlongset = '1h'\n"), 0o600)
	for _, args := range [][]string{{"x"}, {"-tls-cert", "f"}, {"-learn", "a"}, {"-learn", "a:0"}, {"-learn", file}, {"-export", "a", "-import", "b"}} {
		err := run(t.Context(), args, io.Discard, io.Discard)
		if cli.Status(err) != cli.Usage {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestMove holds that a dump in the form of URLFrontier's client moves over whole,
// and that a bad line is named.
func TestMove(t *testing.T) {
	t.Chdir(t.TempDir())
	call := func(args ...string) (string, error) {
		out, _, err := clitest.Call(t, run, args...)
		return strings.ReplaceAll(out, " ", ""), err
	}
	lines := `{"known":{"info":{"url":"http://b/","key":"b","crawlID":"OTHER"}},"creationDate":"1600000000"}
{"known":{"info":{"url":"http://a/","key":"a","metadata":{"m":{"values":["1","2"]}},"crawlID":"DEFAULT"},"refetchableFromDate":"1700000000"},"creationDate":"1600000000"}
`
	want := strings.SplitAfter(lines, "\n")
	os.WriteFile("dump", []byte(lines), 0o600)
	must(call("-dir", "a", "-import", "dump"))
	for range 2 { // out, and over to another
		if got := must(call("-dir", "a", "-export", "-")); got != want[1]+want[0] {
			t.Fatal(got)
		}
		must(call("-dir", "a", "-export", "dump"))
		must(call("-dir", "b", "-import", "dump"))
	}
	os.WriteFile("dump", []byte(lines+"{\"known\":{}}\n"), 0o600)
	if _, err := call("-dir", "c", "-import", "dump"); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Fatal(err)
	}
}

// TestTLS holds that with a certificate clients speak TLS.
func TestTLS(t *testing.T) {
	other := httptest.NewTLSServer(nil) // has a certificate of 127.0.0.1
	defer other.Close()
	cert := other.TLS.Certificates[0]
	t.Chdir(t.TempDir())
	for name, der := range map[string][]byte{"CERTIFICATE": cert.Certificate[0], "PRIVATE KEY": must(x509.MarshalPKCS8PrivateKey(cert.PrivateKey))} {
		os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der}), 0o600)
	}
	address, page := freeAddress(), freeAddress()
	runHere(t, "-listen", address, "-http", page, "-dir", "s", "-tls-cert", "CERTIFICATE", "-tls-key", "PRIVATE KEY")
	roots := x509.NewCertPool()
	roots.AddCert(other.Certificate())
	client := pb.NewURLFrontierClient(dial(t, address, credentials.NewTLS(&tls.Config{RootCAs: roots})))
	must(client.GetActive(t.Context(), &pb.Local{}, grpc.WaitForReady(true)))
	for path, want := range map[string]string{"/": "There is no URL yet", "/metrics": "frontier_sync_seconds", "/health": ""} {
		if status, body := fetch(page, path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// fetch reads one of the service's pages.
func fetch(page, path string) (status int, body string) {
	r := must(http.Get("http://" + page + path))
	defer r.Body.Close()
	return r.StatusCode, string(must(io.ReadAll(r.Body)))
}
