package frontier

import (
	"strings"

	"golang.org/x/net/idna"
)

// Key returns the queue of a URL that comes without one: its host in lower case, and as names are
// looked up (xn--), or "" if it has none.
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
		return strings.ToLower(host) + "]"
	}
	host, _, _ = strings.Cut(host, ":")
	host = strings.ToLower(host)
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		return ascii
	}
	return host
}
