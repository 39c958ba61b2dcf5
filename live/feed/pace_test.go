package feed

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestPace: what a feed itself says of when it is to be asked for.
func TestPace(t *testing.T) {
	const (
		sy    = ` xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"`
		rdf   = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"`
		begin = `<rss version="2.0"` + sy + `><channel>`
		end   = `</channel></rss>`
	)
	sunday := time.Date(2026, 3, 1, 22, 30, 0, 0, time.UTC)
	for _, tt := range []struct {
		body  string
		every time.Duration
		next  time.Time // from Sunday at half past ten in the evening
	}{
		{begin + end, 0, sunday},
		{begin + `<ttl> 90 </ttl>` + end, 90 * time.Minute, sunday},
		{begin + `<ttl>-1</ttl>` + end, 0, sunday},
		{begin + `<ttl>99999999999999999999</ttl>` + end, maxWait, sunday},
		{begin + `<sy:updatePeriod> hourly </sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>` + end,
			15 * time.Minute, sunday},
		{begin + `<sy:updateFrequency>2</sy:updateFrequency>` + end, 12 * time.Hour, sunday},
		{begin + `<sy:updatePeriod>yearly</sy:updatePeriod><sy:updateFrequency>0</sy:updateFrequency>` + end,
			365 * 24 * time.Hour, sunday},
		{begin + `<sy:updatePeriod>always</sy:updatePeriod>` + end, 0, sunday},
		{rdf + sy + `><channel><sy:updatePeriod>weekly</sy:updatePeriod></channel></rdf:RDF>`,
			7 * 24 * time.Hour, sunday},
		{begin + `<skipHours><hour>22</hour><hour>23</hour><hour>24</hour><hour>x</hour></skipHours>` + end,
			0, sunday.Add(150 * time.Minute)},
		{begin + `<skipDays><day>sunday</day><day>Monday</day></skipDays>` + end,
			0, sunday.Add(25*time.Hour + 30*time.Minute)},
		{begin + `<skipDays><day>Monday</day></skipDays><skipHours><hour>22</hour></skipHours>` + end,
			0, sunday.Add(30 * time.Minute)},
		{begin + `<skipDays><day>Monday</day><day>Tuesday</day><day>Wednesday</day><day>Thursday</day>` +
			`<day>Friday</day><day>Saturday</day><day>Sunday</day></skipDays>` + end, 0, sunday},
	} {
		f, err := Parse([]byte(tt.body), "", at)
		if err != nil || f.Pace.Every != tt.every || !f.Pace.Next(sunday).Equal(tt.next) {
			t.Errorf("%s: %+v, next %v, %v; want every %v, next %v",
				tt.body, f.Pace, f.Pace.Next(sunday), err, tt.every, tt.next)
		}
	}
}

// TestMaxAgeStays: a 304 that says nothing of how long it stays fresh leaves what the
// answer said that it confirms.
func TestMaxAgeStays(t *testing.T) {
	says := map[string]string{} // by path
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", says[r.URL.Path])
		w.Header().Set("ETag", "x")
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, example)
	}))
	defer s.Close()
	f := &Fetcher{Timeout: time.Minute, MaxBytes: 1 << 20, Memory: newMemory(), Now: time.Now}
	f.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return net.Dial(network, s.Listener.Addr().String())
	}
	place := Place{URL: "http://a.test/feed"}
	for k, tt := range []struct {
		says    string
		outcome Outcome
		fresh   time.Duration
	}{
		{"max-age=7200", Found, 2 * time.Hour},
		{"", Unchanged, 2 * time.Hour},
		{"max-age=60", Unchanged, time.Minute},
		{"", Unchanged, time.Minute},
	} {
		says["/feed"] = tt.says
		got := f.Fetch(t.Context(), place)
		if got.Outcome != tt.outcome || got.Fresh != tt.fresh {
			t.Errorf("look %d: %s, fresh for %v, %v; want %s for %v",
				k, got.Outcome, got.Fresh, got.Err, tt.outcome, tt.fresh)
		}
		place = got.Place
	}
}

// TestWhole: a feed without validators is unchanged if it sends the same again from the same
// address, and one with validators only if it says so.
func TestWhole(t *testing.T) {
	body, tag, times := example, "", 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		times++
		if r.URL.Path == "/feed" {
			w.Header().Set("Location", "/"+r.Host[:1])
			w.WriteHeader(http.StatusFound)
			return
		}
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header()["Etag"] = []string{tag}
		io.WriteString(w, body)
	}))
	defer s.Close()
	f := &Fetcher{Timeout: time.Minute, MaxBytes: 1 << 20, Memory: newMemory(), Now: time.Now}
	f.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return net.Dial(network, s.Listener.Addr().String())
	}
	place := Place{URL: "http://a.test/feed"}
	for k, tt := range []struct {
		change  func()
		outcome Outcome
		bytes   int
	}{
		{func() {}, Found, len(example)},
		{func() {}, Unchanged, len(example)},
		{func() { body += "<!-- x -->" }, Found, len(example) + 10},
		{func() { body = "<rss" }, Failed, 0},
		{func() { body = example }, Found, len(example)},
		{func() { place.URL = "http://b.test/feed" }, Found, len(example)},
		{func() {}, Unchanged, len(example)},
		{func() { tag = "x" }, Found, 0},
		{func() {}, Found, 0},
	} {
		tt.change()
		got := f.Fetch(t.Context(), place)
		wrong := got.Place.Bytes != tt.bytes || got.Fresh != time.Minute
		if got.Outcome != tt.outcome || got.Outcome != Failed && wrong {
			t.Errorf("look %d: %s of %d bytes, fresh for %v, %v; want %s of %d",
				k, got.Outcome, got.Place.Bytes, got.Fresh, got.Err, tt.outcome, tt.bytes)
		}
		if got.Outcome != Failed {
			place = got.Place
		}
	}
}
