package crawl

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fastClock shows a time that passes faster than it does.
type fastClock struct {
	speed int64
	real  time.Time
	shown time.Time // at real
}

func (c fastClock) now() time.Time {
	return c.shown.Add(time.Since(c.real) * time.Duration(c.speed))
}

// sleepUntil returns when the clock shows a time.
func (c fastClock) sleepUntil(t time.Time) {
	time.Sleep(t.Sub(c.now()) / time.Duration(c.speed))
}

// query asks PostgreSQL.
func query(t *testing.T, dir, database, text string) [][]string {
	out, err := exec.Command("psql", "-h", dir, "-U", "postgres", "-d", database, "-AtF", ",", "-c", text).Output()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var rows [][]string
	for line := range strings.Lines(string(out)) {
		rows = append(rows, strings.Split(strings.TrimSpace(line), ","))
	}
	return rows
}

// recorded serves feeds /NAME/K of recorded publications, which show the last 20 at its time.
type recorded struct {
	at  [][]int64 // of feed k, when its items appear
	now func() time.Time

	mu    sync.Mutex
	asked map[string][]time.Time // requests, by NAME
}

func (p *recorded) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	part := append(strings.Split(q.URL.Path, "/"), "", "")
	k, err := strconv.Atoi(part[2])
	if err != nil {
		http.NotFound(w, q)
		return
	}
	now := p.now()
	p.mu.Lock()
	p.asked[part[1]] = append(p.asked[part[1]], now)
	p.mu.Unlock()
	at := p.at[k]
	n, _ := slices.BinarySearch(at, now.Unix())
	tag := fmt.Sprintf(`"%d"`, n)
	w.Header().Set("ETag", tag)
	if q.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	fmt.Fprintf(w, `<rss version="2.0"><channel><title>Feed %d</title><link>http://f%d.test/</link>`, k, k)
	for i := n - 1; i >= max(0, n-20); i-- {
		fmt.Fprintf(w, `<item><guid>%d</guid><title>Item</title><link>http://f%d.test/%d</link>`+
			`<pubDate>%s</pubDate></item>`, i, k, i, time.Unix(at[i], 0).UTC().Format(time.RFC1123Z))
	}
	io.WriteString(w, `</channel></rss>`)
}

// publications returns when the items of 50 feeds appear, as if the middle of their recordings
// were at a time: 30 of fbmedia2016 and the 20 of hn that publish most.
func publications(t *testing.T, begin time.Time) (at [][]int64) {
	for _, of := range []struct {
		name string
		n    int
	}{{"fbmedia2016", 30}, {"hn", 20}} {
		rec := readRecording(t, of.name)
		var sources []int
		for i := range rec.Names {
			sources = append(sources, i)
		}
		if of.name == "hn" {
			slices.SortFunc(sources, func(a, b int) int { return len(rec.Of(b)) - len(rec.Of(a)) })
		}
		middle := time.Unix(rec.First+(rec.Last-rec.First)/2, 0).UTC()
		monday := middle.Truncate(7 * 24 * time.Hour).Unix() // a Thursday, as Unix time began
		shift := begin.Truncate(7*24*time.Hour).Unix() - monday
		for _, i := range sources[:of.n] {
			var one []int64
			for _, p := range rec.Of(i) {
				one = append(one, p.At+shift)
			}
			at = append(at, one)
		}
	}
	return at
}

// delays returns how many items of a time a Miniflux found, and within how many minutes: half, nine
// tenths, and the mean.
func delays(t *testing.T, dir, database string, from, to time.Time) []string {
	return query(t, dir, database, fmt.Sprintf(`
		select count(*), percentile_cont(.5) within group (order by d),
			percentile_cont(.9) within group (order by d), avg(d)
		from (select extract(epoch from created_at - published_at)::float/60 as d from entries
			where published_at >= to_timestamp(%d) and published_at < to_timestamp(%d)) as found`,
		from.Unix(), to.Unix()))[0]
}

// TestRealMinifluxWeek: eight days of the clock of three real Miniflux, each with its own
// database and the same 50 feeds: two with their own schedulers, one that is steered. The last
// seven are compared, from the databases.
func TestRealMinifluxWeek(t *testing.T) {
	program, dir := os.Getenv("EPHEMERA_MINIFLUX_FAST"), os.Getenv("EPHEMERA_POSTGRES_FAST")
	if program == "" || dir == "" {
		t.Skip("no Miniflux with a fast clock here; .ci/miniflux week runs this test with one")
	}
	speed := must(strconv.ParseInt(os.Getenv("EPHEMERA_SPEED"), 10, 64))
	c := fastClock{speed: speed}
	for best := time.Hour; best > time.Second/10; {
		begin := time.Now()
		text := query(t, dir, "postgres", "select extract(epoch from clock_timestamp())")[0][0]
		if took := time.Since(begin); took < best {
			best = took
			seconds := must(strconv.ParseFloat(text, 64))
			c.real, c.shown = begin.Add(took/2), time.UnixMicro(int64(seconds*1e6))
		}
	}
	const day = 24 * time.Hour
	begin := c.now()
	p := &recorded{at: publications(t, begin), now: c.now, asked: map[string][]time.Time{}}
	days := must(strconv.Atoi(cmp.Or(os.Getenv("EPHEMERA_DAYS"), "7")))
	from, to := begin.Add(day), begin.Add(time.Duration(1+days)*day)

	// What the rule by entries asks for in an hour, as its code says, from what is recorded.
	const factor = 2
	perHour := 0.
	for _, at := range p.at {
		n, _ := slices.BinarySearch(at, from.Unix())
		m, _ := slices.BinarySearch(at, to.Unix())
		perHour += 1 / min(max(float64(24*days)/math.Max(1e-9, float64((m-n)*factor)), 1./12), 24)
	}
	interval := int(math.Round(60 * float64(len(p.at)) / perHour))
	t.Logf("%d feeds; by their entries %.1f requests an hour, or each every %d minutes", len(p.at), perHour, interval)

	l := must(net.Listen("tcp4", "0.0.0.0:0"))
	defer l.Close()
	go http.Serve(l, p)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	rules := []struct {
		name     string
		settings []string
	}{
		{"frequency", []string{
			"POLLING_SCHEDULER=entry_frequency", fmt.Sprint("SCHEDULER_ENTRY_FREQUENCY_FACTOR=", factor),
		}},
		{"interval", []string{
			"POLLING_SCHEDULER=round_robin", fmt.Sprint("SCHEDULER_ROUND_ROBIN_MIN_INTERVAL=", interval),
		}},
		{"learner", []string{"DISABLE_SCHEDULER_SERVICE=1", "SCHEDULER_ROUND_ROBIN_MIN_INTERVAL=5"}},
	}
	crawlers := map[string]*Crawler{}
	var ticking sync.WaitGroup
	for _, rule := range rules {
		query(t, dir, "postgres", "create database "+rule.name)
		free := must(net.Listen("tcp", "127.0.0.1:0"))
		m := &miniflux{address: "http://" + free.Addr().String()}
		free.Close()
		database := fmt.Sprintf("host=%s user=postgres dbname=%s sslmode=disable", dir, rule.name)
		m.start(t, program, database, append(rule.settings,
			fmt.Sprintf("FAST_CLOCK=%d %d %d", speed, c.real.UnixNano(), c.shown.UnixNano()),
			"POLLING_FREQUENCY=2", "HTTP_CLIENT_TIMEOUT=100000", "DATABASE_CONNECTION_LIFETIME=100000",
			"POLLING_PARSING_ERROR_LIMIT=0", "CLEANUP_FREQUENCY_HOURS=1000")...)
		defer func() { m.Process.Kill(); m.Wait() }()
		var categories []struct {
			ID int64 `json:"id"`
		}
		m.ask("GET", "/v1/categories", nil, &categories)
		for k := range p.at {
			var added struct {
				ID int64 `json:"feed_id"`
			}
			m.ask("POST", "/v1/feeds", map[string]any{
				"feed_url":    fmt.Sprintf("http://127.1.0.%d:%s/%s/%d", k+1, port, rule.name, k),
				"category_id": categories[0].ID,
			}, &added)
		}
		var key struct {
			Token string `json:"token"`
		}
		m.ask("POST", "/v1/api-keys", map[string]string{"description": "crawl"}, &key)
		crawler := must(Open(t.Context(), Options{
			Reader: NewMiniflux(m.address, key.Token), Dir: filepath.Join(t.TempDir(), "state"), PerHour: perHour,
			Shortest: 5 * time.Minute, Longest: day, Now: c.now, Log: slog.New(slog.DiscardHandler),
			Shadow: rule.name != "learner",
		}))
		defer crawler.Close()
		crawlers[rule.name] = crawler
		ticking.Go(func() {
			for c.now().Before(to) {
				must(crawler.Tick())
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	for at := from; !at.After(to.Add(time.Hour)); at = at.Add(12 * time.Hour) {
		c.sleepUntil(at)
		t.Logf("%v has passed", at.Sub(begin).Round(time.Hour))
	}
	ticking.Wait()
	mean := map[string]float64{}
	for _, rule := range rules {
		p.mu.Lock()
		requests := 0
		for _, at := range p.asked[rule.name] {
			if at.After(from) && at.Before(to) {
				requests++
			}
		}
		p.mu.Unlock()
		// Items of the last half day may still be found.
		last := to.Add(-day / 2)
		published := 0
		for _, at := range p.at {
			n, _ := slices.BinarySearch(at, from.Unix())
			m, _ := slices.BinarySearch(at, last.Unix())
			published += m - n
		}
		row := delays(t, dir, rule.name, from, last)
		found := must(strconv.Atoi(row[0]))
		mean[rule.name] = must(strconv.ParseFloat(row[3], 64))
		t.Logf("%-9s %5d requests, %5d items of %d: half within %s min, nine tenths %s, mean %s",
			rule.name, requests, found, published, row[1], row[2], row[3])
		if rule.name == "learner" {
			continue
		}
		crawler := crawlers[rule.name]
		crawler.mu.Lock()
		crawler.recompare(c.now())
		crawler.mu.Unlock()
		crawler.comparisons.Wait()
		page := crawler.compared
		row = delays(t, dir, rule.name, page.From, page.To)
		t.Logf("in its shadow, from %v to %v, of %s items: half within %s min, nine tenths %s, mean %s; the page: %s",
			page.From, page.To, row[0], row[1], row[2], row[3], page.Why)
		items, sum := 0, 0.
		if len(page.Rivals) > 0 {
			items, sum = page.Items, float64(page.Items)*page.Rivals[0].Mean.Minutes()
		}
		for _, l := range page.Left {
			t.Logf("    left out: %d %s, found within %.1f min in the mean", l.Items, l.Why, l.Mean.Minutes())
			items += l.Items
			sum += float64(l.Items) * l.Mean.Minutes()
		}
		kept, all := must(strconv.Atoi(row[0])), must(strconv.ParseFloat(row[3], 64))
		t.Logf("    with them, the page has %d items, found within %.1f min in the mean", items, sum/float64(items))
		if math.Abs(float64(items-kept)) > .01*float64(kept) || math.Abs(sum/float64(items)-all) > .1*all {
			t.Errorf("the page and the database of %s do not agree", rule.name)
		}
		for _, one := range page.Rivals {
			t.Logf("    %-40s %5d requests, of %d items: half within %.1f min, nine tenths %.1f, mean %.1f",
				one.Name, one.Requests, page.Items, one.Half.Minutes(), one.Ninety.Minutes(), one.Mean.Minutes())
		}
	}
	if best := min(mean["frequency"], mean["interval"]); mean["learner"] > best {
		t.Errorf("mean %v minutes, and %v by the scheduler of Miniflux", mean["learner"], best)
	}
}
