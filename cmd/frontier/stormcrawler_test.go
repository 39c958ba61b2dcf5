package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	pb "ephemera/live/frontier/urlfrontier"
)

var stormCrawlerPath = flag.String("stormcrawler", "", "`class path` of StormCrawler's core and urlfrontier, "+
	"Storm's client and server and what these need: run a topology with two frontiers, in two minutes")

// TestStormCrawlerNodes: a topology of StormCrawler with two spouts and two status bolts, grouped by
// host, crawls twelve hosts over two nodes. The seeds come to one of them. Each host is on its owner
// alone, each page is fetched once, each host has one gate, and what the topology puts need not be
// handed on.
func TestStormCrawlerNodes(t *testing.T) {
	if *stormCrawlerPath == "" {
		t.Skip("without -stormcrawler")
	}
	const (
		hosts, pages = 12, 20
		atOnce       = 5  // URLs of a host that are handed out together
		delay        = 15 // of a queue, in seconds; the crawl takes less than three of them
	)
	host := func(k int) string { return fmt.Sprint("127.0.1.", k+1) }
	c := newCluster(t, 2)
	_, port, _ := net.SplitHostPort(freeAddress())
	var mu sync.Mutex
	fetched, last := map[string]int{}, map[string]time.Time{} // by URL, by host
	web := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var i, k int
		if n, _ := fmt.Sscanf(r.URL.Path, "/%d", &i); n == 0 {
			http.NotFound(w, r)
			return
		}
		name, _, _ := strings.Cut(r.Host, ":")
		fmt.Sscanf(name, "127.0.1.%d", &k)
		mu.Lock()
		fetched[name+r.URL.Path]++
		last[name] = time.Now()
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<html><body><p>Page %d of %d.</p>", i, k)
		links := []struct{ k, i int }{{k - 1, 2*i + 1}, {k - 1, 2*i + 2}, {k % hosts, i}, {(k + 4) % hosts, 3 * i}}
		for _, next := range links {
			if next.i < pages {
				fmt.Fprintf(w, `<a href="http://%s:%s/%d">next</a>`, host(next.k), port, next.i)
			}
		}
		fmt.Fprint(w, "</body></html>")
	})
	for k := range hosts {
		l := must(net.Listen("tcp", net.JoinHostPort(host(k), port)))
		server := &http.Server{Handler: web}
		go server.Serve(l)
		t.Cleanup(func() { server.Close() })
	}

	must(c.nodes[0].SetDelay(t.Context(), &pb.QueueDelayParams{DelayRequestable: delay}))
	began := time.Now()
	seeds := must(c.nodes[0].PutURLs(t.Context()))
	for k := range hosts {
		seeds.Send(discovered(fmt.Sprintf("http://%s:%s/0", host(k), port)))
		must(seeds.Recv())
	}
	seeds.CloseSend()
	dir := t.TempDir()
	conf := filepath.Join(dir, "conf.yaml")
	os.WriteFile(conf, fmt.Appendf(nil, `config:
  urlfrontier.address: ["%s"]
  urlfrontier.delay.requestable: 36000
  urlfrontier.max.urls.per.bucket: %d
  urlfrontier.max.buckets: 100
  spout.min.delay.queries: 100
  fetcher.server.delay: 0.0
  fetcher.threads.per.queue: 4
  http.agent.name: "test"
  http.agent.email: "test@localhost"
  http.protocol.implementation: "org.apache.stormcrawler.protocol.okhttp.HttpProtocol"
  topology.kryo.register: [org.apache.stormcrawler.Metadata, org.apache.stormcrawler.persistence.Status]
`, strings.Join(c.names(), `", "`), atOnce), 0o600)
	classes := dir + string(filepath.ListSeparator) + *stormCrawlerPath
	if out, err := exec.Command("javac", "-cp", classes, "-d", dir,
		"../../live/frontier/testdata/stormcrawler/Topology.java").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	java := exec.Command("java", "-Xmx1g", "-cp", classes, "Topology", conf)
	java.Stdout = must(os.Create(filepath.Join(os.TempDir(), "stormcrawlernodes.log")))
	java.Stderr = java.Stdout
	stdin := must(java.StdinPipe())
	if err := java.Start(); err != nil {
		t.Fatal(err)
	}
	defer java.Wait()
	defer stdin.Close()

	all := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(fetched) == hosts*pages
	}
	for wait := 0; !all(); wait++ {
		if time.Sleep(100 * time.Millisecond); wait > 3000 {
			mu.Lock()
			t.Fatalf("%d of %d pages are fetched", len(fetched), hosts*pages)
		}
	}
	time.Sleep(5 * time.Second) // something may still be fetched again
	mu.Lock()
	defer mu.Unlock()
	for url, n := range fetched {
		if n > 1 {
			t.Errorf("%s is fetched %d times within its hold", url, n)
		}
	}
	for name, at := range last {
		if least := (pages/atOnce - 1) * delay * time.Second; at.Sub(began) < least {
			t.Errorf("%d pages of %s are fetched in %v; its gate allows that in %v", pages, name, at.Sub(began), least)
		}
	}
	if n := len(c.owned()); n != hosts*pages { // it looks at the owner of each
		t.Errorf("the nodes have %d URLs, want %d", n, hosts*pages)
	}
	streams := 0.
	for i, s := range c.nodes {
		stats := must(s.GetStats(t.Context(), &pb.QueueWithinCrawlParams{Local: true}))
		n := s.metric("frontier_putURLs_calls_total")
		t.Logf("node %d: %d queues, %d URLs, %v streams that put", i, stats.NumberOfQueues, stats.Size, n)
		if streams += n; stats.NumberOfQueues == 0 {
			t.Errorf("node %d has no host", i)
		}
	}
	if streams != 4 { // the seeds, what was handed on of them, and one of each status bolt
		t.Errorf("there were %v streams that put, want 4", streams)
	}
}
