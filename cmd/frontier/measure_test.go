package main

import (
	"fmt"
	"math"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	pb "ephemera/live/frontier/urlfrontier"
)

// memory ends a process and returns how much it held at most.
func memory(c *exec.Cmd) string {
	c.Process.Kill()
	c.Wait()
	return fmt.Sprintf("%d MB", c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss>>10)
}

// fill puts URLs into queues, known ones with a date if it is not 0.
func fill(t *testing.T, client pb.URLFrontierClient, queues, urls int, date uint64) {
	var g errgroup.Group
	const streams = 4
	for k := range streams {
		g.Go(func() error {
			put(t, client, urls*k/streams, urls*(k+1)/streams, queues, date)
			return nil
		})
	}
	g.Wait()
}

// put puts the URLs from one number to another.
func put(t *testing.T, client pb.URLFrontierClient, from, to, queues int, date uint64) {
	puts, err := client.PutURLs(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	go func() {
		for i := from; i < to; i++ {
			info := &pb.URLInfo{Url: fmt.Sprintf("https://www.host%07d.example/articles/%08d.html", i%queues, i), Key: fmt.Sprintf("host%07d", i%queues)}
			item := &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: info}}}
			if date > 0 {
				item.Item = &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info, RefetchableFromDate: date}}
			}
			if puts.Send(item) != nil {
				return // Recv has the error
			}
		}
		puts.CloseSend()
	}()
	err = receive(puts, func(ack *pb.AckMessage) {
		if ack.Status != pb.AckMessage_OK {
			t.Error(ack)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func take(t *testing.T, client pb.URLFrontierClient, p *pb.GetParams) (n int) {
	gets, err := client.GetURLs(t.Context(), p)
	if err == nil {
		err = receive(gets, func(*pb.URLInfo) { n++ })
	}
	if err != nil {
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
		page := freeAddress(t)
		_, conn := launch(t, freeAddress(t), "-dir", t.TempDir(), "-http", page)
		client := pb.NewURLFrontierClient(conn)
		const n = 100_000
		report := func(what string, f func()) {
			const cpu = "process_cpu_seconds_total"
			began, used := time.Now(), metric(t, page, cpu)
			f()
			spent := time.Since(began).Seconds()
			fmt.Printf("%s: %.0f/s, %.1f µs CPU each\n", what, n/spent, 1e6*(metric(t, page, cpu)-used)/n)
		}
		report("put", func() { fill(t, client, 1000, n, 0) })
		report("get", func() {
			if got := take(t, client, &pb.GetParams{DelayRequestable: 1000}); got != n {
				t.Fatal(got)
			}
		})
		report("put known", func() { fill(t, client, 1000, n, 1) })
	})
	t.Run("queues", func(t *testing.T) {
		c, conn := launch(t, freeAddress(t), "-dir", t.TempDir())
		client := pb.NewURLFrontierClient(conn)
		fill(t, client, 1_000_000, 1_000_000, math.MaxUint32)
		var ms []float64
		for i := range 1000 {
			put(t, client, 100*i, 100*(i+1), 1_000_000, 1) // those become due
			time.Sleep(50 * time.Millisecond)
			began := time.Now()
			if got := take(t, client, &pb.GetParams{DelayRequestable: 10_000, MaxUrlsPerQueue: 1}); got != 100 {
				t.Fatal(got)
			}
			ms = append(ms, time.Since(began).Seconds()*1000)
		}
		slices.Sort(ms)
		fmt.Printf("1e6 queues, 100 due: p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, at most %.1f ms, %s\n", ms[500], ms[900], ms[990], ms[999], memory(c))
	})
	t.Run("urls", func(t *testing.T) {
		dir := t.TempDir()
		c, conn := launch(t, freeAddress(t), "-dir", dir)
		fill(t, pb.NewURLFrontierClient(conn), 100_000, 10_000_000, 0)
		fmt.Println("1e7 URLs in 1e5 queues:", memory(c))
		began := time.Now()
		c, _ = launch(t, freeAddress(t), "-dir", dir)
		fmt.Println("started again:", time.Since(began).Round(time.Second), memory(c))
	})
}
