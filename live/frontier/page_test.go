package frontier

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/schedule"
)

func (s *service) metrics() string {
	w := httptest.NewRecorder()
	s.server.HTTP().ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/metrics", nil))
	return w.Body.String()
}

// TestMetrics holds that what Prometheus reads has the names and kinds of URLFrontier's own
// service, so that its dashboard shows this one, and that counts are right.
func TestMetrics(t *testing.T) {
	s := serve(t, LearnOptions{PerHour: 1})
	s.put(
		discovered("http://h/1"), discovered("http://h/1"),
		discovered("http://h/2"), known("http://h/2", 0), known("http://h/3", 7),
	)
	s.put(discovered("http://i/"), discovered(""))
	s.infos(&pb.GetParams{})
	s.infos(&pb.GetParams{})
	s.put(report("http://l/", 0, nil), report("http://m/", 0, []time.Time{s.server.now()}))
	s.stats("", "")
	page := s.metrics()
	for _, want := range []string{
		"# TYPE frontier_build_info gauge\nfrontier_build_info{goversion=\"go1.",
		"# TYPE frontier_putURLs_total counter\nfrontier_putURLs_total 9\n",
		"frontier_putURLs_calls_total 3\n",
		"# TYPE frontier_putURLs_discovered_total counter\n",
		"frontier_putURLs_discovered_total{discovered=\"true\"} 5\n",
		"frontier_putURLs_discovered_total{discovered=\"false\"} 4\n",
		"frontier_putURLs_ignored_total 1\n",
		"frontier_putURLs_completed_total 1\n",
		"frontier_putURLs_latency_seconds_count 9\n",
		"# TYPE frontier_getURLs_total counter\nfrontier_getURLs_total 3\n",
		"frontier_getURLs_calls_total 2\n",
		"frontier_getURLs_latency_seconds_sum ",
		"frontier_getURLs_latency_seconds_count 2\n",
		"frontier_call_seconds_count{call=\"GetStats\"} 1\n",
		"# TYPE frontier_urls_scheduled gauge\n",
		"frontier_urls_scheduled{crawl=\"DEFAULT\"} 3\n",
		"# TYPE frontier_learned_asked_total counter\n",
		"# TYPE frontier_learned_fetches_total counter\nfrontier_learned_fetches_total{crawl=\"L\"} 2\n",
		"# TYPE frontier_learned_empty_total counter\nfrontier_learned_empty_total{crawl=\"L\"} 1\n",
		"# TYPE frontier_learned_price gauge\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %q", want)
		}
	}
	for line := range strings.Lines(page) {
		var name, kind string
		if n, _ := fmt.Sscanf(line, "# TYPE %s %s", &name, &kind); n == 2 && strings.HasPrefix(name, "frontier_") {
			if strings.HasSuffix(name, "_total") != (kind == "counter") {
				t.Errorf("%s is a %s", name, kind)
			}
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// TestMetricsAreDocumented: the page of the frontier names each of its metrics, those of learned pages and of
// learned items included.
func TestMetricsAreDocumented(t *testing.T) {
	doc := string(must(os.ReadFile("../../docs/frontier.md")))
	for _, fetch := range []*pb.URLItem{
		report("http://h/", 0, []time.Time{time.Unix(start, 0)}),
		with("http://h/", 0, metaSignature, "a", metaStatus, "200"),
	} {
		s := serve(t, LearnOptions{PerHour: 1})
		s.put(fetch)
		s.infos(inCrawl("L"))
		s.stats("", "")
		for line := range strings.Lines(s.metrics()) {
			var name string
			if fmt.Sscanf(line, "# TYPE frontier_%s", &name); name == "" || name == "build_info" {
				continue
			}
			// Where several begin with the same word the page writes it once.
			_, last, _ := strings.Cut(name, "_")
			if !strings.Contains(doc, "`frontier_"+name) && !strings.Contains(doc, "`_"+name+"`") &&
				!strings.Contains(doc, "`_"+last+"`") && !strings.Contains(doc, "`_"+last+"{") {
				t.Errorf("there is no word of frontier_%s", name)
			}
		}
	}
}

// TestManyCrawls holds that metrics and page take a time in proportion to the crawls: when it
// grew with their square, 30 000 took half a minute and more.
func TestManyCrawls(t *testing.T) {
	s := serve(t)
	for i := range 30_000 {
		id := schedule.ID{Crawl: fmt.Sprint("crawl ", i), Key: "h", URL: "http://h/"}
		must(s.store.Put(id, start*1000, start*1000, nil))
	}
	began := time.Now()
	all := s.server.crawls()
	took := time.Since(began)
	if len(all) != 30_000 || all[0].Name != "crawl 0" || all[0].Scheduled != 1 || took > 10*time.Second {
		t.Errorf("%d crawls take %v, the first is %+v", len(all), took, all[0])
	}
	page, metrics := s.page(), s.metrics()
	n, m := strings.Count(page, "<td>crawl "), strings.Count(metrics, "frontier_queues_due{")
	if n != 30_000 || m != n {
		t.Errorf("the page has %d crawls, the metrics %d", n, m)
	}
}
