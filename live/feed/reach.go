package feed

import (
	"errors"
	"net"
	"syscall"
)

// fewHosts are so many of which none was reached, one after the other, that it is not they who are away.
const fewHosts = 3

// reaches takes up whether a host was reached, and reports whether any was reached lately. While this machine has no
// network, each feed would be taken for one that fails. What is on this machine, or in a private network, says nothing
// of others.
func (f *Fetcher) reaches(host string, conn net.Conn, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case near(conn, err):
		return true
	case !unreached(err):
		f.unreached = nil
		return true
	}
	if f.unreached == nil {
		f.unreached = map[string]bool{}
	}
	f.unreached[host] = true
	return len(f.unreached) < fewHosts
}

// near reports whether what was dialled is known to be in a private network, or on this machine.
func near(conn net.Conn, err error) bool {
	var failed *net.OpError
	var at net.Addr
	switch {
	case err == nil:
		at = conn.RemoteAddr()
	case errors.As(err, &failed):
		at = failed.Addr
	}
	tcp, is := at.(*net.TCPAddr)
	return is && (tcp.IP.IsLoopback() || tcp.IP.IsPrivate())
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
