package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"ephemera/cmd/internal/clitest"
	"ephemera/live/frontier"
	pb "ephemera/live/frontier/urlfrontier"
)

// wire passes on what is sent to an address, unless it is cut.
type wire struct {
	net.Listener
	silent atomic.Bool // nothing comes through for now
	mu     sync.Mutex
	broken bool // connections end, and there are no others
	open   []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	w := &wire{Listener: listen()}
	t.Cleanup(func() {
		w.Close()
		w.tear(true)
	})
	go func() {
		for {
			from, err := w.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				continue
			}
			w.mu.Lock()
			if w.open = append(w.open, from, there); w.broken {
				from.Close()
				there.Close()
			}
			w.mu.Unlock()
			go w.pass(from, there)
			go w.pass(there, from)
		}
	}()
	return w
}

func (w *wire) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 1<<16)
	for n, err := from.Read(b); err == nil; n, err = from.Read(b) {
		for w.silent.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// tear ends all connections; broken, it takes no others.
func (w *wire) tear(broken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = broken
	for _, c := range w.open {
		c.Close()
	}
	w.open = nil
}

// cluster is nodes that reach each other by wires only. Clients reach them without.
type cluster struct {
	*testing.T
	nodes []*service
	dirs  []string
	wires []*wire // to each of them, in the order of the addresses
	more  []string
}

func newCluster(t *testing.T, n int, args ...string) *cluster {
	c := &cluster{T: t, more: args}
	for range n {
		s := &service{address: freeAddress(), page: freeAddress()}
		c.nodes, c.dirs = append(c.nodes, s), append(c.dirs, t.TempDir())
		c.wires = append(c.wires, newWire(t, s.address))
	}
	order := slices.Clone(c.wires)
	slices.SortFunc(order, func(a, b *wire) int { return strings.Compare(a.Addr().String(), b.Addr().String()) })
	nodes := make([]*service, n)
	for i, w := range order {
		nodes[i] = c.nodes[slices.Index(c.wires, w)]
	}
	c.nodes, c.wires = nodes, order
	for i := range c.nodes {
		c.start(i)
	}
	return c
}

// names returns the addresses of the nodes, which are those of their wires.
func (c *cluster) names() (names []string) {
	for _, w := range c.wires {
		names = append(names, w.Addr().String())
	}
	return names
}

func (c *cluster) start(i int) {
	s := c.nodes[i]
	s.Cmd = clitest.Process(c.T, append(c.more, "-listen", s.address, "-http", s.page, "-dir", c.dirs[i],
		"-nodes", strings.Join(c.names(), ","), "-node", c.names()[i])...)
	s.begin(c.T)
}

func (c *cluster) kill(i int) {
	c.nodes[i].Process.Signal(syscall.SIGKILL)
	c.nodes[i].Wait()
}

// own returns a host whose key a node has.
func (c *cluster) own(i, number int) string {
	for k := 0; ; k++ {
		if host := fmt.Sprint("h", k); frontier.Owner(host, len(c.nodes)) == i {
			if number--; number < 0 {
				return host
			}
		}
	}
}

// owned lists the URLs of all nodes, of which each has those of its keys only.
func (c *cluster) owned() map[string]*pb.KnownURLItem {
	c.Helper()
	urls := map[string]*pb.KnownURLItem{}
	for i, s := range c.nodes {
		list := must(s.ListURLs(c.Context(), &pb.ListUrlParams{Size: 1 << 31, Local: true}))
		must(receive(list, func(item *pb.URLItem) {
			info := item.GetKnown().GetInfo()
			if urls[info.Url] != nil || frontier.Owner(info.Key, len(c.nodes)) != i {
				c.Errorf("node %d has %s", i, info.Url)
			}
			urls[info.Url] = item.GetKnown()
		}))
	}
	return urls
}

// ledger is what the nodes answered to clients.
type ledger struct {
	sync.Mutex
	acked  map[string]bool
	done   map[string]bool      // completed, and that is acknowledged
	held   map[string]bool      // handed out, and not put back
	served map[string]time.Time // of each queue
	got    int
	failed int // puts that were answered FAIL
}

// TestKillNodes holds that over kill -9 of each of three nodes, and cuts of the network between
// them, nothing that was acknowledged is lost, no URL is handed out twice within its hold and no
// delay or block of a host is broken, while eight streams put to any node and others fetch.
func TestKillNodes(t *testing.T) {
	t.Parallel()
	rounds := 6
	if *full {
		rounds = 100
	}
	const (
		hosts         = 50
		blocked, slow = "h7", "h8"
		slowly        = 4 // seconds; a start takes less
	)
	c := newCluster(t, 3)
	l := &ledger{acked: map[string]bool{}, done: map[string]bool{}, held: map[string]bool{},
		served: map[string]time.Time{}}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	clients := make([]pb.URLFrontierClient, 3) // they outlive the processes
	for i, s := range c.nodes {
		clients[i] = s.URLFrontierClient
	}
	puts := must(clients[0].PutURLs(ctx)) // limits are of queues that are there
	for _, host := range []string{blocked, slow} {
		puts.Send(discovered("http://" + host + "/"))
		must(puts.Recv())
	}
	must(clients[1].BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: blocked, Time: 1 << 40}))
	must(clients[2].SetDelay(ctx, &pb.QueueDelayParams{Key: slow, DelayRequestable: slowly}))

	// stream puts what next returns, and calls answered with each answer.
	stream := func(client pb.URLFrontierClient, next func() *pb.URLItem, answered func(*pb.AckMessage)) {
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			puts, err := client.PutURLs(ctx)
			if err != nil {
				continue
			}
			go func() {
				for item := next(); item != nil && puts.Send(item) == nil; item = next() {
				}
			}()
			receive(puts, answered)
		}
	}
	for k := range 8 {
		var i atomic.Int64
		next := func() *pb.URLItem {
			time.Sleep(500 * time.Microsecond)
			n := i.Add(1)
			return discovered(fmt.Sprintf("http://h%d/%d/%d", n%hosts, k, n))
		}
		wg.Go(func() {
			stream(clients[k%3], next, func(ack *pb.AckMessage) {
				l.Lock()
				defer l.Unlock()
				l.acked[ack.ID] = l.acked[ack.ID] || ack.Status == pb.AckMessage_OK
				if ack.Status == pb.AckMessage_FAIL {
					l.failed++
				}
			})
		})
	}
	back := make(chan *pb.URLItem, 1<<20)
	for k := range 3 { // what was fetched is put back to any node: completed, or due again at once
		next := func() *pb.URLItem {
			select {
			case item := <-back:
				if item.GetKnown().RefetchableFromDate > 0 {
					l.Lock()
					delete(l.held, item.GetKnown().GetInfo().Url)
					l.Unlock()
				}
				return item
			case <-ctx.Done():
				return nil
			}
		}
		wg.Go(func() {
			stream(clients[k], next, func(ack *pb.AckMessage) {
				l.Lock()
				defer l.Unlock()
				if url, ended := strings.CutSuffix(ack.ID, " done"); ended && ack.Status == pb.AckMessage_OK {
					l.done[url] = true
				}
			})
		})
	}
	fetch := func(client pb.URLFrontierClient, p *pb.GetParams) {
		p.DelayRequestable, p.MaxUrlsPerQueue = 100_000, 1<<20
		gets, err := client.GetURLs(ctx, p)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		receive(gets, func(u *pb.URLInfo) {
			now := time.Now()
			l.Lock()
			defer l.Unlock()
			delay := time.Second
			if u.Key == slow {
				delay *= slowly
			}
			switch l.got++; {
			case l.held[u.Url]:
				t.Errorf("%s is handed out twice within its hold", u.Url)
			case l.done[u.Url]:
				t.Errorf("%s is handed out after it was completed", u.Url)
			case u.Key == blocked:
				t.Errorf("the blocked queue is served")
			case !seen[u.Key] && now.Sub(l.served[u.Key]) < delay:
				t.Errorf("%s is served again after %v", u.Key, now.Sub(l.served[u.Key]))
			}
			l.held[u.Url], seen[u.Key], l.served[u.Key] = true, true, now
			item := &pb.URLItem{ID: u.Url, Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: u}}}
			switch l.got % 3 {
			case 0:
				item.ID += " done"
			case 1:
				item.GetKnown().RefetchableFromDate = 1
			default:
				return // its crawler ends before it has it
			}
			back <- item
		})
	}
	for k := range 3 {
		wg.Go(func() { // each node hands out what it has
			for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
				fetch(clients[k], &pb.GetParams{MaxQueues: 5})
			}
		})
	}
	wg.Go(func() { // and any node, of a key
		for i := 0; ctx.Err() == nil; i++ {
			fetch(clients[i%3], &pb.GetParams{Key: fmt.Sprint("h", i%hosts), Item: &pb.GetParams_CrawlID{}})
			time.Sleep(20 * time.Millisecond)
		}
	})

	for round := range rounds {
		w := c.wires[rand.IntN(3)]
		l.Lock()
		had := l.got
		l.Unlock()
		switch round % 3 {
		case 0:
			w.tear(true)
		case 1:
			w.silent.Store(true)
		}
		time.Sleep(time.Duration(200+round*37%300) * time.Millisecond)
		c.kill(round / 2 % 3)
		time.Sleep(time.Duration(100+round*53%400) * time.Millisecond)
		w.tear(false)
		w.silent.Store(false)
		c.start(round / 2 % 3)
		for wait := 0; wait < 600; wait++ { // a busy machine takes longer
			l.Lock()
			got := l.got
			l.Unlock()
			if got > had {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	stop()
	wg.Wait()
	urls, n, lost := c.owned(), 0, 0
	for url, ok := range l.acked {
		if ok {
			if n++; urls[url] == nil {
				lost++
			}
		}
	}
	for url := range l.done {
		if u := urls[url]; u == nil || u.RefetchableFromDate != 0 {
			t.Errorf("%s was completed, and is not", url)
		}
	}
	if lost > 0 || n == 0 || l.got == 0 || len(l.done) == 0 {
		t.Fatalf("%d of %d acknowledged URLs are lost, %d were handed out, %d completed", lost, n, l.got, len(l.done))
	}
	t.Logf("%d kills: %d URLs acknowledged, %d puts failed, %d handed out, %d completed",
		rounds, n, l.failed, l.got, len(l.done))
}

// TestNodesCut: when the network to a node is silent, all others go on, calls about its keys fail
// within 20 seconds, and go on when the network is back.
func TestNodesCut(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	t.Parallel()
	c := newCluster(t, 3)
	a := c.nodes[0]
	puts := must(a.PutURLs(t.Context()))
	send := func(host, path string) pb.AckMessage_Status {
		puts.Send(discovered("http://" + host + "/" + path))
		return must(puts.Recv()).Status
	}
	ours, theirs, others := c.own(0, 0), c.own(1, 0), c.own(2, 0)
	for _, host := range []string{ours, theirs, others} {
		if got := send(host, "before"); got != pb.AckMessage_OK {
			t.Fatal(host, got)
		}
	}
	began := time.Now()
	c.wires[1].silent.Store(true)
	went := make(chan error)
	go func() { // a stream of its own, without a URL of that node
		stream := must(a.PutURLs(t.Context()))
		for i := range 100 {
			for _, host := range []string{ours, others} {
				stream.Send(discovered(fmt.Sprintf("http://%s/during%d", host, i)))
				if ack := must(stream.Recv()); ack.Status != pb.AckMessage_OK {
					t.Error(ack)
				}
			}
		}
		_, err := c.nodes[1].GetURLs(t.Context(), &pb.GetParams{})
		went <- err
	}()
	if err := <-went; err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("the other nodes go on after %v: %v", time.Since(began), err)
	}
	if got := send(theirs, "during"); got != pb.AckMessage_FAIL || time.Since(began) > 20*time.Second {
		t.Errorf("a put is answered %v after %v, want FAIL within 20 s", got, time.Since(began))
	}
	_, err := a.GetURLStatus(t.Context(), &pb.URLStatusRequest{Url: "http://" + theirs + "/before"})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), c.names()[1]) {
		t.Error(err)
	}
	c.wires[1].silent.Store(false)
	back := time.Now()
	for send(theirs, "after") == pb.AckMessage_FAIL {
		if time.Sleep(50 * time.Millisecond); time.Since(back) > 30*time.Second {
			t.Fatal("the node is back, and its keys are not")
		}
	}
	t.Logf("cut: noticed, and %v until it was back", time.Since(back))
	if urls := c.owned(); len(urls) < 3+200+1 {
		t.Errorf("there are %d URLs", len(urls))
	}
}

// TestMoveNodes: the URLs of two nodes go to three others while all serve, each to its owner, with
// their dates; a node that is down is said, and once it is back the same command ends it.
func TestMoveNodes(t *testing.T) {
	t.Parallel()
	old, c := newCluster(t, 2), newCluster(t, 3)
	put(t, old.nodes[0], 0, 1000, 60, 0)
	put(t, old.nodes[1], 1000, 2000, 60, 4_000_000_000)
	done := must(old.nodes[0].PutURLs(t.Context()))
	info := &pb.URLInfo{Url: "http://done/"}
	done.Send(&pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info}}})
	must(done.Recv())
	all := filepath.Join(t.TempDir(), "all")
	if _, _, err := clitest.Call(t, run, "-export", all, "-from", old.nodes[1].address); err != nil {
		t.Fatal(err)
	}
	importing := []string{"-import", all, "-to", c.nodes[0].address}
	c.kill(2)
	_, _, err := clitest.Call(t, run, importing...)
	if err == nil || !strings.Contains(err.Error(), "the node that is to have it does not answer") {
		t.Errorf("with a node that is down it says %v", err)
	}
	c.start(2)
	for wait := 0; ; wait++ { // until the others know that it is back
		if _, _, err = clitest.Call(t, run, importing...); err == nil {
			break
		}
		if time.Sleep(100 * time.Millisecond); wait > 100 {
			t.Fatal(err)
		}
	}
	was, is := old.owned(), c.owned()
	for url, u := range was {
		if is[url] == nil || is[url].RefetchableFromDate != u.RefetchableFromDate {
			t.Fatalf("%s is moved as %v, and was %v", url, is[url], u)
		}
	}
	if len(was) != 2001 || len(is) != 2001 {
		t.Errorf("of %d URLs %d are moved", len(was), len(is))
	}
}

// TestNodesTLS: nodes with a certificate each, which an authority signed, speak TLS to each other, and -export
// to them, by the certificate of the authority.
func TestNodesTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(file, name string, der []byte) string {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	newKey := func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), crand.Reader)) }
	authorityKey := newKey()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	sign := func(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
		return must(x509.CreateCertificate(crand.Reader, c, authority, &key.PublicKey, authorityKey))
	}
	root := sign(authority, authorityKey)
	ca := write("authority", "CERTIFICATE", root)
	addresses := []string{freeAddress(), freeAddress()}
	slices.Sort(addresses)
	for i, address := range addresses {
		name, key := fmt.Sprint("node", i), newKey()
		cert := write(name+".cert", "CERTIFICATE", sign(&x509.Certificate{
			SerialNumber: big.NewInt(int64(2 + i)), Subject: pkix.Name{CommonName: name},
			NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}, key))
		runHere(t, keepAlive, "-listen", address, "-http", "", "-dir", filepath.Join(dir, name),
			"-nodes", strings.Join(addresses, ","), "-tls-ca", ca, "-tls-cert", cert,
			"-tls-key", write(name+".key", "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))))
	}
	roots := x509.NewCertPool()
	roots.AddCert(must(x509.ParseCertificate(root)))
	var clients []pb.URLFrontierClient
	for _, address := range addresses {
		client := pb.NewURLFrontierClient(dial(t, address, credentials.NewTLS(&tls.Config{RootCAs: roots})))
		must(client.GetActive(t.Context(), &pb.Local{Local: true}, grpc.WaitForReady(true)))
		clients = append(clients, client)
	}
	const n = 10 // URLs, which are of keys of both
	puts := must(clients[0].PutURLs(t.Context()))
	for i := range n {
		puts.Send(discovered(fmt.Sprintf("http://h%d/", i)))
		if ack := must(puts.Recv()); ack.Status != pb.AckMessage_OK {
			t.Error(ack)
		}
	}
	local := true
	for i, client := range clients {
		if own := must(client.CountURLs(t.Context(), &pb.CountUrlParams{Local: &local})).Value; own == 0 || own == n {
			t.Errorf("node %d has %d URLs of %d", i, own, n)
		}
	}
	out, _, err := clitest.Call(t, run, "-export", "-", "-from", addresses[1], "-tls-ca", ca)
	if strings.Count(out, "\n") != n || err != nil {
		t.Errorf("exported are %s: %v", out, err)
	}
}
