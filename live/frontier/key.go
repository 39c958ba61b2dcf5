package frontier

import "strings"

// Key returns the queue of a URL that comes without one: its host in lower case, or
// "" if it has none.
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
	return strings.ToLower(host)
}
