package crawl

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ephemera/live/feed"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"clock":   func(t time.Time) string { return t.UTC().Format("2 Jan 15:04") },
	"minutes": minutes,
}).Parse(pageText))

// minutes says a duration in a unit that suits it.
func minutes(d time.Duration) string {
	switch {
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return fmt.Sprintf("%.0f days", d.Hours()/24)
}

// feedsPerPage are shown at once.
const feedsPerPage = 100

// view is what the page shows.
type view struct {
	Now       time.Time
	PerHour   float64
	FileError error
	Feeds     int
	Waiting   int // feeds without a look so far
	Today     *day
	Delays    []delayRow
	Latest    []latestRow
	Rows      []feedRow
	Failures  []feedRow
	From, To  int
	Before    int // −1 for none
	Next      int
	One       *feedRow
	Week      []cell
}

type latestRow struct {
	found
	Name string
}

// feedRow is what is thought of a feed.
type feedRow struct {
	*record
	URL      string
	Name     string
	Worth    float64
	PerDay   float64
	HalfLife time.Duration
	Due      time.Time
	Reason   string
}

// cell is an hour of the week in a picture.
type cell struct {
	X, Y    int
	Opacity string
	Label   string
}

// row says what is thought of a feed, and why it is looked at when.
func (c *Crawler) row(address string) feedRow {
	r := *c.feeds[address]
	row := feedRow{record: &r, URL: address, Name: cmp.Or(r.Title, address), Worth: c.listed[address].Worth}
	if r.Gone {
		row.Reason = "gone: it is not asked for again"
		return row
	}
	b, err := c.learner.Belief(address)
	if err != nil {
		return row
	}
	row.PerDay, row.HalfLife = b.Items*24, b.HalfLife
	switch free := c.free(&r); {
	case r.held:
		row.Due, row.Reason = c.opt.Now(), "it is being asked for"
	case r.Failures > 0 && r.NotBefore.After(c.opt.Now()):
		row.Due, row.Reason = free, cmp.Or(r.Why, "it failed")
	case r.Last.IsZero() && r.Failures == 0:
		row.Due, row.Reason = b.Due, "it was not looked at yet"
	case !b.Due.IsZero() && b.Due.After(free):
		row.Due, row.Reason = b.Due, "what is thought to wait is worth a look then"
		if !b.Due.Before(r.Last.Add(c.opt.Longest - time.Hour)) {
			row.Reason = "it has waited for the longest interval then"
		}
	default:
		row.Due, row.Reason = free, cmp.Or(r.Why, "no sooner than the shortest interval")
		if r.NotBefore.Before(free) {
			row.Reason = "its server asks to wait"
		}
	}
	return row
}

// view returns what the page shows: the feeds from a number on, or one.
func (c *Crawler) view(from int, one string) *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := &view{Now: c.opt.Now(), PerHour: c.opt.PerHour, FileError: c.fileErr, Feeds: len(c.listed), Before: -1}
	if _, in := c.listed[one]; in {
		row := c.row(one)
		v.One, v.Week = &row, c.week(one)
		return v
	}
	var urls []string
	for address := range c.listed {
		urls = append(urls, address)
		if r := c.feeds[address]; r.Error != "" {
			v.Failures = append(v.Failures, c.row(address))
		} else if r.Last.IsZero() {
			v.Waiting++
		}
	}
	name := func(address string) string { return strings.ToLower(cmp.Or(c.feeds[address].Title, address)) }
	slices.SortFunc(urls, func(a, b string) int { return cmp.Or(cmp.Compare(name(a), name(b)), cmp.Compare(a, b)) })
	slices.SortFunc(v.Failures, func(a, b feedRow) int {
		return cmp.Or(cmp.Compare(b.Failures, a.Failures), cmp.Compare(a.URL, b.URL))
	})
	v.Failures = v.Failures[:min(len(v.Failures), feedsPerPage)]
	v.From = min(max(from, 0), len(urls))
	v.To = min(v.From+feedsPerPage, len(urls))
	if v.From > 0 {
		v.Before = max(0, v.From-feedsPerPage)
	}
	if v.To < len(urls) {
		v.Next = v.To
	}
	for _, address := range urls[v.From:v.To] {
		v.Rows = append(v.Rows, c.row(address))
	}
	for _, f := range slices.Backward(c.stats.Latest) {
		r := latestRow{found: f, Name: f.Feed}
		if known := c.feeds[f.Feed]; known != nil {
			r.Name = cmp.Or(known.Title, f.Feed)
		}
		v.Latest = append(v.Latest, r)
	}
	if n := len(c.stats.Days); n > 0 {
		today := c.stats.Days[n-1]
		v.Today = &today
	}
	v.Delays = c.delays(v.Now)
	return v
}

// week returns the picture of when a feed published, by hour of the week.
func (c *Crawler) week(address string) (cells []cell) {
	hours := c.stats.Hours[address]
	if hours == nil {
		return nil
	}
	most := slices.Max(hours)
	for k, n := range hours {
		if n == 0 {
			continue
		}
		day := time.Weekday((k/24 + 1) % 7)
		cells = append(cells, cell{
			X: k%24*12 + 40, Y: k/24*12 + 2, Opacity: fmt.Sprintf("%.2f", .15+.85*float64(n)/float64(most)),
			Label: fmt.Sprintf("%s %d:00 UTC: %d items", day, k%24, n),
		})
	}
	return cells
}

// delayRow is how long the items of a day waited.
type delayRow struct {
	Day                   time.Time
	Requests, Items       int
	Median, Late, Regular time.Duration
}

// delays compares how long items waited with a fixed interval of as many requests:
// with n feeds and R requests a day each is asked for every T = 24n/R hours, and an
// item waits for T/2 in the mean.
func (c *Crawler) delays(now time.Time) (rows []delayRow) {
	for _, d := range slices.Backward(c.stats.Days) {
		length := min(now.Sub(d.Begin), 24*time.Hour)
		if len(d.Delays) == 0 || d.Requests == 0 || length < time.Hour {
			continue
		}
		rows = append(rows, delayRow{
			Day: d.Begin, Requests: d.Requests, Items: d.Items, Median: d.quantile(.5), Late: d.quantile(.9),
			Regular: length * time.Duration(len(c.listed)) / time.Duration(d.Requests) / 2,
		})
	}
	return rows
}

// Handler serves the page, and /metrics for Prometheus.
func (c *Crawler) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.FormValue("from"))
		one := r.FormValue("feed")
		v := c.view(from, one)
		if one != "" && v.One == nil {
			http.Error(w, "there is no such feed in the list", http.StatusNotFound)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		h.Set("Referrer-Policy", "no-referrer")
		if err := pageTemplate.Execute(w, v); err != nil {
			c.opt.Log.Error("the page was not sent", "error", err)
		}
	})
	if c.opt.PublicURL != "" {
		mux.HandleFunc("GET /websub/{token}", c.verify)
		mux.HandleFunc("POST /websub/{token}", c.pushed)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics{c}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// metrics reads the state when Prometheus asks.
type metrics struct{ c *Crawler }

// Describe implements prometheus.Collector. The names stand in Collect.
func (m metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m metrics) Collect(ch chan<- prometheus.Metric) {
	c := m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	tell := func(kind prometheus.ValueType, name, help string, v float64, labels prometheus.Labels) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc("crawl_"+name, help, nil, labels), kind, v)
	}
	for _, o := range []feed.Outcome{feed.Found, feed.Unchanged, feed.Gone, feed.Failed} {
		tell(prometheus.CounterValue, "requests_total", "Requests for feeds, by outcome.", float64(c.stats.Outcome[o]), prometheus.Labels{"outcome": string(o)})
	}
	failing := 0
	for address := range c.listed {
		if c.feeds[address].Failures > 0 {
			failing++
		}
	}
	tell(prometheus.CounterValue, "items_total", "Items found.", float64(c.stats.Items), nil)
	tell(prometheus.GaugeValue, "feeds", "Feeds in the list.", float64(len(c.listed)), nil)
	tell(prometheus.GaugeValue, "feeds_failing", "Feeds whose last request failed.", float64(failing), nil)
	tell(prometheus.GaugeValue, "requests_under_way", "Requests under way.", float64(c.underWay), nil)
	if n := len(c.stats.Days); n > 0 {
		for label, q := range map[string]float64{"0.5": .5, "0.9": .9} {
			tell(prometheus.GaugeValue, "delay_seconds", "Time from the publication of an item until it was found, of the items of today.",
				c.stats.Days[n-1].quantile(q).Seconds(), prometheus.Labels{"quantile": label})
		}
	}
}
