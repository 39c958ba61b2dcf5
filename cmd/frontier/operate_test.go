package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"ephemera/cmd/internal/clitest"
	pb "ephemera/live/frontier/urlfrontier"
)

// TestBackup: under load a signal, and a call, make copies of the state from which another
// service serves what was acknowledged before, and web pages make none.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir, backups := t.TempDir(), t.TempDir()
	s := launch(t, dir, "-backup", backups)
	put(t, s, 0, 1000, 10, 0)
	load := make(chan struct{})
	go func() {
		defer close(load)
		put(t, s, 1000, 20_000, 10, 0)
	}()
	s.Process.Signal(syscall.SIGUSR1)
	var copies []string
	for wait := 0; len(copies) == 0; wait++ {
		if time.Sleep(10 * time.Millisecond); wait > 3000 {
			t.Fatal("no copy appears after the signal")
		}
		copies, _ = filepath.Glob(backups + "/*/MANIFEST*")
	}
	post := func(origin string) (int, string) {
		r, _ := http.NewRequest("POST", "http://"+s.page+"/backup", nil)
		r.Header.Set("Origin", origin)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, strings.TrimSpace(string(body))
	}
	status, name := post("http://" + s.page)
	if status != 200 || filepath.Dir(name) != backups {
		t.Errorf("the call is answered with %d %q", status, name)
	}
	if status, _ := post("http://elsewhere.example"); status != 403 {
		t.Errorf("another page's call is answered with %d, want 403", status)
	}
	<-load
	names, _ := filepath.Glob(backups + "/*")
	if len(names) != 2 {
		t.Fatalf("there are the copies %q, want one of the signal and one of the call", names)
	}
	for _, name := range names {
		again := launch(t, name)
		n := must(again.GetStats(t.Context(), &pb.QueueWithinCrawlParams{})).Size
		if n < 1000 || n > 20_000 {
			t.Errorf("the copy %s has %d URLs; 1000 were acknowledged before", name, n)
		}
	}
}

// TestBackupAtTheEnd: a backup that was asked for before SIGTERM is waited for, and answered.
func TestBackupAtTheEnd(t *testing.T) {
	t.Parallel()
	backups, err := os.MkdirTemp("/dev/shm", "") // on another disk files are copied, which takes a while
	if err != nil {
		backups = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(backups) })
	s := launch(t, t.TempDir(), "-backup", backups)
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	put(t, s, 0, n, 100, 0)
	type answer struct {
		name string
		err  error
	}
	answered := make(chan answer)
	post := func() {
		r, err := http.Post("http://"+s.page+"/backup", "", nil)
		var name []byte
		if err == nil {
			name, err = io.ReadAll(r.Body)
			r.Body.Close()
		}
		answered <- answer{strings.TrimSpace(string(name)), err}
	}
	go post()
	for begun := []string{}; len(begun) == 0; begun, _ = filepath.Glob(backups + "/.unfinished-*") {
		select {
		case <-answered: // before it was seen to begin
			go post()
		default:
		}
	}
	s.Process.Signal(syscall.SIGTERM)
	a := <-answered
	if err := s.Wait(); err != nil || a.err != nil {
		t.Errorf("it ends with %v; the call is answered with %q, %v", err, a.name, a.err)
	}
	left, _ := filepath.Glob(backups + "/.unfinished-*")
	if _, err := os.Stat(a.name); err != nil || len(left) > 0 {
		t.Errorf("the copy: %v; unfinished are %q", err, left)
	}
}

// TestNoBackup: where there is no directory for backups the signal is answered in the log, and the service goes on.
func TestNoBackup(t *testing.T) {
	t.Parallel()
	c := clitest.Process(t, "-listen", freeAddress(), "-http", freeAddress(), "-dir", t.TempDir())
	log := must(c.StderrPipe())
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill() })
	defer time.AfterFunc(2*time.Minute, func() { c.Process.Kill() }).Stop()
	var said bool
	for lines := bufio.NewScanner(log); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.Contains(line, "serving"):
			c.Process.Signal(syscall.SIGUSR1)
		case strings.Contains(line, "-backup names no directory"):
			said = true
			c.Process.Signal(syscall.SIGTERM)
		}
	}
	if err := c.Wait(); err != nil || !said {
		t.Errorf("it ends with %v; the log has its answer: %v", err, said)
	}
}

// TestCheck: -check asks whether a service serves.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := launch(t, t.TempDir())
	if _, _, err := clitest.Call(t, run, "-check", s.page); err != nil {
		t.Errorf("of a service that serves it says %v", err)
	}
	s.Process.Kill()
	s.Wait()
	if _, _, err := clitest.Call(t, run, "-check", s.page); err == nil {
		t.Error("of one that was killed it says nothing")
	}
}

// TestLogJSON: with -log json each line of the log is JSON.
func TestLogJSON(t *testing.T) {
	t.Parallel()
	c := clitest.Process(t, "-listen", freeAddress(), "-http", freeAddress(), "-dir", t.TempDir(), "-log", "json")
	log := must(c.StderrPipe())
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Level, Msg, Package, Listen string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Level == "" || line.Package == "" {
			t.Fatalf("a line is %s: %v", lines.Text(), err)
		}
		if line.Msg == "serving" {
			return
		}
	}
	t.Fatal("it never serves: ", lines.Err())
}

// TestSyncFlag: with each way to sync the service keeps what it acknowledged over its end.
func TestSyncFlag(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"100ms", "every", "off"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := launch(t, dir, "-sync", how)
			put(t, s, 0, 1000, 10, 0)
			if syncs := s.metric("frontier_sync_seconds_count"); (syncs > 0) == (how == "off") {
				if time.Sleep(time.Second); how == "off" || s.metric("frontier_sync_seconds_count") == 0 {
					t.Errorf("it synced %v times", syncs)
				}
			}
			s.Process.Signal(syscall.SIGTERM)
			if err := s.Wait(); err != nil {
				t.Fatal(err)
			}
			s = launch(t, dir)
			if n := must(s.GetStats(t.Context(), &pb.QueueWithinCrawlParams{})).Size; n != 1000 {
				t.Errorf("%d URLs are there after the end, want 1000", n)
			}
		})
	}
}

// TestStoppedBefore: a signal that comes before the service serves ends it without an error.
func TestStoppedBefore(t *testing.T) {
	g := grpc.NewServer()
	g.GracefulStop()
	if err := serve(g, must(net.Listen("tcp", "127.0.0.1:0"))); err != nil {
		t.Error(err)
	}
}
