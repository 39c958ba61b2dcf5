package web

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestSlowClients: a client that begins a request and sends no more is cut off, and other clients
// are answered meanwhile.
func TestSlowClients(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Server(l.Addr().String(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	}))
	go s.Serve(l)
	defer s.Close()
	begin := time.Now()
	ended := make(chan time.Duration)
	begun := []string{
		"", "GET / HTTP/1.1\r\nHost: loc", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
	}
	for _, sent := range begun {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetReadDeadline(begin.Add(time.Minute))
		io.WriteString(c, sent)
		go func() {
			io.Copy(io.Discard, c)
			ended <- time.Since(begin)
		}()
	}
	r, err := http.Get("http://" + l.Addr().String())
	if err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("another client: %v, %v", r, err)
	}
	for range begun {
		if took := <-ended; took > 45*time.Second {
			t.Errorf("one was cut off after %v", took)
		}
	}
}

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
