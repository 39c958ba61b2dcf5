// Package hostname says when two spellings name one host. What the crawler and the frontier keep on disk
// of a host is filed under the name that it gives.
package hostname

import (
	"strings"

	"golang.org/x/net/idna"
)

// Of returns the name of a host, without a port, in lower case and as it is looked up (xn--). One that is not allowed
// in the domain name system, such as an IPv6 address, is in lower case only.
func Of(host string) string {
	host = strings.ToLower(host)
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		return ascii
	}
	return host
}
