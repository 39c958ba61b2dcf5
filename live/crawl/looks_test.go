package crawl

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"ephemera/live/feed"
)

// TestItemsOnce: an item without an id is found once, whatever is added to its link, and
// one whose date cannot be written down is found.
func TestItemsOnce(t *testing.T) {
	looks := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		looks++
		w.Header().Set("ETag", fmt.Sprint(looks))
		fmt.Fprintf(w, `<rss version="2.0"><channel>
			<item><link>/a?utm_campaign=%d</link><title>A</title></item>
			<item><link>/b/session-%[1]d</link><title>B</title><pubDate>Sun, 01 Mar 2026 13:00:00 +0100</pubDate></item>
			<item><guid>c</guid><pubDate>Sat, 1 Jan 00:30:00 CET</pubDate></item>
		</channel></rss>`, looks)
	}))
	defer server.Close()
	s := simulate(t, server, "http://a.test/feed").pass(6 * time.Hour)
	if s.stats.Items != 3 || looks < 3 {
		t.Errorf("%d items in %d looks", s.stats.Items, looks)
	}
}

// TestKeptOrLost: a look that cannot be put on disk has not been: neither the learner nor
// the next request knows of it.
func TestKeptOrLost(t *testing.T) {
	s := simulate(t, newReferee(t, 30).Server, address(0))
	r := s.feeds[address(0)]
	var before, after bytes.Buffer
	check(s.learner.Save(&before))
	kept, seq, sums := *r, s.seq, fmt.Sprint(s.stats)
	s.underWay++ // as if it had been asked
	err := s.take(r, &feed.Result{
		Outcome: feed.Found, Place: feed.Place{URL: address(0), ETag: "new"},
		Feed: &feed.Feed{Items: []feed.Item{{ID: 77, Published: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}, {ID: 78}}},
	})
	check(s.learner.Save(&after))
	if err == nil || !bytes.Equal(before.Bytes(), after.Bytes()) || s.seq != seq || fmt.Sprint(s.stats) != sums {
		t.Errorf("%v: the learner or the sums know of it", err)
	}
	if r.Place != kept.Place || !slices.Equal(r.Seen, kept.Seen) || !r.Last.Equal(kept.Last) || !r.NotBefore.After(s.now) {
		t.Errorf("%+v, was %+v", r.Place, kept.Place)
	}
}
