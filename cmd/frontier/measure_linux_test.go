package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"ephemera/cmd/internal/clitest"
	pb "ephemera/live/frontier/urlfrontier"
)

var urls = flag.Int("urls", 10_000_000, "`number` of URLs that are measured")

var reference = flag.String("reference", "", "`jar` of URLFrontier's service, to measure it next to this one")

// side is a service that is measured.
type side struct {
	name  string
	start func(t *testing.T, dir string) *service
}

func here(sync string) side {
	return side{"-sync " + sync, func(t *testing.T, dir string) *service { return launch(t, dir, "-sync", sync) }}
}

// ofReference is URLFrontier's service with one of its stores, as its README starts it.
func ofReference(name, class string) side {
	return side{"reference " + name, func(t *testing.T, dir string) *service {
		s := &service{address: freeAddress()}
		_, port, _ := net.SplitHostPort(s.address)
		const service = "crawlercommons.urlfrontier.service."
		s.Cmd = exec.Command("java", "-Xmx2G", "-cp", *reference, service+"URLFrontierServer",
			"-h", "127.0.0.1", "-p", port, "implementation="+service+class, "rocksdb.path="+dir)
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Process.Kill() })
		s.URLFrontierClient = pb.NewURLFrontierClient(dial(t, s.address, insecure.NewCredentials()))
		must(s.GetActive(t.Context(), &pb.Local{}, grpc.WaitForReady(true)))
		return s
	}}
}

// used returns how much of the processors a service has taken, of which Linux counts hundredths of seconds.
func (s *service) used() time.Duration {
	text := string(must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process.Pid))))
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	var user, system int64
	must(fmt.Sscan(fields[11]+" "+fields[12], &user, &system))
	return time.Duration(user+system) * 10 * time.Millisecond
}

// TestMeasure prints the figures of docs/frontier.md.
func TestMeasure(t *testing.T) {
	if !*full {
		t.Skip("without -full")
	}
	t.Run("sides", measureSides)
	t.Run("queues", measureQueues)
	t.Run("others", measureOthers)
	t.Run("urls", measureURLs)
	t.Run("learned", measureLearned)
}

// measureSides prints what each side takes for 10⁵ URLs in 10³ queues, and for a call among 10⁵ queues, in turn.
// Each is warm, with as many URLs.
func measureSides(t *testing.T) {
	sides := []side{here("every"), here("100ms"), here("off")}
	if *reference != "" {
		sides = append(sides, ofReference("in memory", "memory.MemoryFrontierService"),
			ofReference("on RocksDB", "rocksdb.RocksDBService"))
	}
	const n, rounds = 100_000, 3
	what := []string{"put, discovered", "get", "put, known", "call"}
	took, used := map[string][]float64{}, map[string][]float64{} // by side and what
	for range rounds {
		for _, side := range sides {
			s := side.start(t, t.TempDir())
			measure := func(what string, n int, f func()) {
				began, before := time.Now(), s.used()
				f()
				at := side.name + what
				took[at] = append(took[at], time.Since(began).Seconds()/float64(n))
				used[at] = append(used[at], (s.used()-before).Seconds()/float64(n))
			}
			all := &pb.GetParams{DelayRequestable: 10_000, Item: &pb.GetParams_CrawlID{CrawlID: "warm"}}
			for _, crawl := range []string{"warm", "c"} {
				do := func(_ string, _ int, f func()) { f() }
				if crawl == "c" {
					do, all.Item = measure, &pb.GetParams_CrawlID{CrawlID: crawl}
				}
				do(what[0], n, func() { putIn(t, s, crawl, 0, n, 1000, 0) })
				do(what[1], n, func() { take(t, s, n, all) })
				do(what[2], n, func() { putIn(t, s, crawl, 0, n, 1000, math.MaxUint32) })
			}
			putIn(t, s, "many", 0, n, n, math.MaxUint32)
			for i := range 7 {
				putIn(t, s, "many", 100*i, 100*(i+1), n, 1) // those become due
				time.Sleep(100 * time.Millisecond)
				measure(what[3], 1, func() {
					take(t, s, 100, &pb.GetParams{
						DelayRequestable: 10_000, MaxUrlsPerQueue: 1, Item: &pb.GetParams_CrawlID{CrawlID: "many"}})
				})
			}
			s.end()
		}
	}
	fmt.Println("medians of time and of the processor, µs for a URL; for a call ms, and the processor's mean")
	for _, side := range sides {
		fmt.Print("| ", side.name)
		for _, what := range what {
			at := side.name + what
			if what == "call" {
				mean := 0.
				for _, u := range used[at] {
					mean += u / float64(len(used[at]))
				}
				fmt.Printf(" | %.3g, %.2g", 1e3*middle(took[at]), 1e3*mean)
				continue
			}
			fmt.Printf(" | %.3g, %.3g (%.3g to %.3g)", 1e6*middle(took[at]), 1e6*middle(used[at]),
				1e6*slices.Min(used[at]), 1e6*slices.Max(used[at]))
		}
		fmt.Println(" |")
	}
}

// measureQueues prints how long calls take among 10⁶ queues of one URL.
func measureQueues(t *testing.T) {
	const n, calls = 1_000_000, 200
	s := launch(t, t.TempDir())
	put(t, s, 0, n, n, math.MaxUint32)
	var took []float64
	for i := range calls {
		put(t, s, 100*i, 100*(i+1), n, 1) // those become due
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		take(t, s, 100, &pb.GetParams{DelayRequestable: 10_000, MaxUrlsPerQueue: 1})
		took = append(took, 1e3*time.Since(began).Seconds())
	}
	slices.Sort(took)
	fmt.Printf("10⁶ queues, 100 due: p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, %s\n",
		took[calls/2], took[calls*9/10], took[calls*99/100], s.end())
}

// measureOthers prints how long calls of others wait at most before, and while one takes a queue of 300 000 URLs,
// while as many holds are over, and while one asks for something else about them.
func measureOthers(t *testing.T) {
	const n = 300_000
	for _, queues := range []int{1, n} {
		s := launch(t, t.TempDir(), "-backup", t.TempDir())
		put(t, s, 0, n, queues, 0)
		putIn(t, s, "others", 0, 30_000, 30_000, 0)
		during := func(what string, f func()) { during(t, s, fmt.Sprintf("%d queues, %s", queues, what), f) }
		during("before", func() { time.Sleep(5 * time.Second) })
		all := &pb.GetParams{DelayRequestable: 10, Item: &pb.GetParams_CrawlID{}}
		during("GetURLs", func() { take(t, s, n, all) })
		time.Sleep(11 * time.Second) // nobody asks for anything until all holds are over
		during("holds that are over", func() {
			for must(s.GetStats(t.Context(), &pb.QueueWithinCrawlParams{})).InProcess > 0 {
				time.Sleep(10 * time.Millisecond)
			}
		})
		key, ctx := "host0000000", t.Context()
		during("BlockQueueUntil", func() { must(s.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: key, Time: 1})) })
		during("SetDelay of all", func() { must(s.SetDelay(ctx, &pb.QueueDelayParams{DelayRequestable: 1})) })
		during("CountURLs", func() { must(s.CountURLs(ctx, &pb.CountUrlParams{})) })
		during("ListURLs", func() {
			must(receive(must(s.ListURLs(ctx, &pb.ListUrlParams{Size: n})), func(*pb.URLItem) {}))
		})
		during("ListQueues", func() { must(s.ListQueues(ctx, &pb.Pagination{Size: n})) })
		during("/backup", func() { must(http.Post("http://"+s.page+"/backup", "", nil)).Body.Close() })
		during("SetActive twice", func() { // it does not keep the others from being asked
			must(s.SetActive(ctx, &pb.Active{}))
			must(s.SetActive(ctx, &pb.Active{State: true}))
		})
		during("PurgeURLs of none", func() { must(s.PurgeURLs(ctx, &pb.PurgeUrlParams{Days: 1})) })
		take(t, s, n, all) // which are held
		during("DeleteCrawl", func() { must(s.DeleteCrawl(ctx, &pb.DeleteCrawlMessage{Value: "DEFAULT"})) })
		s.end()
	}
}

// during prints how long calls of others wait while f runs.
func during(t *testing.T, s *service, what string, f func()) {
	ctx, end := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	longest := func(call string, do func(client pb.URLFrontierClient)) {
		client := pb.NewURLFrontierClient(dial(t, s.address, insecure.NewCredentials()))
		wg.Go(func() {
			var took []time.Duration
			for ctx.Err() == nil {
				began := time.Now()
				do(client)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			n := len(took)
			fmt.Printf("%s: %d %s, median %v, longest %v\n", what, n, call, took[n/2], took[n-1])
		})
	}
	longest("GetURLs of another crawl", func(client pb.URLFrontierClient) {
		p := &pb.GetParams{MaxQueues: 1, Item: &pb.GetParams_CrawlID{CrawlID: "others"}}
		must(receive(must(client.GetURLs(t.Context(), p)), func(*pb.URLInfo) {}))
	})
	longest("PutURLs of a URL", func(client pb.URLFrontierClient) {
		puts := must(client.PutURLs(t.Context()))
		puts.Send(item("put", int(time.Now().UnixNano())))
		puts.CloseSend()
		must(receive(puts, func(*pb.AckMessage) {}))
	})
	began := time.Now()
	f()
	fmt.Printf("%s: it takes %v\n", what, time.Since(began).Round(time.Millisecond))
	end()
	wg.Wait()
}

// measureURLs prints what many URLs in 10⁵ queues take, from when they are imported.
func measureURLs(t *testing.T) {
	const queues = 100_000
	dir := t.TempDir()
	c := clitest.Process(t, "-import", "-", "-dir", dir)
	c.Stderr = os.Stderr
	in := must(c.StdinPipe())
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	began, out := time.Now(), bufio.NewWriterSize(in, 1<<20)
	for i := range *urls {
		fmt.Fprintf(out, `{"known":{"info":{"url":"https://www.host%07d.example/articles/%08d.html","key":"host%07d",`+
			`"crawlID":"DEFAULT"},"refetchableFromDate":"%d"}}`+"\n", i%queues, i, i%queues, 1_700_000_000+i/1000)
		if i%(*urls/10) == *urls/10-1 {
			fmt.Printf("%d URLs are sent after %v\n", i+1, time.Since(began).Round(time.Second))
		}
	}
	if err := errors.Join(out.Flush(), in.Close(), c.Wait()); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("imported with %v of the processor, at most %d MB\n", (c.ProcessState.UserTime() +
		c.ProcessState.SystemTime()).Round(time.Second), c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss>>10)
	began = time.Now()
	s := launch(t, dir)
	fmt.Printf("started in %v\n", time.Since(began).Round(100*time.Millisecond))
	calls := func(what string, inProcess uint32) {
		var took []float64
		for range 100 {
			began := time.Now()
			take(t, s, 100, &pb.GetParams{DelayRequestable: 10_000, MaxQueues: 100, MaxUrlsPerQueue: inProcess})
			took = append(took, 1e3*time.Since(began).Seconds())
		}
		fmt.Printf("%s, 100 URLs of 100 queues: p50 %.1f ms\n", what, middle(took))
	}
	calls("first time", 1)
	take(t, s, queues-100*100, &pb.GetParams{DelayRequestable: 10_000, MaxUrlsPerQueue: 1})
	for _, puts := range []struct {
		what string
		from int
		date uint64
	}{{"known", *urls / 2, math.MaxUint32}, {"discovered", *urls, 0}} {
		began, before := time.Now(), s.used()
		put(t, s, puts.from, puts.from+queues, queues, puts.date)
		fmt.Printf("put, %s: %v, %v of the processor\n", puts.what, time.Since(began)/queues, (s.used()-before)/queues)
	}
	time.Sleep(3 * time.Second) // until delays are over
	calls("again", 2)
	fmt.Println("at most", s.end())
}

// measureLearned prints what learned URLs in 5000 queues take, of which some fetches were reported.
func measureLearned(t *testing.T) {
	for _, said := range []string{"signature", "ephemera.items"} {
		dir := t.TempDir()
		learn := []string{"-learn", fmt.Sprint("c:", *urls/24), "-sync", "off"}
		s := launch(t, dir, learn...)
		for round := range 3 {
			now := time.Now().Unix()
			putEach(t, s, 0, *urls, func(i int) *pb.URLItem {
				url := fmt.Sprintf("https://www.host%07d.example/articles/%08d.html", i%5000, i)
				values := &pb.StringList{}
				for k := range 1 + i%4 {
					values.Values = append(values.Values, fmt.Sprint(now-int64(3600*(i%7+10*k))))
				}
				return &pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: &pb.URLInfo{
					Url: url, Key: fmt.Sprintf("host%07d", i%5000), CrawlID: "c",
					Metadata: map[string]*pb.StringList{said: values},
				}}}}
			})
			if round < 2 {
				time.Sleep(time.Minute) // an epoch
			}
		}
		s.Process.Signal(syscall.SIGTERM)
		s.Wait()
		began := time.Now()
		s = launch(t, dir, learn...)
		took, used := time.Since(began), s.used()
		time.Sleep(5 * time.Second)
		fmt.Printf("%d URLs with %s: started in %v, with %v of the processor, at most %s\n",
			*urls, said, took.Round(100*time.Millisecond), used.Round(100*time.Millisecond), s.end())
	}
}

func middle(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// end ends a process and returns how much memory it held at most.
func (s *service) end() string {
	s.Process.Kill()
	s.Wait()
	return fmt.Sprintf("%d MB", s.ProcessState.SysUsage().(*syscall.Rusage).Maxrss>>10)
}
