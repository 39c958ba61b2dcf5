package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"ephemera/cmd/internal/clitest"
	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/store"
)

// TestFullDisk holds that on a disk without a free byte calls that write fail with a
// clear error, reading goes on, and so does writing when there is room; and that what
// was acknowledged is there after kill -9, and nothing else.
func TestFullDisk(t *testing.T) {
	out, err := exec.Command("unshare", "-rm", "true").CombinedOutput()
	if err != nil && os.Getenv("EPHEMERA_REQUIRE_ALL") == "" {
		t.Skipf("no disk can be mounted: %v %s", err, out)
	}
	t.Parallel()
	// The service runs twice on a disk of 64 MiB that nobody else sees.
	dir, address := t.TempDir(), freeAddress()
	c := clitest.Process(t, "-listen", address, "-http", "", "-dir", dir+"/s")
	const onSmallDisk = `mount -t tmpfs -o size=64m none "$0" && "$@"; "$@"`
	c.Args = append([]string{"unshare", "-rm", "sh", "-c", onSmallDisk, dir, c.Path}, c.Args[1:]...)
	c.Path, _ = exec.LookPath("unshare")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t.Cleanup(func() { syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	s := &service{Cmd: c, address: address}
	s.begin(t)

	acked, n := map[string]bool{}, 0
	put := func() pb.AckMessage_Status { // a URL with metadata that take as much on disk as in memory
		puts := must(s.PutURLs(t.Context()))
		defer puts.CloseSend()
		n++
		item := discovered(fmt.Sprintf("http://h%d/%d", n%100, n))
		data := make([]byte, 6000)
		rand.Read(data)
		long := &pb.StringList{Values: []string{base64.StdEncoding.EncodeToString(data)}}
		item.GetDiscovered().Info.Metadata = map[string]*pb.StringList{"m": long}
		puts.Send(item)
		ack := must(puts.Recv())
		if ack.Status == pb.AckMessage_OK {
			acked[ack.ID] = true
		}
		return ack.Status
	}
	reads := func() { // all that was acknowledged, and nothing else
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it may not start again
		defer cancel()
		list := must(s.ListURLs(ctx, &pb.ListUrlParams{Size: 1 << 30}, grpc.WaitForReady(true)))
		known := must(receive(list, func(item *pb.URLItem) {
			if url := item.GetKnown().GetInfo().GetUrl(); !acked[url] {
				t.Errorf("%s is known and was not acknowledged", url)
			}
		}))
		stats := must(s.GetStats(t.Context(), &pb.QueueWithinCrawlParams{}))
		if known != len(acked) || stats.Size != uint64(known) {
			t.Fatalf("%d URLs, %d in the statistics, %d acknowledged", known, stats.Size, len(acked))
		}
	}
	for range 100 {
		put()
	}
	filler, err := os.Create(fmt.Sprintf("/proc/%d/root%s/filler", c.Process.Pid, dir))
	for chunk := make([]byte, 4096); err == nil; {
		_, err = filler.Write(chunk)
	}
	filler.Close()
	time.Sleep(100 * time.Millisecond)
	for range 10 {
		if got := put(); got != pb.AckMessage_FAIL {
			t.Fatal(got)
		}
	}
	_, err = must(s.GetURLs(t.Context(), &pb.GetParams{})).Recv()
	_, failed := s.SetDelay(t.Context(), &pb.QueueDelayParams{})
	if status.Code(err) != codes.ResourceExhausted || status.Code(failed) != codes.ResourceExhausted {
		t.Fatal(err, failed)
	}
	reads()
	os.Remove(filler.Name())
	time.Sleep(100 * time.Millisecond)
	for put() == pb.AckMessage_OK { // until it is nearly full
	}
	if len(acked) < 1000 {
		t.Fatalf("the disk is full with %d URLs", len(acked))
	}
	reads()
	var pid int
	must(fmt.Sscan(string(must(os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.Process.Pid)))), &pid))
	syscall.Kill(pid, syscall.SIGKILL)
	s.conn.WaitForStateChange(t.Context(), connectivity.Ready) // the connection is known to be gone
	reads()
}

// TestSignalWhileOpening: a signal ends a start that reads its state for long.
func TestSignalWhileOpening(t *testing.T) {
	dir := must(os.MkdirTemp("", "")) // what opens the state waits until the end of the tests
	defer os.RemoveAll(dir)
	if err := must(store.Open(dir, nil)).Close(); err != nil {
		t.Fatal(err)
	}
	pipe := must(filepath.Glob(dir + "/OPTIONS*"))[0]
	if err := cmp.Or(os.Remove(pipe), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-dir", dir, "-listen", "127.0.0.1:0", "-http", ""}, io.Discard, io.Discard)
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it does not end")
	}
}
