package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestGuard: under which names a page is answered, by the address at which it listens.
func TestGuard(t *testing.T) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, tt := range []struct {
		listen, host, path string
		status             int
	}{
		{"127.0.0.1:7080", "127.0.0.1:7080", "/", 200},
		{"127.0.0.1:7080", "localhost:7080", "/", 200},
		{"127.0.0.1:7080", "LOCALHOST.", "/", 200},
		{"127.0.0.1:7080", "feeds.localhost:7080", "/", 200},
		{"127.0.0.1:7080", "[::1]:7080", "/", 200},
		{"127.0.0.1:7080", "[::1]", "/", 200},
		{"127.0.0.1:7080", "attacker.example:7080", "/", 421},
		{"127.0.0.1:7080", "localhost.attacker.example", "/metrics", 421},
		{"127.0.0.1:7080", "127.0.0.1.attacker.example", "/", 421},
		{"127.0.0.1:7080", "10.0.0.1", "/", 421},
		{"127.0.0.1:7080", "nas", "/", 421},
		{"127.0.0.1:7080", "", "/", 421},
		{"127.0.0.1:7080", "me.example.org", "/websub/x", 200},
		{"127.0.0.1:7080", "me.example.org", "/other", 421},
		{"nas.example.org:7080", "nas.example.org:7080", "/", 200},
		{"nas.example.org:7080", "10.0.0.1:7080", "/", 421},
		{"[fd00::1]:7080", "[FD00::1]:7080", "/", 200},
		{":7080", "10.0.0.1:7080", "/", 200},
		{"0.0.0.0:7080", "nas:7080", "/", 200},
		{"[::]:7080", "[fd00::1]:7080", "/", 200},
		{":7080", "attacker.example:7080", "/", 421},
	} {
		r := httptest.NewRequest("GET", "http://x"+tt.path, nil)
		r.Host = tt.host
		w := httptest.NewRecorder()
		if Guard(tt.listen, ok, "/websub/").ServeHTTP(w, r); w.Code != tt.status {
			t.Errorf("%+v: %d %s", tt, w.Code, w.Body)
		}
	}
}
