package feed

import (
	"fmt"
	"net/netip"
	"syscall"
)

// reserved are ranges that are not of the public network, beside those that netip
// knows.
var reserved = func() (all []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "2001:db8::/32", "2002::/16", "fec0::/10",
	} {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}()

// public reports whether an address is one of the public network.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, p := range reserved {
		if p.Contains(a) {
			return false
		}
	}
	return a.IsGlobalUnicast() && !a.IsPrivate()
}

type privateError struct{ addr netip.Addr }

func (e *privateError) Error() string {
	return fmt.Sprintf("its address %v is not of the public network (-allow-private allows it)", e.addr)
}

// refusePrivate refuses to dial an address that is not public. It sees what is
// dialled, whatever a name or a redirect said before.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !public(a.Addr()) {
		return &privateError{a.Addr()}
	}
	return nil
}
