package crawl

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestReaderAddress: a reader below a path is found there, whichever of its addresses people give. One that has
// moved says where to.
func TestReaderAddress(t *testing.T) {
	m := newFakeMiniflux(t)
	m.now = time.Now
	m.feeds[1] = &fakeFeed{url: "http://f.test/feed", every: time.Hour}
	f := newFakeFreshRSS(t, &fakeFresh{url: "http://f.test/feed", every: time.Hour})
	f.now = time.Now
	mux := http.NewServeMux()
	mux.Handle("/miniflux/", http.StripPrefix("/miniflux", m.Config.Handler))
	mux.Handle("/FreshRSS/p/", http.StripPrefix("/FreshRSS/p", f.Config.Handler))
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, server.URL+r.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	defer moved.Close()
	list := func(r Reader, m *remote) error {
		m.client.Transport = server.Client().Transport
		feeds, _, err := r.Feeds(t.Context())
		if err == nil && len(feeds) != 1 {
			t.Errorf("%s gives %d feeds", m.url, len(feeds))
		}
		return err
	}
	miniflux := func(address string) error {
		r := NewMiniflux(address, "token")
		return list(r, &r.remote)
	}
	freshrss := func(address string) error {
		r := NewFreshRSS(address, "alice", "token", "apisecret")
		return list(r, &r.remote)
	}
	for _, tt := range []struct {
		open  func(string) error
		path  string
		pages []string
	}{
		{miniflux, "/miniflux", []string{"", "/", "//", "/v1", "/v1/"}},
		{freshrss, "/FreshRSS/p", []string{"", "/", "/i", "/i/", "/i/?a=normal&get=a", "/api/", "/api/greader.php"}},
	} {
		for _, page := range tt.pages {
			if err := tt.open(server.URL + tt.path + page); err != nil {
				t.Errorf("%s: %v", tt.path+page, err)
			}
			want := "has moved to " + server.URL + tt.path + "; give that address"
			if err := tt.open(moved.URL + tt.path + page); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", tt.path+page, err, want)
			}
		}
	}
}
