package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	pb "ephemera/live/frontier/urlfrontier"
)

// cpu returns how long a process has computed.
func cpu(pid int) time.Duration {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(data)[strings.LastIndexByte(string(data), ')')+1:])
	var user, system int64
	fmt.Sscan(f[11], &user)
	fmt.Sscan(f[12], &system)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// memory returns the largest resident size of a process so far.
func memory(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	size, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(size)
}

// fill puts URLs into queues, known ones with a date if it is not 0.
func fill(t *testing.T, client pb.URLFrontierClient, queues, urls int, date uint64) {
	var g errgroup.Group
	const streams = 4
	for k := range streams {
		g.Go(func() error {
			puts, err := client.PutURLs(t.Context())
			if err != nil {
				return err
			}
			g.Go(func() error {
				for i := k; i < urls; i += streams {
					info := &pb.URLInfo{Url: fmt.Sprintf("https://www.host%07d.example/articles/%08d.html", i%queues, i), Key: fmt.Sprintf("host%07d", i%queues)}
					item := &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: info}}}
					if date > 0 {
						item.Item = &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info, RefetchableFromDate: date}}
					}
					if err := puts.Send(item); err != nil {
						return err
					}
				}
				return puts.CloseSend()
			})
			for {
				ack, err := puts.Recv()
				if err == io.EOF {
					return nil
				}
				if err != nil || ack.Status != pb.AckMessage_OK {
					return fmt.Errorf("%v %w", ack, err)
				}
			}
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, client pb.URLFrontierClient, p *pb.GetParams) (n int) {
	gets, err := client.GetURLs(t.Context(), p)
	for err == nil {
		if _, err = gets.Recv(); err == nil {
			n++
		}
	}
	if err != io.EOF {
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
		address := freeAddress(t)
		c, conn := launch(t, address, "-dir", t.TempDir())
		client := pb.NewURLFrontierClient(conn)
		const n = 100_000
		report := func(what string, f func()) {
			began, used := time.Now(), cpu(c.Process.Pid)
			f()
			fmt.Printf("%s: %.0f/s, %.1f µs CPU each\n", what, n/time.Since(began).Seconds(), float64((cpu(c.Process.Pid)-used).Microseconds())/n)
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
		fill(t, client, 100, 100, 1)
		client.SetDelay(t.Context(), &pb.QueueDelayParams{})
		var ms []float64
		for range 100 {
			time.Sleep(1100 * time.Millisecond)
			began := time.Now()
			if got := take(t, client, &pb.GetParams{DelayRequestable: 1, MaxUrlsPerQueue: 1}); got != 100 {
				t.Fatal(got)
			}
			ms = append(ms, time.Since(began).Seconds()*1000)
		}
		slices.Sort(ms)
		fmt.Printf("1e6 queues, 100 due: p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, %s\n", ms[50], ms[90], ms[99], memory(c.Process.Pid))
	})
	t.Run("urls", func(t *testing.T) {
		dir := t.TempDir()
		c, conn := launch(t, freeAddress(t), "-dir", dir)
		fill(t, pb.NewURLFrontierClient(conn), 100_000, 10_000_000, 0)
		fmt.Println("1e7 URLs in 1e5 queues:", memory(c.Process.Pid))
		c.Process.Kill()
		c.Wait()
		began := time.Now()
		c, _ = launch(t, freeAddress(t), "-dir", dir)
		fmt.Println("started again:", time.Since(began).Round(time.Second), memory(c.Process.Pid))
	})
}
