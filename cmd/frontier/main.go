// Command frontier is the service that crawlers ask what to fetch next, by the
// protocol of crawler-commons URLFrontier. What was put is on disk when it is
// acknowledged.
//
//	go run ./cmd/frontier
//	go run ./cmd/frontier -learn news:60
//	go run ./cmd/frontier -nodes a:7071,b:7071 -node a:7071 -listen :7071
//	go run ./cmd/frontier -export urls.jsonl
//	go run ./cmd/frontier -export urls.jsonl -from 127.0.0.1:7071
//	go run ./cmd/frontier -import urls.jsonl -to 127.0.0.1:7071
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/web"
	"ephemera/env"
	"ephemera/internal/files"
	"ephemera/live/clock"
	"ephemera/live/frontier"
	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/store"
)

const (
	// longestMessage is that of grpc's clients, too: some 40 000 URLs.
	longestMessage = 4 << 20
	// mostStreams are open on one connection at most.
	mostStreams = 20_000
	// patience is how long calls may take to end after a signal, and connections to be made.
	patience = 10 * time.Second
	// farewell is how long clients may take to close their connections once their calls have ended.
	farewell = 300 * time.Millisecond
)

// keepAlive is how a client that has vanished is found out: within two minutes.
var keepAlive = keepalive.ServerParameters{Time: time.Minute, Timeout: time.Minute}

// peerAlive is how a node that has vanished is found out: within 15 seconds.
var peerAlive = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}

// longestBackoff is how long a node that comes back may be taken for one that does not answer.
const longestBackoff = 2 * time.Second

func main() {
	debug.SetGCPercent(50) // most of the memory is URLs, which last
	cli.Main("frontier", run)
}

type settings struct {
	listen, http, dir  string
	cert, key, ca      string
	exportTo, importOf string
	from, to           string
	backups, check     string
	sync               time.Duration
	log                cli.LogFormat
	nodes              []string
	node               string
	keepAlive          keepalive.ServerParameters
	learn              map[string]frontier.LearnOptions
}

func (s *settings) parse(args []string, stdout io.Writer) (done bool, err error) {
	s.learn = map[string]frontier.LearnOptions{}
	f := cli.NewFlags("frontier", `
Serves crawlers that ask what to fetch next, by the protocol of URLFrontier. What was
put is on disk when it is acknowledged.

  frontier [flags]`)
	f.StringVar(&s.listen, "listen", "127.0.0.1:7071", "`address` of the service")
	f.StringVar(&s.http, "http", "127.0.0.1:7072", "`address` of the page and of /metrics; empty for none")
	f.StringVar(&s.dir, "dir", "frontier", "`directory` of the state")
	f.StringVar(&s.cert, "tls-cert", "", "`file` of the certificate; with -tls-key, clients speak TLS")
	f.StringVar(&s.key, "tls-key", "", "`file` of the certificate's key")
	f.StringVar(&s.ca, "tls-ca", "",
		"`file` of the certificates by which other nodes, or the service of -from or -to, are known, "+
			"commonly of the authority that signed theirs; by default that of -tls-cert")
	f.StringVar(&s.backups, "backup", "",
		"`directory` for copies of the state, one for each SIGUSR1 and each POST of /backup at -http")
	f.Func("sync", "`when` what was put is synced to disk: every (before it is acknowledged; the default), "+
		"a time such as 100ms (so much later at most), or off (when the system does)",
		func(v string) (err error) { s.sync, err = syncFlag(v); return err })
	f.StringVar(&s.check, "check", "", "ask a service at its -http `address` whether it is healthy, and end")
	f.Service(&s.log)
	f.Func("learn", "`crawl:fetches` an hour, or a TOML file, of URLs that are fetched again when the learner says; "+
		"behind it ,freshness (the share of copies that are as their page is), ,delay (the mean time until an item "+
		"is found; by default one of these, by what is reported first), ,interest:4h, ,delay:2 or ,deadline:24h; "+
		"with ,shadow it only looks on", func(v string) error { return learnFlag(v, s.learn) })
	f.Func("nodes", "`addresses` of the frontiers that share the URLs, the same list for each, as a:7071,b:7071",
		func(v string) error { s.nodes = strings.Split(v, ","); return nil })
	f.StringVar(&s.node, "node", "", "with -nodes: `address` of this one; by default that of -listen")
	f.StringVar(&s.exportTo, "export", "", "write all URLs to a `file` as JSON lines, and end; - is standard output")
	f.StringVar(&s.from, "from", "",
		"with -export: `address` of a service that runs, "+
			"whose URLs are written; if it speaks TLS, by -tls-ca or its certificate, -tls-cert")
	f.StringVar(&s.importOf, "import", "", "read the URLs of such a `file`, and end; - is standard input")
	f.StringVar(&s.to, "to", "", "with -import: `address` of a service that runs, to which the URLs are put; "+
		"of several, any: each URL goes to its owner")
	if _, done, err := f.ParseAll(args, 0, stdout); done || err != nil {
		return done, err
	}
	switch {
	case s.listen == "":
		return false, cli.Usagef("-listen is empty; needed is an address such as 127.0.0.1:7071")
	case s.from != "" && (s.exportTo == "" || s.key != ""):
		return false, cli.Usagef("-from is given with -export, and without -tls-key")
	case s.to != "" && (s.importOf == "" || s.key != ""):
		return false, cli.Usagef("-to is given with -import, and without -tls-key")
	case s.from == "" && s.to == "" && (s.cert == "") != (s.key == ""):
		return false, cli.Usagef("-tls-cert and -tls-key are given together or not at all")
	case s.ca != "" && s.cert == "" && s.from == "" && s.to == "":
		return false, cli.Usagef("-tls-ca is given with -tls-cert, -from or -to")
	case s.exportTo != "" && s.importOf != "":
		return false, cli.Usagef("-export and -import are two runs")
	}
	if err := s.parseNodes(); err != nil {
		return false, err
	}
	for crawl, o := range s.learn {
		o.Nodes = len(s.nodes)
		s.learn[crawl] = o
		if err := o.Check(); err != nil {
			return false, cli.Usagef("-learn: crawl %q: %v", crawl, err)
		}
	}
	return false, nil
}

// syncFlag reads every, off, or the time for which a put may be acknowledged without a sync.
func syncFlag(v string) (time.Duration, error) {
	switch v {
	case "every":
		return 0, nil
	case "off":
		return store.Never, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		return 0, errors.New("allowed are every, off, and a time above 0 such as 100ms")
	}
	return d, nil
}

func (s *settings) parseNodes() error {
	switch {
	case s.nodes == nil && s.node == "":
		return nil
	case s.nodes == nil:
		return cli.Usagef("-node is given with -nodes")
	}
	s.node = cmp.Or(s.node, s.listen)
	for i, address := range s.nodes {
		if _, _, err := net.SplitHostPort(address); err != nil || slices.Index(s.nodes, address) != i {
			return cli.Usagef("-nodes: %q is at place %d; allowed are addresses as host:7071, each once", address, i+1)
		}
	}
	if !slices.Contains(s.nodes, s.node) {
		return cli.Usagef("-nodes has no %q, the address of this one; allowed for -node is one of the list", s.node)
	}
	return nil
}

// peers returns the clients of the other nodes, and closes their connections with the context.
func (s *settings) peers(ctx context.Context) (map[string]grpc.ClientConnInterface, error) {
	peers := map[string]grpc.ClientConnInterface{}
	creds, err := s.credentials()
	if err != nil {
		return nil, err
	}
	for _, address := range s.nodes {
		if address == s.node {
			continue
		}
		again := backoff.DefaultConfig
		again.MaxDelay = longestBackoff
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: again, MinConnectTimeout: longestBackoff}),
			grpc.WithKeepaliveParams(peerAlive))
		if err != nil {
			return nil, fmt.Errorf("-nodes: %s: %w", address, err)
		}
		context.AfterFunc(ctx, func() { conn.Close() })
		peers[address] = conn
	}
	return peers, nil
}

// credentials returns by what a service, or another node, is known that speaks TLS, if it does.
func (s *settings) credentials() (credentials.TransportCredentials, error) {
	file := cmp.Or(s.ca, s.cert)
	if file == "" {
		return insecure.NewCredentials(), nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate; allowed is a file in PEM", file)
	}
	return credentials.NewClientTLSFromCert(roots, ""), nil
}

// learnFlag reads CRAWL:PER_HOUR, with ,OBJECTIVE or ,shadow behind it, or the name of a TOML
// file.
func learnFlag(v string, learn map[string]frontier.LearnOptions) error {
	if strings.HasSuffix(v, ".toml") {
		return learnFile(v, learn)
	}
	var opt frontier.LearnOptions
	text, more, _ := strings.Cut(v, ",")
	for part := range strings.SplitSeq(more, ",") {
		if part == "" {
			continue
		} else if part == "shadow" {
			opt.Shadow = true
		} else if err := opt.Objective.UnmarshalText([]byte(part)); err != nil {
			return fmt.Errorf("%w; ,shadow is allowed too", err)
		}
	}
	i := strings.LastIndexByte(text, ':')
	perHour, err := strconv.ParseFloat(text[i+1:], 64)
	if i <= 0 || err != nil {
		return errors.New("allowed are CRAWL:PER_HOUR, with ,OBJECTIVE or ,shadow behind it, and a file *.toml")
	}
	opt.PerHour = perHour
	return learnCrawl(text[:i], opt, learn)
}

// learnFile reads a table [crawl.NAME] for each crawl.
func learnFile(file string, learn map[string]frontier.LearnOptions) error {
	var c struct {
		Crawl map[string]frontier.LearnOptions `toml:"crawl"`
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const allowed = "tables [crawl.NAME] of per_hour, shortest, longest, shadow, objective, changed and dates"
	if err := env.DecodeTOML(file, text, &c, allowed); err != nil {
		return err
	}
	if len(c.Crawl) == 0 {
		return fmt.Errorf("%s names no crawl; needed is a table [crawl.NAME]", file)
	}
	for crawl, opt := range c.Crawl {
		if err := learnCrawl(crawl, opt, learn); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// learnCrawl takes up a crawl, which is named once.
func learnCrawl(crawl string, opt frontier.LearnOptions, learn map[string]frontier.LearnOptions) error {
	if _, is := learn[crawl]; is {
		return fmt.Errorf("crawl %q is named twice; needed is one budget", crawl)
	}
	learn[crawl] = opt
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set := settings{keepAlive: keepAlive}
	if done, err := set.parse(args, stdout); done || err != nil {
		return err
	}
	return set.run(ctx, stdout, stderr)
}

func (set *settings) run(ctx context.Context, stdout, stderr io.Writer) error {
	switch {
	case set.from != "":
		return set.exportFrom(ctx, stdout)
	case set.to != "":
		return set.importTo(ctx)
	case set.check != "":
		return healthy(ctx, set.check)
	}
	if set.exportTo != "" {
		if err := cli.NeedState("-export", set.dir); err != nil {
			return err
		}
	}
	levels := map[string]*slog.LevelVar{"frontier": new(slog.LevelVar), "store": new(slog.LevelVar)}
	logger := func(name string) *slog.Logger {
		return slog.New(set.log.Handler(stderr, &slog.HandlerOptions{Level: levels[name]})).With("package", name)
	}
	var counts atomic.Pointer[frontier.Server] // writes to disk, once it is there
	moves := set.exportTo != "" || set.importOf != ""
	var asked <-chan os.Signal
	if !moves {
		asked = backupSignal()
	}
	st, err := set.open(ctx, &store.Options{
		Program: "frontier", Delay: frontier.StoreDelay, Log: logger("store"), Sync: set.sync, Uptime: clock.Now,
		Synced: func(took time.Duration) {
			if server := counts.Load(); server != nil {
				server.Synced(took)
			}
		},
	})
	switch {
	case err == nil:
	case errors.Is(err, ctx.Err()) && !moves: // nothing was put yet
		return nil
	default:
		return err
	}
	if moves {
		return errors.Join(set.move(st, stdout), st.Close())
	}
	living, end := context.WithCancel(context.Background())
	defer end()
	s, err := set.newDaemon(living, st, logger("frontier"), levels)
	if err == nil {
		counts.Store(s.server)
		s.asked = asked
		err = s.run(ctx)
	}
	return errors.Join(err, st.Close())
}

// open opens the state, which may take long. It does not wait for that when the context ends.
func (set *settings) open(ctx context.Context, options *store.Options) (*store.Store, error) {
	opened := make(chan error, 1)
	var st *store.Store
	go func() {
		s, err := store.Open(set.dir, options)
		st = s
		opened <- err
	}()
	select {
	case err := <-opened:
		return st, set.advise(err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// daemon is a service that runs.
type daemon struct {
	*settings
	log     *slog.Logger
	listen  net.Listener
	server  *frontier.Server
	learned *frontier.Learned
	calls   *grpc.Server
	health  *health.Server
	asked   <-chan os.Signal // for a backup
}

// newDaemon returns the service over a state. Its connections to other nodes end with the context.
func (set *settings) newDaemon(
	ctx context.Context, st *store.Store, log *slog.Logger, levels map[string]*slog.LevelVar,
) (*daemon, error) {
	s := &daemon{settings: set, log: log, health: health.NewServer()}
	var err error
	if s.learned, err = frontier.NewLearned(st, log, set.learn); err != nil {
		return nil, err
	}
	if s.listen, err = net.Listen("tcp", set.listen); err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	peers, err := set.peers(ctx)
	if err != nil {
		return nil, err
	}
	s.server, err = frontier.New(st, frontier.Options{
		Address: cmp.Or(set.node, s.listen.Addr().String()), Peers: peers,
		Log: log, Levels: levels, Learned: s.learned, Backups: set.backups,
	})
	if err != nil {
		return nil, err
	}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(longestMessage), grpc.MaxConcurrentStreams(mostStreams),
		grpc.KeepaliveParams(set.keepAlive), grpc.ConnectionTimeout(patience),
		grpc.KeepaliveEnforcementPolicy(
			keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true},
		),
	}
	if set.cert != "" {
		cert, err := tls.LoadX509KeyPair(set.cert, set.key)
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&cert)))
	} else if host, _, _ := net.SplitHostPort(s.listen.Addr().String()); !net.ParseIP(host).IsLoopback() {
		log.Warn("whoever reaches the address can read and change everything; "+
			"-tls-cert and -tls-key encrypt it, and a firewall or proxy has to say who may",
			"listen", s.listen.Addr().String())
	}
	s.calls = grpc.NewServer(append(options, s.server.Interceptors()...)...)
	pb.RegisterURLFrontierServer(s.calls, s.server)
	frontier.RegisterNodes(s.calls, s.server)
	healthpb.RegisterHealthServer(s.calls, s.health)
	reflection.Register(s.calls)
	return s, nil
}

// run answers, shows the page, and learns, until the context ends.
func (s *daemon) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	pages := web.Server(s.http, s.server.HTTP(), "/health")
	if s.http != "" {
		l, err := net.Listen("tcp", s.http)
		if err != nil {
			s.calls.Stop()
			return fmt.Errorf("-http: %w", err)
		}
		s.log.Info("page", "address", "http://"+l.Addr().String())
		group.Go(func() error {
			if err := pages.Serve(l); err != http.ErrServerClosed {
				return err
			}
			return nil
		})
	}
	group.Go(func() error { return serve(s.calls, s.listen) }) // when the page can be asked whether it serves
	group.Go(func() error {
		each(ctx, time.Tick(time.Second), s.learned.Advance)
		s.learned.Save() // it logs an error
		return nil
	})
	group.Go(func() error { // a node that does not answer does not keep learners waiting
		each(ctx, time.Tick(time.Second), func() { s.server.ShareBudgets(ctx) })
		return nil
	})
	group.Go(func() error {
		each(ctx, s.asked, func() { go s.backup() })
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		s.log.Info("ending")
		s.health.Shutdown()
		pages.Shutdown(ctx) // at once: what it is asked for already, such as a backup, is answered
		stop := time.AfterFunc(patience, s.calls.Stop)
		ended := make(chan struct{})
		go func() {
			s.server.Close()
			stop.Reset(farewell)
			close(ended)
		}()
		late := time.After(patience)
		s.calls.GracefulStop()
		select {
		case <-ended:
		case <-late:
			s.log.Warn("calls did not end and are broken off, but for a backup among them, which is made")
		}
		shut, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		if pages.Shutdown(shut) != nil {
			pages.Close()
		}
		return nil
	})
	s.log.Info("serving", "listen", s.listen.Addr().String(), "dir", s.dir)
	return group.Wait()
}

// backup copies the state if there is a directory for that.
func (s *daemon) backup() {
	if s.backups == "" {
		s.log.Warn("no backup is made: -backup names no directory")
		return
	}
	s.server.Backup() // it logs an error
}

// serve serves until the server is stopped, which may have been before.
func serve(g *grpc.Server, l net.Listener) error {
	if err := g.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// each does something whenever a channel has something, until the context ends.
func each[T any](ctx context.Context, when <-chan T, do func()) {
	for {
		select {
		case <-when:
			do()
		case <-ctx.Done():
			return
		}
	}
}

// healthy asks a service whether it serves.
func healthy(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+address+"/health", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("-check %s: %s", address, answer.Status)
	}
	return nil
}

// move exports or imports.
func (set *settings) move(st *store.Store, stdout io.Writer) error {
	if set.importOf != "" {
		return set.read(func(in io.Reader) (int, error) { return frontier.Import(in, st, time.Now().UnixMilli()) })
	}
	return set.write(stdout, func(w io.Writer) error {
		_, err := frontier.Export(w, st)
		return err
	})
}

// read reads what is to be imported.
func (set *settings) read(take func(io.Reader) (int, error)) error {
	in, name := os.Stdin, "standard input"
	if set.importOf != "-" {
		var err error
		if in, err = os.Open(set.importOf); err != nil {
			return err
		}
		defer in.Close()
		name = set.importOf
	}
	if n, err := take(in); err != nil {
		return fmt.Errorf("%s: %w; the %d URLs before it are kept", name, err, n)
	}
	return nil
}

// importTo puts what is to be imported to a service that runs.
func (set *settings) importTo(ctx context.Context) error {
	client, end, err := set.client(set.to)
	if err != nil {
		return err
	}
	defer end()
	return set.read(func(in io.Reader) (int, error) { return frontier.ImportTo(ctx, in, client) })
}

// client returns a client of a service that runs, and what ends it.
func (set *settings) client(address string) (pb.URLFrontierClient, func() error, error) {
	creds, err := set.credentials()
	if err != nil {
		return nil, nil, err
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		return nil, nil, err
	}
	return pb.NewURLFrontierClient(conn), conn.Close, nil
}

// write writes an export.
func (set *settings) write(stdout io.Writer, export func(io.Writer) error) error {
	if set.exportTo == "-" {
		return export(stdout)
	}
	return files.Write(set.exportTo, export)
}

// exportFrom exports what a service has that runs.
func (set *settings) exportFrom(ctx context.Context, stdout io.Writer) error {
	client, end, err := set.client(set.from)
	if err != nil {
		return err
	}
	defer end()
	return set.write(stdout, func(w io.Writer) error {
		n, err := frontier.ExportFrom(ctx, w, client)
		if err != nil {
			return fmt.Errorf("-from %s: after %d URLs: %w", set.from, n, err)
		}
		return nil
	})
}

// advise says of a state that is in use what can be done in place of the call.
func (set *settings) advise(err error) error {
	switch {
	case !errors.Is(err, store.ErrInUse):
		return err
	case set.exportTo != "":
		return fmt.Errorf("%w; to export from it, add -from and its -listen address: -export %s -from %s",
			err, set.exportTo, set.listen)
	case set.importOf != "":
		return fmt.Errorf("%w; end it before -import, or add -to and its -listen address: -import %s -to %s",
			err, set.importOf, set.listen)
	}
	return fmt.Errorf("%w; end it, or give another -dir", err)
}
