package frontier

import (
	"cmp"
	"context"
	_ "embed"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"

	"ephemera/internal/build"
	"ephemera/live/schedule"
)

// metrics are what Prometheus reads. Those of puts and gets have the names that URLFrontier's
// own service gives them.
type metrics struct {
	registry   *prometheus.Registry
	urlsPut    prometheus.Counter
	discovered *prometheus.CounterVec // URLs put: true for discovered ones, false for known ones
	ignored    prometheus.Counter
	completed  prometheus.Counter
	urlsGot    prometheus.Counter
	puts, gets prometheus.Counter   // calls
	getting    prometheus.Histogram // seconds of a GetURLs
	putting    prometheus.Histogram // seconds from an item until its answer
	calls      *prometheus.HistogramVec
	behind     prometheus.Histogram // seconds between due time and hand-out
	syncs      prometheus.Histogram // seconds of a sync
	errors     prometheus.Counter
	mistakes   prometheus.Counter
}

func newMetrics(s *Server) *metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		totals{s},
	)
	register := promauto.With(registry)
	b := build.Read()
	register.NewGauge(prometheus.GaugeOpts{
		Name: "frontier_build_info", Help: "Which build of the program this is; the value is 1.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	}).Set(1)
	counter := func(name, help string) prometheus.Counter {
		return register.NewCounter(prometheus.CounterOpts{Name: "frontier_" + name, Help: help})
	}
	buckets := func(name, help string, from float64) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{
			Name: "frontier_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(from, 4, 10),
		}
	}
	return &metrics{
		registry: registry,
		urlsPut:  counter("putURLs_total", "URLs put."),
		discovered: register.NewCounterVec(prometheus.CounterOpts{
			Name: "frontier_putURLs_discovered_total", Help: "URLs put that were discovered (true) or known (false).",
		}, []string{"discovered"}),
		ignored:   counter("putURLs_ignored_total", "Discovered URLs put that were known already."),
		completed: counter("putURLs_completed_total", "URLs put that are not to be fetched again."),
		urlsGot:   counter("getURLs_total", "URLs handed out."),
		puts:      counter("putURLs_calls_total", "Calls of PutURLs and PutDiscovered."),
		gets:      counter("getURLs_calls_total", "Calls of GetURLs."),
		getting:   register.NewHistogram(buckets("getURLs_latency_seconds", "Duration of a GetURLs.", .0005)),
		putting: register.NewHistogram(buckets("putURLs_latency_seconds",
			"Time from when an item of a put came until its answer was sent.", .0005)),
		calls: register.NewHistogramVec(buckets("call_seconds", "Duration of other calls.", .0005),
			[]string{"call"}),
		behind: register.NewHistogram(buckets("behind_seconds",
			"Time between the due time of a URL and when it was handed out.", 1)),
		syncs: register.NewHistogram(buckets("sync_seconds",
			"Duration of a write to disk that is waited for.", .0001)),
		errors:   counter("errors_total", "Calls that the store refused."),
		mistakes: counter("learned_mistakes_total", "Puts in which something that the client said could not be read."),
	}
}

// Synced counts a write to disk; it is for [store.Options].
func (s *Server) Synced(took time.Duration) { s.metrics.syncs.Observe(took.Seconds()) }

// Interceptors count the calls, and how long those take that are no puts. After Close they refuse them.
func (s *Server) Interceptors() []grpc.ServerOption {
	count := func(method string, began time.Time) {
		switch name := path.Base(method); name {
		case "PutURLs", "PutDiscovered", "GetURLs": // have counts of their own
		default:
			s.metrics.calls.WithLabelValues(name).Observe(time.Since(began).Seconds())
		}
	}
	unary := func(
		ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
	) (any, error) {
		if info.Server == any(s) {
			if !s.underWay.TryRLock() {
				return nil, errClosing
			}
			defer s.underWay.RUnlock()
		}
		defer count(info.FullMethod, time.Now())
		if err := s.nodes.known(ctx); err != nil {
			return nil, err
		}
		return handle(ctx, req)
	}
	stream := func(
		srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler,
	) error {
		if srv == any(s) { // and no watch of the health, which ends with the connection
			if !s.underWay.TryRLock() {
				return errClosing
			}
			defer s.underWay.RUnlock()
		}
		defer count(info.FullMethod, time.Now())
		if err := s.nodes.known(stream.Context()); err != nil {
			return err
		}
		return handle(srv, stream)
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream)}
}

// totals reads the totals of each crawl when it is asked.
type totals struct{ s *Server }

// Describe implements prometheus.Collector. The names stand in Collect.
func (g totals) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (g totals) Collect(ch chan<- prometheus.Metric) {
	type kind struct {
		desc  *prometheus.Desc
		value prometheus.ValueType
	}
	kinds := map[string]kind{}
	tell := func(crawl, name string, v float64, help string) {
		k, ok := kinds[name]
		if !ok {
			k = kind{prometheus.NewDesc("frontier_"+name, help, []string{"crawl"}, nil), prometheus.GaugeValue}
			if strings.HasSuffix(name, "_total") {
				k.value = prometheus.CounterValue
			}
			kinds[name] = k
		}
		ch <- prometheus.MustNewConstMetric(k.desc, k.value, v, crawl)
	}
	for _, c := range g.s.crawls() {
		tell(c.Name, "queues", float64(c.Queues), "Queues.")
		tell(c.Name, "queues_due", float64(c.Ready),
			"Queues with a due URL that nothing keeps back but the number in process.")
		tell(c.Name, "urls_scheduled", float64(c.Scheduled),
			"URLs with a time to be fetched, those in process included.")
		tell(c.Name, "urls_in_process", float64(c.Held), "URLs that were handed out and not put back yet.")
		tell(c.Name, "urls_completed", float64(c.Completed), "URLs that are not to be fetched again.")
	}
	for _, l := range g.s.opt.Learned.Summaries(0) {
		tell(l.Crawl, "learned_price", l.Price,
			"What a fetch has to bring by the learner: items, weighted by their worth and age.")
		tell(l.Crawl, "learned_urls", float64(l.Sources), "URLs that are learned.")
		tell(l.Crawl, "learned_asked_total", float64(l.Asked), "Fetches that the learner asked for since the start.")
		tell(l.Crawl, "learned_fetches_total", float64(l.Fetched),
			"Fetches of learned URLs since the start of which the client put what they found.")
		tell(l.Crawl, "learned_empty_total", float64(l.Empty), "Those of them that found nothing new.")
		interval := l.Interval.Seconds()
		tell(l.Crawl, "learned_fixed_interval_seconds", interval,
			"Interval at which all learned URLs would be fetched with as many fetches as since the start.")
		if l.Pages() {
			tell(l.Crawl, "learned_fresh", l.Fresh, "Share of the copies that are as the page is, by the learner.")
			tell(l.Crawl, "learned_fixed_fresh", l.FixedFresh, "That share at the fixed interval, by the learner.")
			tell(l.Crawl, "learned_changes_total", float64(l.Changes), "Changes that fetches saw since the start.")
			tell(l.Crawl, "learned_missed_total", l.Missed,
				"Changes between two fetches since the start that were seen as one, by the learner.")
			tell(l.Crawl, "learned_fixed_missed", l.FixedMissed,
				"Share of the changes that the fixed interval would miss, by the learner.")
			tell(l.Crawl, "learned_pings_total", float64(l.Pings), "Pings since the start that were news.")
		} else {
			tell(l.Crawl, "learned_items_total", float64(l.Items), "Items found since the start that are no older.")
			tell(l.Crawl, "learned_delay_seconds", l.ClientDelay.Seconds(), "Their mean time until they were found.")
			tell(l.Crawl, "learned_fixed_delay_seconds", l.FixedDelay().Seconds(), "That time at the fixed interval.")
		}
	}
}

// crawlTotals are the totals of a crawl.
type crawlTotals struct {
	Name string
	schedule.Counts
	Ready int
}

// crawls returns the totals of the crawls by their names.
func (s *Server) crawls() (all []crawlTotals) {
	s.store.Settle() // what is not because the disk is nearly full is shown as it is
	s.store.View(func(sched *schedule.Schedule) {
		for _, name := range sched.Crawls() {
			all = append(all, crawlTotals{name, sched.Counts(name), sched.Ready(name)})
		}
	})
	slices.SortFunc(all, func(a, b crawlTotals) int { return cmp.Compare(a.Name, b.Name) })
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

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// HTTP returns the page, /metrics for Prometheus, /health, and /backup where there is a directory
// for it.
func (s *Server) HTTP() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if s.closing.Err() != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	if s.opt.Backups != "" {
		// No page elsewhere has a browser ask for a copy.
		mux.Handle("POST /backup", http.NewCrossOriginProtection().Handler(http.HandlerFunc(s.serveBackup)))
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		data := struct {
			Now      time.Time
			Inactive bool
			Full     bool // the disk
			Crawls   []crawlTotals
			Learned  []Summary
			Errors   []failedCall
		}{
			Now: s.now().UTC(), Inactive: s.inactive.Load(), Full: s.store.Full(),
			Crawls: s.crawls(), Learned: s.opt.Learned.Summaries(100),
		}
		s.failed.Lock()
		data.Errors = append(data.Errors, s.failed.last...)
		s.failed.Unlock()
		if err := pageTemplate.Execute(w, data); err != nil {
			s.opt.Log.Error("page", "error", err)
		}
	})
	return mux
}
