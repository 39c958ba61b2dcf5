// Package web serves and guards the pages of commands.
package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Server returns one of a guarded page. Clients that send or read slowly, or nothing more,
// do not hold a connection for longer than a minute.
func Server(listen string, h http.Handler, open ...string) *http.Server {
	return &http.Server{
		Handler: Guard(listen, h, open...), MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: time.Minute,
	}
}

// Guard answers requests for a page only under names of the address at which it listens, so
// that no page elsewhere can read it under a name of its own that leads here (DNS
// rebinding). Names of this machine for itself are allowed, and the host of the address. One
// that has none, or 0.0.0.0, is that of all of this machine: then IP addresses and names
// without a dot are allowed too. What is under the open paths is for machines, and answered
// under any name.
func Guard(listen string, h http.Handler, open ...string) http.Handler {
	given, _, err := net.SplitHostPort(listen)
	if err != nil {
		given = listen
	}
	given = strings.ToLower(given)
	ip, err := netip.ParseAddr(given)
	all := given == "" || err == nil && ip.IsUnspecified()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, path := range open {
			if strings.HasPrefix(r.URL.Path, path) {
				h.ServeHTTP(w, r)
				return
			}
		}
		if !allowed(r.Host, given, all) {
			text := fmt.Sprintf("Host is %q; allowed are localhost, 127.0.0.1 "+
				"and the host of the address at which this page listens\n", r.Host)
			http.Error(w, text, http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func allowed(host, given string, all bool) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "":
		return false
	case host == given || host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback():
		return true
	}
	return all && (err == nil || !strings.Contains(host, "."))
}
