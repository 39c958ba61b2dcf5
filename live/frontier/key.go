package frontier

import (
	"strings"

	"ephemera/live/hostname"
)

// Key returns the queue of a URL that comes without one: the name of its host, an IPv6 address in brackets,
// or "" if it has none. It takes URLs that net/url refuses.
func Key(url string) string {
	_, host, ok := strings.Cut(url, "://")
	if !ok {
		return ""
	}
	if i := strings.IndexAny(host, "/?#&"); i >= 0 {
		host = host[:i]
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	if strings.HasPrefix(host, "[") { // an IPv6 address has colons
		host, _, ok = strings.Cut(host, "]")
		if !ok {
			return ""
		}
		return hostname.Of(host) + "]"
	}
	host, _, _ = strings.Cut(host, ":")
	return hostname.Of(host)
}
