package frontier

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
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
	"Storm's client and server and what these need: run a topology over two weeks, in ten minutes")

var scrapyPython = flag.String("scrapy", "", "`python` with Scrapy and the wheel of python/frontier: "+
	"run a spider over two weeks, in ten minutes")

var fast = flag.Duration("in", 10*time.Minute, "`time` in which the two weeks pass; more for a busy machine, "+
	"where a crawler is late")

// lines returns what the page of the frontier has its readers add to a file of StormCrawler's
// archetype: the lines of the block that follows a text.
func lines(t *testing.T, after string) string {
	page := string(must(os.ReadFile("../../docs/frontier.md")))
	_, rest, ok := strings.Cut(page, after)
	_, rest, _ = strings.Cut(rest, "```")
	_, rest, _ = strings.Cut(rest, "\n")
	block, _, _ := strings.Cut(rest, "```")
	if !ok || block == "" {
		t.Fatalf("docs/frontier.md has no lines after %q", after)
	}
	return block
}

// TestStormCrawler: StormCrawler with the lines of docs/frontier.md, and nothing else of this
// service, keeps more copies of 300 pages fresh than a fixed interval and its own adaptive
// scheduler with as many fetches. Two weeks pass in the time of -in.
func TestStormCrawler(t *testing.T) {
	if *stormCrawlerPath == "" {
		t.Skip("without -stormcrawler")
	}
	crawlFast(t, func(address, dir string) (end func()) {
		host, port, _ := net.SplitHostPort(address)
		config := "config:\n" + strings.Replace(lines(t, "`crawler-conf.yaml`"), "news", "L", 1)
		// What the test needs, as its clock is fast and its site one host.
		config += fmt.Sprintf(`
  urlfrontier.host: %s
  urlfrontier.port: %s
  urlfrontier.delay.requestable: 36000
  urlfrontier.max.urls.per.bucket: 50
  spout.min.delay.queries: 50
  fetcher.server.delay: 0.0
  fetcher.threads.per.queue: 4
  http.agent.name: "test"
  http.agent.email: "test@localhost"
  http.protocol.implementation: "org.apache.stormcrawler.protocol.okhttp.HttpProtocol"
  parsefilters.config.file: "parsefilters.json"
  topology.kryo.register: [org.apache.stormcrawler.Metadata, org.apache.stormcrawler.persistence.Status]
`, host, port)
		writeFile(t, dir, "parsefilters.json", fmt.Sprintf(`{"org.apache.stormcrawler.parse.ParseFilters": [%s]}`,
			strings.TrimSuffix(strings.TrimSpace(lines(t, "`parsefilters.json`")), ",")))
		classes := dir + string(filepath.ListSeparator) + *stormCrawlerPath
		if out, err := exec.Command("javac", "-cp", classes, "-d", dir,
			"testdata/stormcrawler/Topology.java").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		java := exec.Command("java", "-Xmx1g", "-cp", classes, "Topology", writeFile(t, dir, "conf.yaml", config))
		java.Stdout = must(os.Create(filepath.Join(os.TempDir(), "stormcrawler.log")))
		java.Stderr = java.Stdout
		stdin := must(java.StdinPipe())
		if err := java.Start(); err != nil {
			t.Fatal(err)
		}
		return func() {
			stdin.Close()
			java.Wait()
		}
	})
}

// TestScrapy: the same for Scrapy with the three settings of docs/frontier.md.
func TestScrapy(t *testing.T) {
	if *scrapyPython == "" {
		t.Skip("without -scrapy")
	}
	crawlFast(t, func(address, dir string) (end func()) {
		settings := strings.NewReplacer("127.0.0.1:7071", address, "news", "L").Replace(lines(t, "In the settings:"))
		// What the test needs, as its clock is fast: a hold of ten hours, and to look for URLs often.
		spider := writeFile(t, dir, "pages.py", `import scrapy
from scrapy.core.engine import ExecutionEngine

ExecutionEngine._SLOT_HEARTBEAT_INTERVAL = 0.05


class Pages(scrapy.Spider):
    name = "pages"

    def parse(self, response):
        pass
`)
		writeFile(t, dir, "settings.py", settings+"\nFRONTIER_HOLD = 36000\nTELNETCONSOLE_ENABLED = False\n"+
			"LOG_LEVEL = \"WARNING\"\nTWISTED_REACTOR = \"twisted.internet.asyncioreactor.AsyncioSelectorReactor\"\n")
		scrapy := exec.Command(*scrapyPython, "-m", "scrapy", "runspider", spider)
		scrapy.Dir, scrapy.Stderr = dir, os.Stderr
		scrapy.Env = append(os.Environ(), "SCRAPY_SETTINGS_MODULE=settings", "PYTHONPATH="+dir)
		if err := scrapy.Start(); err != nil {
			t.Fatal(err)
		}
		return func() {
			scrapy.Process.Kill()
			scrapy.Wait()
		}
	})
}

func writeFile(t *testing.T, dir, name, text string) string {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// crawlFast holds that a crawler which begin starts with the address of a frontier, and a directory
// of its own, keeps more copies of 300 pages fresh than a fixed interval and StormCrawler's adaptive
// scheduler with as many fetches. Two weeks pass in the time of -in.
func crawlFast(t *testing.T, begin func(address, dir string) (end func())) {
	faster := twoWeeks * 3600 / fast.Seconds()
	began := time.Now()
	now := func() float64 { return time.Since(began).Seconds() * faster / 3600 } // hours
	var mu sync.Mutex
	w := newWeb(9001, site)
	web := httptest.NewServer(http.HandlerFunc(func(r http.ResponseWriter, q *http.Request) {
		var i int
		if n, _ := fmt.Sscanf(q.URL.Path, "/%d", &i); n == 0 {
			http.NotFound(r, q)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		at := now()
		if at < twoWeeks {
			w.fetch(i, at)
		}
		r.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(r, "<html><body><p>Version %d of page %d.</p></body></html>", w.state(i, at), i)
	}))
	defer web.Close()

	s := serve(t, LearnOptions{PerHour: pagesHour})
	for i := range pageCount {
		s.put(discoveredInfo(&pb.URLInfo{Url: fmt.Sprintf("%s/%d", web.URL, i), CrawlID: "L"}))
	}
	defer begin(s.address, t.TempDir())()
	for fetched := 0; fetched == 0; mu.Unlock() { // it takes a while to begin
		time.Sleep(10 * time.Millisecond)
		mu.Lock()
		if fetched = w.fetches; fetched == 0 {
			began = time.Now()
		}
	}
	for tick := time.Tick(50 * time.Millisecond); now() < twoWeeks; <-tick {
		s.clock.Store(start*1000 + int64(now()*3.6e6))
		s.server.opt.Learned.Advance()
	}
	said := s.server.opt.Learned.Summaries(0)[0]
	mu.Lock()
	defer mu.Unlock()
	fixed, adaptive := newWeb(9001, site), newWeb(9001, site)
	again := w.fetches - pageCount
	fixed.byRule(again, func(int, int) float64 { return pageCount * twoWeeks / float64(again) })
	adaptive.byRule(again, adaptiveRule())
	t.Logf("crawler %v\nfixed %v\nadaptive %v\n%+v\n%s", w, fixed, adaptive, said, s.stats("", "L"))
	if most := int(pagesHour * twoWeeks); again > most || w.fetches != fixed.fetches {
		t.Errorf("%d fetches after the first %d, of %d that the budget allows; by a fixed interval %d in all",
			again, pageCount, most, fixed.fetches)
	}
	if got := w.share(); got < fixed.share() || got < adaptive.share() {
		t.Error("the crawler is not ahead")
	}
}
