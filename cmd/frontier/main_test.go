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

// freeAddress returns an address that nobody listens at.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func dial(t *testing.T, address string, creds credentials.TransportCredentials, more ...grpc.DialOption) *grpc.ClientConn {
	conn, err := grpc.NewClient(address, append(more, grpc.WithTransportCredentials(creds))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// launch starts the command and waits until it serves.
func launch(t *testing.T, address string, args ...string) (*exec.Cmd, *grpc.ClientConn) {
	t.Helper()
	c := clitest.Process(t, append([]string{"-listen", address, "-http", ""}, args...)...)
	return c, begin(t, c, address)
}

// begin starts a process and waits until it serves.
func begin(t *testing.T, c *exec.Cmd, address string) *grpc.ClientConn {
	t.Helper()
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill() })
	conn := dial(t, address, insecure.NewCredentials())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	return conn
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
	dir, address := t.TempDir(), freeAddress(t)
	var mu sync.Mutex
	acked := map[string]bool{}
	handed := map[string]bool{}
	served := map[string]time.Time{} // of each queue
	fetched := 0
	for round := range rounds {
		c, conn := launch(t, address, "-dir", dir)
		client := pb.NewURLFrontierClient(conn)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for stream := range 6 {
			wg.Go(func() {
				puts, err := client.PutURLs(ctx)
				if err != nil {
					return
				}
				wg.Go(func() {
					for i := 0; ; i++ {
						if puts.Send(discovered(fmt.Sprintf("http://host%d/%d/%d/%d", i%50, round, stream, i))) != nil {
							return
						}
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
					client.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "host7", Time: 1 << 40})
					gets, err := client.GetURLs(ctx, &pb.GetParams{MaxUrlsPerQueue: 1 << 20, MaxQueues: 5, DelayRequestable: 100_000})
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
		c.Process.Signal(syscall.SIGKILL)
		c.Wait()
		cancel()
		wg.Wait()
		conn.Close()
	}
	_, conn := launch(t, address, "-dir", dir)
	list, err := pb.NewURLFrontierClient(conn).ListURLs(t.Context(), &pb.ListUrlParams{Size: 1 << 31})
	maps.DeleteFunc(acked, func(_ string, ok bool) bool { return !ok })
	n := len(acked)
	if err == nil {
		err = receive(list, func(item *pb.URLItem) { delete(acked, item.GetKnown().GetInfo().GetUrl()) })
	}
	if err != nil || len(acked) > 0 || n == 0 || fetched == 0 {
		t.Fatalf("%d of %d acknowledged URLs are lost, %d were handed out: %v", len(acked), n, fetched, err)
	}
	t.Logf("%d kills, %d URLs acknowledged, %d handed out", rounds, n, fetched)
}

// TestTerminate holds that after SIGTERM what was received is answered, and the
// command ends without an error.
func TestTerminate(t *testing.T) {
	c, conn := launch(t, freeAddress(t), "-dir", t.TempDir())
	puts, err := pb.NewURLFrontierClient(conn).PutURLs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	puts.Send(discovered("http://h/"))
	if ack, err := puts.Recv(); err != nil || ack.Status != pb.AckMessage_OK {
		t.Fatal(ack, err)
	}
	c.Process.Signal(syscall.SIGTERM)
	if _, err := puts.Recv(); status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
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
	room := t.TempDir()
	dump := filepath.Join(room, "dump")
	call := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), args, &out, io.Discard)
		return strings.ReplaceAll(out.String(), " ", ""), err
	}
	lines := `{"known":{"info":{"url":"http://b/","key":"b","crawlID":"OTHER"}},"creationDate":"1600000000"}
{"known":{"info":{"url":"http://a/","key":"a","metadata":{"m":{"values":["1","2"]}},"crawlID":"DEFAULT"},"refetchableFromDate":"1700000000"},"creationDate":"1600000000"}
`
	os.WriteFile(dump, []byte(lines), 0o600)
	if _, err := call("-dir", filepath.Join(room, "a"), "-import", dump); err != nil {
		t.Fatal(err)
	}
	for range 2 { // out, and over to another
		got, err := call("-dir", filepath.Join(room, "a"), "-export", "-")
		want := strings.SplitAfter(lines, "\n")
		if err != nil || got != want[1]+want[0] {
			t.Fatalf("%s %v", got, err)
		}
		if _, err := call("-dir", filepath.Join(room, "a"), "-export", dump); err != nil {
			t.Fatal(err)
		}
		if _, err := call("-dir", filepath.Join(room, "b"), "-import", dump); err != nil {
			t.Fatal(err)
		}
	}
	os.WriteFile(dump, []byte(lines+"{\"known\":{}}\n"), 0o600)
	if _, err := call("-dir", filepath.Join(room, "c"), "-import", dump); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Fatal(err)
	}
}

// TestTLS holds that with a certificate clients speak TLS.
func TestTLS(t *testing.T) {
	other := httptest.NewTLSServer(nil) // has a certificate of 127.0.0.1
	defer other.Close()
	cert := other.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	room, roots := t.TempDir(), x509.NewCertPool()
	pemCert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	roots.AppendCertsFromPEM(pemCert)
	certFile, keyFile := filepath.Join(room, "cert"), filepath.Join(room, "key")
	os.WriteFile(certFile, pemCert, 0o600)
	os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)

	ctx, stop := context.WithCancel(t.Context())
	ended, address, page := make(chan error), freeAddress(t), freeAddress(t)
	go func() {
		ended <- run(ctx, []string{"-listen", address, "-http", page, "-dir", filepath.Join(room, "s"), "-tls-cert", certFile, "-tls-key", keyFile}, io.Discard, io.Discard)
	}()
	client := pb.NewURLFrontierClient(dial(t, address, credentials.NewTLS(&tls.Config{RootCAs: roots})))
	if _, err := client.GetActive(t.Context(), &pb.Local{}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/": "There is no URL yet", "/metrics": "frontier_sync_seconds", "/health": ""} {
		r, err := http.Get("http://" + page + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %s %s", path, r.Status, body)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
