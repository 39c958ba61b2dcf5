package frontier

import (
	_ "embed"
	"html/template"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ephemera/live/schedule"
)

// metrics are what Prometheus reads.
type metrics struct {
	registry *prometheus.Registry
	puts     *prometheus.CounterVec // by what was answered
	gets     prometheus.Histogram   // seconds of a GetURLs
	behind   prometheus.Histogram   // seconds between due time and hand-out; its count is the URLs handed out
	syncs    prometheus.Histogram   // seconds of a sync
	errors   prometheus.Counter
}

func newMetrics(s *Server) *metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), gauges{s})
	register := promauto.With(registry)
	histogram := func(name, help string, from float64) prometheus.Histogram {
		return register.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(from, 4, 10)})
	}
	return &metrics{
		registry: registry,
		puts:     register.NewCounterVec(prometheus.CounterOpts{Name: "frontier_puts_total", Help: "URLs put, by what was answered."}, []string{"status"}),
		gets:     histogram("frontier_get_seconds", "Duration of GetURLs.", .0005),
		behind:   histogram("frontier_behind_seconds", "Time between the due time of a URL and when it was handed out.", 1),
		syncs:    histogram("frontier_sync_seconds", "Duration of a write to disk that is waited for.", .0001),
		errors:   register.NewCounter(prometheus.CounterOpts{Name: "frontier_errors_total", Help: "Calls that the store refused."}),
	}
}

// Synced counts a write to disk; it is for [store.Options].
func (s *Server) Synced(took time.Duration) { s.metrics.syncs.Observe(took.Seconds()) }

// gauges reads the totals of each crawl when it is asked.
type gauges struct{ s *Server }

// Describe implements prometheus.Collector. The names stand in Collect.
func (g gauges) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (g gauges) Collect(ch chan<- prometheus.Metric) {
	tell := func(crawl, name string, v float64, help string) {
		d := prometheus.NewDesc("frontier_"+name, help, []string{"crawl"}, nil)
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, crawl)
	}
	for _, c := range g.s.totals() {
		tell(c.Name, "queues", float64(c.Queues), "Queues.")
		tell(c.Name, "queues_due", float64(c.Ready), "Queues with a due URL that nothing keeps back but the number in process.")
		tell(c.Name, "urls_scheduled", float64(c.Scheduled), "URLs with a time to be fetched, those in process included.")
		tell(c.Name, "urls_in_process", float64(c.Held), "URLs that were handed out and not put back yet.")
		tell(c.Name, "urls_completed", float64(c.Completed), "URLs that are not to be fetched again.")
	}
	for _, l := range g.s.opt.Learned.Summaries(0) {
		tell(l.Crawl, "learned_price", l.Price, "What a fetch has to bring by the learner: items, weighted by their worth and age.")
		tell(l.Crawl, "learned_fetches", float64(l.Asked), "Fetches that the learner asked for since the start.")
		tell(l.Crawl, "learned_empty", float64(l.Empty), "Fetches of learned URLs since the start that found nothing new.")
	}
}

// crawlTotals are the totals of a crawl.
type crawlTotals struct {
	Name string
	schedule.Counts
	Ready int
}

func (s *Server) totals() (all []crawlTotals) {
	s.store.View(s.ms(), func(sched *schedule.Schedule) {
		for _, name := range sched.Crawls() {
			all = append(all, crawlTotals{name, sched.Counts(name), sched.Ready(name)})
		}
	})
	return all
}

// failures are the last errors, the newest last.
type failures struct {
	sync.Mutex
	last []failedCall
}

type failedCall struct {
	At    time.Time
	Error string
}

func (f *failures) add(at time.Time, err error) {
	f.Lock()
	defer f.Unlock()
	f.last = append(f.last[max(0, len(f.last)-19):], failedCall{at, err.Error()})
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// HTTP returns the page, /metrics for Prometheus, and /health.
func (s *Server) HTTP() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if s.closing.Err() != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		data := struct {
			Now      time.Time
			Inactive bool
			Crawls   []crawlTotals
			Learned  []Summary
			Errors   []failedCall
		}{Now: s.opt.Now().UTC(), Inactive: s.inactive.Load(), Crawls: s.totals(), Learned: s.opt.Learned.Summaries(100)}
		s.failed.Lock()
		data.Errors = append(data.Errors, s.failed.last...)
		s.failed.Unlock()
		if err := page.Execute(w, data); err != nil {
			s.opt.Log.Error("page", "error", err)
		}
	})
	return mux
}
