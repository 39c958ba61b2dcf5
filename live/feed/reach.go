package feed

import (
	"errors"
	"net"
	"syscall"
)

// fewHosts are so many of which none was reached, one after the other, that it is not they who are away.
const fewHosts = 3

// reaches takes up whether a host was reached, and reports whether any was reached lately. While this machine has no
// network, each feed would be taken for one that fails.
func (f *Fetcher) reaches(host string, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !unreached(err) {
		f.unreached = nil
		return true
	}
	if f.unreached == nil {
		f.unreached = map[string]bool{}
	}
	f.unreached[host] = true
	return len(f.unreached) < fewHosts
}

// unreached reports whether an error of dialling is that nobody answered, neither the host nor a name server.
func unreached(err error) bool {
	var name *net.DNSError
	var network net.Error
	switch {
	case errors.As(err, &name):
		return !name.IsNotFound
	case errors.As(err, &network) && network.Timeout():
		return true
	}
	is := func(no syscall.Errno) bool { return errors.Is(err, no) }
	return is(syscall.ENETUNREACH) || is(syscall.EHOSTUNREACH) || is(syscall.ENETDOWN)
}
