package crawl

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ephemera/internal/build"
	"ephemera/internal/plain"
)

//go:embed page.html metrics.txt
var texts embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"day":     func(t time.Time) string { return t.UTC().Format("2 Jan 2006") },
	"minutes": span,
	"list":    func(values ...any) []any { return values },
	"build":   build.Read,
	"count":   plain.Count,
	"digits":  digitsOf,
	"weekday": func(fromMonday int) string { return time.Weekday((fromMonday + 1) % 7).String()[:3] },
}).ParseFS(texts, "*"))

// span returns a duration in days, or in hours and minutes.
func span(d time.Duration) string {
	if days := d / (24 * time.Hour); days >= 3 {
		return fmt.Sprintf("%d days", days)
	}
	text := strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	if hours, whole := strings.CutSuffix(text, "h0m"); whole {
		return hours + "h"
	}
	return cmp.Or(text, "0m")
}

// digitsOf returns a number with three digits or those of its whole part.
func digitsOf(n float64) string {
	if n >= 999.5 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'g', 3, 64)
}

// view is what the page shows.
type view struct {
	*Crawler
	Now       time.Time
	PerHour   float64
	ListError error
	Left      []error // outlines of the list that name no feed
	Full      bool    // the disk, so that nothing is asked for
	Stats     *stats
	Feeds     []*record // of the list, by name
	Failing   []*record // of these
	Held      []heldRow
	One       *record // which alone is shown
	Page      int     // of feeds, from 1
	ByName    bool    // in place of by the next look
	Compared  *comparison
	Spare     bool           // there are requests enough to look at each feed as often as it may be
	ends      []time.Time    // of the longest intervals of all feeds, in order
	Where     *time.Location // whose times are shown
	ZoneError string
}

// Clock returns a time of the zone that is shown.
func (v *view) Clock(t time.Time) string { return t.In(v.Where).Format("2 Jan 2006 15:04") }

// Zone returns what the zone is called at a time.
func (v *view) Zone(t time.Time) string { return t.In(v.Where).Format("MST") }

// Week returns when items of a feed were published, by day from Monday and hour of the zone as it
// is now.
func (v *view) Week(r *record) (week [7][24]int) {
	_, offset := v.Now.In(v.Where).Zone()
	shift := 168 + int(math.Round(float64(offset)/3600))
	for day, hours := range r.Hours {
		for hour, n := range hours {
			k := (24*day + hour + shift) % 168
			week[k/24][k%24] = n
		}
	}
	return week
}

const zoneCookie = "zone"

// where returns in which zone somebody wants times, by name: as it is given now, or was before,
// or else that of the machine. What is given now is remembered.
func where(w http.ResponseWriter, r *http.Request) (zone *time.Location, failure string) {
	if given := r.URL.Query().Get(zoneCookie); given != "" {
		if zone, err := time.LoadLocation(given); err == nil {
			http.SetCookie(w, &http.Cookie{
				Name: zoneCookie, Value: url.QueryEscape(given), Path: "/", MaxAge: 365 * 24 * 3600,
				HttpOnly: true, SameSite: http.SameSiteStrictMode,
			})
			return zone, ""
		}
		failure = "No zone is called so; one is Europe/Berlin, others are UTC and America/New_York."
	}
	if c, err := r.Cookie(zoneCookie); err == nil {
		name, _ := url.QueryUnescape(c.Value)
		if zone, err := time.LoadLocation(name); err == nil && name != "" {
			return zone, failure
		}
	}
	return time.Local, failure
}

// feedRow is what is thought of a feed.
type feedRow struct {
	*record
	PerDay float64
	Due    time.Time
	Reason string
}

// Name returns what people call the feed, which may be its address.
func (r *record) Name() string { return shown(cmp.Or(r.Title, r.ID.URL)) }

// Address returns where the feed is by the list, as it may be shown.
func (r *record) Address() string { return shown(r.ID.URL) }

// Moved returns where the feed has moved to, as it may be shown, or nothing.
func (r *record) Moved() string {
	if r.Place.URL == r.ID.URL {
		return ""
	}
	return shown(r.Place.URL)
}

// Looked returns when the feed was looked at last, whatever came of it.
func (r *record) Looked() time.Time {
	if r.Last.After(r.Tried) { // it was not always kept
		return r.Last
	}
	return r.Tried
}

// Key names the feed in the address of its page.
func (r *record) Key() string {
	if r.Address() == r.ID.URL {
		return r.ID.URL
	}
	sum := sha256.Sum256([]byte(r.ID.URL))
	return r.Address() + " " + hex.EncodeToString(sum[:8])
}

// secret is what stands before the host of an address. A password may have a / or # that nobody escaped;
// an @ after a / begins a name in a path.
var secret = regexp.MustCompile(`//(?:[^/?#\s:]*:\S*[^/\s]|[^/?#\s]*)@`)

// shown returns a text with the names and passwords of its addresses covered. Most have
// none, and feeds are ordered by what is shown of them.
func shown(text string) string {
	if !strings.Contains(text, "@") {
		return text
	}
	return secret.ReplaceAllString(text, "//xxxxx@")
}

// Shade returns how dark an hour is in the picture of the week, from 0 to 1.
func (r *record) Shade(n int) float64 {
	most := 1
	for _, day := range r.Hours {
		most = max(most, slices.Max(day[:]))
	}
	return float64(n) / float64(most)
}

// Row says what is thought of a feed, and why it is looked at when.
func (v *view) Row(r *record) feedRow {
	c, row := v.Crawler, feedRow{record: r}
	b, err := c.learner.Belief(r.ID.URL)
	switch {
	case r.Gone:
		row.Reason = "gone: it is not asked for again, unless you take it off the list and put it on again"
		return row
	case !r.listed:
		row.Reason = "it is not on the list"
		return row
	case err != nil:
		row.Reason = "it is where another feed of the list is, and is asked for as " + r.same.Name()
		return row
	}
	if v.Spare { // no look has to be worth more than others
		b.Due = b.Free
	}
	row.Due, row.Reason = c.free(r, c.latest)
	epoch, _ := c.opt.epoch()
	// The learner takes up a first look at the end of its epoch.
	if !b.Last.IsZero() && (len(r.Looks) > 1 || c.latest.Sub(r.Last) > epoch) {
		row.PerDay = b.Items * 24
	}
	switch {
	case r.Last.IsZero() && r.Failures == 0 && !row.Due.After(c.latest):
		row.Due, row.Reason = b.Due, "it was not looked at yet"
	case b.Due.After(row.Due.Add(c.opt.Longest/2)) && !b.Due.Before(r.Last.Add(c.opt.Longest-epoch)):
		row.Due, row.Reason = b.Due, "it has waited for the longest interval then"
	case b.Due.After(row.Due.Add(epoch)):
		row.Due, row.Reason = b.Due, "what is thought to wait is worth a look then, or sooner if requests are left"
	case b.Due.After(row.Due) && (row.Reason == "" || row.Due.Before(c.latest)):
		row.Due, row.Reason = b.Due, "looks are planned for "+span(epoch)+" at a time"
	}
	row.Reason = cmp.Or(row.Reason, "no sooner than the shortest interval")
	switch free := row.Due.Before(c.latest); {
	case r.held:
		row.Due, row.Reason = c.latest, "it is being asked for"
	case free && c.opt.Shadow:
		row.Due, row.Reason = c.latest, "what is thought to wait is worth a look"
	case free:
		row.Due, row.Reason = c.latest, "it is due, and others come first"
		if others, wait := v.behind(r); others > 0 {
			row.Due = c.latest.Add(wait)
			row.Reason = "it is due, after " + plain.Count(others, "feed") + " with a longer wait"
		}
	}
	return row
}

// behind returns how many feeds are looked at before one since their longest intervals end sooner, and how long
// that takes, where its own interval is over before that.
func (v *view) behind(r *record) (others int, wait time.Duration) {
	end := r.Tried.Add(v.opt.Longest)
	others, _ = slices.BinarySearchFunc(v.ends, end, time.Time.Compare)
	wait = time.Duration(float64(others) / v.opt.PerHour * float64(time.Hour))
	if v.Crawler.latest.Add(wait).Before(end) {
		return 0, 0
	}
	return others, wait
}

// named returns the feed of a key, or nil.
func (c *Crawler) named(key string) *record {
	for _, r := range c.feeds {
		if key != "" && r.Key() == key {
			return r
		}
	}
	return nil
}

// onList returns the feeds of the list, by name.
func (c *Crawler) onList() (feeds []*record) {
	type named struct {
		name string
		*record
	}
	var all []named
	for _, r := range c.feeds {
		if r.listed {
			all = append(all, named{plain.Natural(r.Name()), r})
		}
	}
	slices.SortFunc(all, func(a, b named) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.ID.URL, b.ID.URL))
	})
	for _, one := range all {
		feeds = append(feeds, one.record)
	}
	return feeds
}

// view returns what the page shows, of one feed if that is named.
func (c *Crawler) view(name string) *view {
	v := &view{
		Crawler: c, Now: c.clock(), PerHour: c.opt.PerHour, Left: c.listing.left,
		Full: c.store.Full(), Stats: &c.stats, Page: 1, Where: time.Local,
	}
	if away(c.listing.err) == nil {
		v.ListError = c.listing.err
	}
	v.One, v.Feeds = c.named(name), c.onList()
	v.Failing = slices.DeleteFunc(slices.Clone(v.Feeds), func(r *record) bool { return r.Error == "" })
	v.Held = c.heldRows(v.Feeds)
	v.Spare = c.spare()
	for address, r := range c.feeds {
		if c.learner.Has(address) && !r.held {
			v.ends = append(v.ends, r.Tried.Add(c.opt.Longest))
		}
	}
	slices.SortFunc(v.ends, time.Time.Compare)
	return v
}

// spare reports whether there are requests enough to look at each feed as often as it may be, by the waits of now.
func (c *Crawler) spare() bool {
	epoch, _ := c.opt.epoch()
	wanted := 0. // an hour
	for address, r := range c.feeds {
		if !c.learner.Has(address) {
			continue
		}
		at, _ := c.free(r, c.latest)
		wait := max(epoch, at.Sub(r.Tried)-c.opt.lead(), c.opt.Shortest-c.opt.lead())
		epochs := (wait + epoch - 1) / epoch // begun ones
		wanted += 1 / (epochs * epoch).Hours()
	}
	return wanted <= c.opt.PerHour
}

// Today returns what today has brought, or nil before the first request of all.
func (v *view) Today() *day {
	switch days := v.Stats.Days; {
	case len(days) == 0:
		return nil
	case sameDay(days[0].Begin, v.Now):
		return &days[0]
	}
	return new(day)
}

// Shadow returns the name of the reader that is not asked for anything, or nothing.
func (v *view) Shadow() string {
	if !v.opt.Shadow {
		return ""
	}
	return readerName(v.opt.Reader)
}

// Unread returns the feeds of which the reader does not give what it fetched.
func (v *view) Unread() []*record {
	return slices.DeleteFunc(slices.Clone(v.Feeds), func(r *record) bool { return r.unread == nil })
}

// Unread returns why the reader does not give what it fetched.
func (r *record) Unread() error { return r.unread.err }

// Categories returns the folders of the list.
func (v *view) Categories() (all []Folder) {
	for _, r := range v.Feeds {
		all = append(all, r.Categories...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// hookView is what is wrong with the program of -hook.
type hookView struct {
	Failed int // items
	Since  time.Time
	Error  string // of the one that failed last
}

// Hook returns that of the crawler if there are items that failed.
func (v *view) Hook() *hookView {
	failed := v.hook.failed()
	if len(failed) == 0 {
		return nil
	}
	since := slices.MinFunc(failed, func(a, b *posting) int { return a.Since.Compare(b.Since) }).Since
	last := slices.MaxFunc(failed, func(a, b *posting) int { return a.Again.Compare(b.Again) })
	return &hookView{len(failed), since, last.Error}
}

// Waiting returns how many items are still to be posted.
func (v *view) Waiting() int { return len(v.hook.waiting) }

// Away returns why the reader does not answer, or that there is no network, or nothing.
func (v *view) Away() string {
	if v.away == nil {
		return ""
	}
	return v.away.Error()
}

// Unlisted returns the name of the reader while its first answer is waited for, or nothing.
func (v *view) Unlisted() string {
	if v.listing.feeds != nil || v.away != nil {
		return ""
	}
	return readerName(v.opt.Reader)
}

// Latest returns the items that were found last, but for those of first looks at feeds.
func (v *view) Latest() ([]*item, error) { return v.latest(false) }

// Earliest returns those of first looks.
func (v *view) Earliest() ([]*item, error) { return v.latest(true) }

func (v *view) latest(first bool) ([]*item, error) {
	items, _, err := v.find(nil, shownItems, func(d *drop) bool { return d.first == first })
	return items, err
}

// Plan returns the feeds of the page, by their next look, or by name.
func (v *view) Plan() (rows []feedRow) {
	for _, r := range v.Feeds {
		rows = append(rows, v.Row(r))
	}
	if !v.ByName {
		never := func(row feedRow) int {
			if row.Due.IsZero() {
				return 1
			}
			return 0
		}
		slices.SortStableFunc(rows, func(a, b feedRow) int { return cmp.Or(never(a)-never(b), a.Due.Compare(b.Due)) })
	}
	first := min(v.First(), len(rows))
	return rows[first:min(first+shownFeeds, len(rows))]
}

// shownFeeds are those of a page.
const shownFeeds = 100

// First returns how many feeds are on the pages before.
func (v *view) First() int { return (v.Page - 1) * shownFeeds }

// Pages returns the numbers of the pages of feeds, if there are several.
func (v *view) Pages() (numbers []int) {
	for n := 1; (n-1)*shownFeeds < len(v.Feeds) && len(v.Feeds) > shownFeeds; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// pageOf reads the number of a page.
func pageOf(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1_000_000 {
		return 1
	}
	return n
}

// Of returns the last items of the feed that alone is shown.
func (v *view) Of() ([]*item, error) {
	items, _, err := v.find(nil, 20, func(d *drop) bool { return d.from == v.One })
	return items, err
}

// Name returns what people call the feed of the item.
func (it *item) Name() string { return it.from.Name() }

// Handler serves the page, and /metrics for Prometheus.
func (c *Crawler) Handler() http.Handler {
	mux := http.NewServeMux()
	write := func(w http.ResponseWriter, r *http.Request, name string) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		asked := r.URL.Query() // FormValue may read a body, for which the crawler would wait
		c.mu.Lock()
		var b bytes.Buffer
		v := c.view(asked.Get("feed"))
		if v.One == nil && name == "page.html" {
			c.recompare(v.Now)
		}
		v.Compared = c.compared
		v.Where, v.ZoneError = where(w, r)
		v.Page, v.ByName = pageOf(asked.Get("page")), asked.Get("by") == "name"
		err := pages.ExecuteTemplate(&b, name, v)
		c.mu.Unlock()
		if err != nil {
			c.opt.Log.Error("a page was not made", "page", name, "error", err)
		}
		b.WriteTo(w)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		write(w, r, "page.html")
	})
	mux.HandleFunc("GET /items.json", c.serveRiver("application/feed+json; charset=utf-8", (*riverPage).json))
	mux.HandleFunc("GET /items.atom", c.serveRiver("application/atom+xml; charset=utf-8", (*riverPage).atom))
	mux.HandleFunc("GET /opml", c.serveOPML)
	mux.HandleFunc("GET "+ExportPath, c.serveExport)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		r.Header = http.Header{} // so that it is plain text
		promhttp.Handler().ServeHTTP(w, r)
		write(w, r, "metrics.txt")
	})
	if c.opt.PublicURL != "" {
		mux.HandleFunc("/websub/{token}", c.websub)
	}
	return mux
}
