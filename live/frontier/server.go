// Package frontier is the service of the URLFrontier protocol over live/store:
// docs/frontier.md says what each call does.
//
//  1. server.go has the calls; those that write answer when it is on disk.
//  2. key.go derives the key of a URL that has none.
//  3. learned.go sets when known URLs are fetched again, by what clients say of fetches (said.go);
//     kept.go keeps what was learned.
//  4. page.go shows what goes on, to people and to Prometheus.
//  5. nodes.go hands what is of other nodes' keys on to them; shares.go shares the budgets of
//     learned crawls among them.
//  6. move.go writes and reads dumps; backup.go copies the state while it runs.
package frontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

const (
	// DefaultCrawl is the crawl of items that name none.
	DefaultCrawl = "DEFAULT"

	longestKey   = 255     // bytes of a key or crawl ID
	longestInfo  = 1 << 20 // bytes of a URL with its metadata: answers have more, and are to reach clients
	defaultSize  = 100     // of a list
	itemsAhead   = 1024
	batchesAhead = 16
	// together is how many URLs of a call are handed out with the first sync, as far as it
	// asks for them, and with each further one twice as many as before, up to mostTogether: the
	// client gets the first ones soon, and many wait for few syncs. One that goes away leaves no
	// more held than about twice what it was sent.
	together, mostTogether = 1000, 16_000
	// bytesTogether is how many bytes of metadata they are to have at most, by those that came before.
	bytesTogether = 16 << 20
)

// Server serves the protocol: it has a method for each call.
type Server struct {
	pb.UnimplementedURLFrontierServer
	opt     Options
	store   *store.Store
	nodes   nodes
	shared  map[string]time.Time // when the budgets of learned crawls were shared last
	metrics *metrics
	failed  failures

	milliseconds atomic.Bool // a date that seems to be in them was logged

	inactive atomic.Bool
	closing  context.Context
	// Closing ends the streams of clients: what was received is answered first.
	Closing  context.CancelFunc
	underWay sync.RWMutex // each call reads, and Close writes
}

// Options are what a [Server] is made from.
type Options struct {
	Address string                              // of this node, which ListNodes returns
	Peers   map[string]grpc.ClientConnInterface // to the other nodes, by address; none for a node of its own
	Log     *slog.Logger
	Levels  map[string]*slog.LevelVar // that SetLogLevel changes, by package
	Learned *Learned                  // nil learns of no crawl
	Backups string                    // directory of the copies that Backup makes; empty for none
}

// Close is Closing, and refuses further calls. It returns when none is under way.
func (s *Server) Close() {
	s.Closing()
	s.underWay.Lock()
}

// inactive is the name under which the store keeps that nothing is handed out.
const inactive = "inactive"

// New returns a server over a store.
func New(s *store.Store, o Options) (*Server, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Learned == nil {
		var err error
		o.Learned, err = NewLearned(s, o.Log, nil)
		if err != nil {
			return nil, err
		}
	}
	srv := &Server{opt: o, store: s, nodes: newNodes(o.Address, o.Peers), shared: map[string]time.Time{}}
	srv.closing, srv.Closing = context.WithCancel(context.Background())
	srv.metrics = newMetrics(srv)
	if err := s.Lost(); err != nil {
		srv.failed.add(srv.now(), err)
	}
	kept, err := s.Value(inactive)
	if err != nil {
		return nil, err
	}
	srv.inactive.Store(len(kept) > 0)
	if err := srv.settle(); err != nil {
		return nil, err
	}
	return srv, nil
}

// StoreDelay is the delay between two hand-outs of a queue that a store has which
// is made anew, in its terms.
const StoreDelay = 2000

// A delay of d seconds ends with the second after it, and so does a block until
// second t: for whoever counts in whole seconds they are never too short.
func openAfter(seconds int64) int64 {
	return (min(seconds, math.MaxInt64/1000-1) + 1) * 1000
}

func seconds(t uint64) int64 { return int64(min(t, math.MaxInt64/1000-1)) * 1000 }

// inMilliseconds reports whether a date seems not to be in seconds: as these it is beyond the year
// 33 000, and as milliseconds in 2001 to 2286. Later ones may be meant as never.
func inMilliseconds(date uint64) bool { return 1e12 <= date && date < 1e13 }

func (s *Server) now() time.Time { return s.store.Moment().Time }

func (s *Server) ms() int64 { return s.now().UnixMilli() }

var errClosing = status.Error(codes.Unavailable, "the frontier is closing")

// failure is how an error of the store, if it is one, reaches a client.
func (s *Server) failure(err error) error {
	if err == nil {
		return nil
	}
	s.metrics.errors.Inc()
	s.failed.add(s.now(), err)
	if errors.Is(err, store.ErrFull) {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	s.opt.Log.Error("store", "error", err)
	return status.Error(codes.Internal, err.Error())
}

func crawlOf(id string) string {
	if strings.TrimSpace(id) == "" {
		return DefaultCrawl
	}
	return id
}

// identify returns what names a URL, or false if no key can be derived, a name
// is too long, or all is.
func identify(info *pb.URLInfo) (schedule.ID, bool) {
	id := schedule.ID{Crawl: crawlOf(info.GetCrawlID()), Key: info.GetKey(), URL: info.GetUrl()}
	if id.Key == "" {
		id.Key = Key(id.URL)
	}
	return id, id.Key != "" && id.URL != "" && len(id.Key) <= longestKey && len(id.Crawl) <= longestKey &&
		(proto.Size(info) <= longestInfo || sizeOf(info) <= longestInfo)
}

// sizeOf returns how many bytes a URL has with its metadata, but for key, crawl and what a dump adds.
func sizeOf(info *pb.URLInfo) int {
	others := &pb.URLInfo{Key: info.GetKey(), CrawlID: info.GetCrawlID(), Metadata: map[string]*pb.StringList{}}
	for _, name := range []string{metaState, metaQueue} {
		if added := info.GetMetadata()[name]; added != nil {
			others.Metadata[name] = added
		}
	}
	return proto.Size(info) - proto.Size(others)
}

// withoutOurs takes out of the metadata what is said to this service and is not the client's to keep.
func withoutOurs(info *pb.URLInfo) {
	maps.DeleteFunc(info.GetMetadata(), func(name string, _ *pb.StringList) bool {
		return strings.HasPrefix(name, metaOurs)
	})
}

// metadata is kept as the encoding of a URLInfo that has nothing else: what is the client's, with
// what is known of a learned URL. That of completed URLs is not kept.
func metadata(info *pb.URLInfo, due int64, learned []byte) []byte {
	withoutOurs(info)
	if learned != nil {
		if info.Metadata == nil {
			info.Metadata = map[string]*pb.StringList{}
		}
		info.Metadata[metaState] = &pb.StringList{Values: []string{string(learned)}}
	}
	if len(info.GetMetadata()) == 0 || due == schedule.Completed {
		return nil
	}
	data, err := proto.Marshal(&pb.URLInfo{Metadata: info.Metadata})
	if err != nil {
		panic("frontier: " + err.Error()) // it was decoded by the same rules
	}
	return data
}

func infoOf(r *store.Record) (*pb.URLInfo, error) {
	info, err := wholeInfo(r)
	withoutOurs(info)
	return info, err
}

// wholeInfo is infoOf with what is known of a learned URL.
func wholeInfo(r *store.Record) (*pb.URLInfo, error) {
	info := &pb.URLInfo{}
	err := proto.Unmarshal(r.Data, info)
	info.Url, info.Key, info.CrawlID = r.URL, r.Key, r.Crawl
	return info, err
}

func itemOf(r *store.Record) (*pb.URLItem, error) {
	info, err := infoOf(r)
	return knownItem(r, info), err
}

func knownItem(r *store.Record, info *pb.URLInfo) *pb.URLItem {
	return &pb.URLItem{
		Item:         &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info, RefetchableFromDate: uint64(r.Due / 1000)}},
		CreationDate: uint64(r.Created / 1000),
	}
}

// answer is what is sent once the commit is on disk, and once other nodes have answered.
type answer[Out any] struct {
	out    Out
	commit *store.Commit
	others func() // takes up what other nodes answer; may be nil
	began  time.Time
}

// converse answers what a stream brings, in order, with so many answers waiting for
// the disk at most. When it returns nothing of the stream is being handled any more, and it does
// not wait for other nodes then.
func converse[In, Out any](
	s *Server, stream grpc.BidiStreamingServer[In, Out], open opener[In, Out], ahead int,
	handle func(*links[In, Out], *In) answer[*Out],
) error {
	s.metrics.puts.Inc()
	answers := make(chan answer[*Out], ahead)
	var handling sync.Mutex // in the end it stays locked
	defer handling.Lock()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	links := newLinks(ctx, &s.nodes, open)
	var failed error
	go func() {
		defer close(answers)
		for {
			in, err := stream.Recv()
			if err != nil {
				if err != io.EOF {
					failed = err
				}
				return
			}
			if !handling.TryLock() {
				return
			}
			began := time.Now()
			a := handle(links, in)
			handling.Unlock()
			a.began = began
			select {
			case answers <- a:
			case <-ctx.Done():
				return
			}
		}
	}()
	send := func(a answer[*Out]) error {
		if a.commit.Wait(); a.others != nil {
			a.others()
		}
		err := stream.Send(a.out)
		s.metrics.putting.Observe(time.Since(a.began).Seconds())
		return err
	}
	for {
		select {
		case a, ok := <-answers:
			if !ok {
				return failed
			}
			if err := send(a); err != nil {
				return err
			}
		case <-s.closing.Done():
			for range len(answers) {
				if err := send(<-answers); err != nil {
					return err
				}
			}
			return errClosing
		}
	}
}

// ownerOf returns the node that has the key of a URL, unless it is this one.
func (s *Server) ownerOf(ctx context.Context, info *pb.URLInfo) (address string, peer pb.URLFrontierClient) {
	if len(s.opt.Peers) == 0 {
		return "", nil
	}
	if id, ok := identify(info); ok {
		return s.nodes.owner(ctx, id.Key, false)
	}
	return "", nil
}

func (s *Server) PutURLs(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage]) error {
	type toNodes = links[pb.URLItem, pb.AckMessage]
	moved := moved{s: s, on: isMove(stream.Context())}
	defer moved.end()
	handle := func(links *toNodes, item *pb.URLItem) answer[*pb.AckMessage] {
		ack := &pb.AckMessage{ID: item.GetID()}
		info := item.GetDiscovered().GetInfo()
		known := item.GetKnown()
		if known != nil {
			info = known.GetInfo()
		}
		ack.ID = cmp.Or(ack.ID, info.GetUrl())
		a := answer[*pb.AckMessage]{out: ack}
		if address, peer := s.ownerOf(links.ctx, info); peer != nil {
			theirs := links.put(address, peer, item)
			a.others = func() {
				if got, err := theirs(); s.otherFailed(err) {
					ack.Status = pb.AckMessage_FAIL
				} else {
					ack.Status = got.Status
				}
			}
		} else if known != nil && moved.on {
			ack.Status, a.commit = moved.put(item)
		} else if known != nil {
			ack.Status, a.commit = s.known(known)
		} else {
			ack.Status, a.commit = s.discovered(info)
		}
		return a
	}
	return converse(s, stream, pb.URLFrontierClient.PutURLs, itemsAhead, handle)
}

func (s *Server) PutDiscovered(stream grpc.BidiStreamingServer[pb.DiscoveredBatch, pb.BatchAck]) error {
	type toNodes = links[pb.DiscoveredBatch, pb.BatchAck]
	handle := func(links *toNodes, batch *pb.DiscoveredBatch) answer[*pb.BatchAck] {
		ack := &pb.BatchAck{ID: batch.GetID(), Statuses: make([]pb.AckMessage_Status, len(batch.GetItems()))}
		a := answer[*pb.BatchAck]{out: ack}
		type part struct {
			peer   pb.URLFrontierClient
			batch  pb.DiscoveredBatch
			places []int
			theirs func() (*pb.BatchAck, error)
		}
		parts := map[string]*part{}
		for i, info := range batch.GetItems() {
			if address, peer := s.ownerOf(links.ctx, info); peer != nil {
				if parts[address] == nil {
					parts[address] = &part{peer: peer}
				}
				to := parts[address]
				to.batch.Items, to.places = append(to.batch.Items, info), append(to.places, i)
				continue
			}
			var commit *store.Commit
			ack.Statuses[i], commit = s.discovered(info)
			a.commit = cmp.Or(commit, a.commit)
		}
		for address, p := range parts {
			p.theirs = links.put(address, p.peer, &p.batch)
		}
		a.others = func() {
			for _, p := range parts {
				got, err := p.theirs()
				failed := s.otherFailed(err) || len(got.Statuses) != len(p.places)
				for k, i := range p.places {
					if ack.Statuses[i] = pb.AckMessage_FAIL; !failed {
						ack.Statuses[i] = got.Statuses[k]
					}
				}
			}
		}
		return a
	}
	return converse(s, stream, pb.URLFrontierClient.PutDiscovered, batchesAhead, handle)
}

// otherFailed reports whether there is an error of another node, and shows it.
func (s *Server) otherFailed(err error) bool {
	if err != nil && status.Code(err) != codes.Canceled {
		s.failed.add(s.now(), err)
	}
	return err != nil
}

// discovered schedules a URL for now unless it is known. Of a learned one it may say that it has
// changed.
func (s *Server) discovered(info *pb.URLInfo) (pb.AckMessage_Status, *store.Commit) {
	s.metrics.discovered.WithLabelValues("true").Inc()
	id, ok := identify(info)
	if !ok {
		return s.put(pb.AckMessage_SKIPPED, nil, nil)
	}
	now := s.ms() / 1000 * 1000
	ping, pinged := info.GetMetadata()[metaPing]
	waited, mistake := priority(info)
	s.mistake(inPut(id, mistake))
	due := max(1000, now-waited)
	added, commit, err := s.store.Discover(id, due, now, metadata(info, due, nil))
	if added || err != nil {
		return s.put(pb.AckMessage_OK, commit, err)
	}
	if pinged {
		news, taken, mistake, err := s.opt.Learned.ping(id, ping.GetValues())
		if s.mistake(mistake); news {
			return s.put(pb.AckMessage_OK, taken, err)
		}
	}
	s.metrics.ignored.Inc()
	return s.put(pb.AckMessage_SKIPPED, commit, err)
}

// mistake tells of one in what a client says, if it is one.
func (s *Server) mistake(mistake error) {
	if mistake != nil {
		s.metrics.mistakes.Inc()
		s.opt.Log.Warn("put", "error", mistake)
		s.failed.add(s.now(), mistake)
	}
}

// metaPriority is for how many seconds more a discovered URL counts as waiting.
const metaPriority = "ephemera.priority"

// priority reads in the metadata of a discovered URL how much longer than it is true it waits, in ms.
func priority(info *pb.URLInfo) (int64, error) {
	values := info.GetMetadata()[metaPriority].GetValues()
	if len(values) == 0 {
		return 0, nil
	}
	waited, err := strconv.ParseFloat(values[0], 64)
	if err != nil || !(waited >= 0 && waited <= math.MaxUint32) {
		return 0, fmt.Errorf("%s is %.100q; allowed are seconds, 0 to %d",
			metaPriority, values[0], int64(math.MaxUint32))
	}
	return int64(waited * 1000), nil
}

// known schedules a URL anew, or completes it.
func (s *Server) known(item *pb.KnownURLItem) (pb.AckMessage_Status, *store.Commit) {
	if _, pinged := item.GetInfo().GetMetadata()[metaPing]; pinged {
		return s.discovered(item.GetInfo()) // nobody has fetched it
	}
	s.metrics.discovered.WithLabelValues("false").Inc()
	id, ok := identify(item.GetInfo())
	if !ok {
		return s.put(pb.AckMessage_SKIPPED, nil, nil)
	}
	if date := item.GetRefetchableFromDate(); inMilliseconds(date) && s.milliseconds.CompareAndSwap(false, true) {
		s.mistake(inPut(id, fmt.Errorf("refetchable_from_date is %d, in the year %d, and seems to be in milliseconds; "+
			"needed are seconds. It is kept as it is, and further ones are not logged",
			date, time.Unix(int64(date), 0).Year())))
	}
	due, commit, mistake, err := s.opt.Learned.put(id, item)
	if due == schedule.Completed && err == nil {
		s.metrics.completed.Inc()
	}
	s.mistake(mistake)
	return s.put(pb.AckMessage_OK, commit, err)
}

// put counts what is answered to a URL: the status, or FAIL if there is an error.
func (s *Server) put(
	status pb.AckMessage_Status, commit *store.Commit, err error,
) (pb.AckMessage_Status, *store.Commit) {
	if s.failure(err) != nil {
		status = pb.AckMessage_FAIL
	}
	s.metrics.urlsPut.Inc()
	return status, commit
}

func (s *Server) GetURLs(p *pb.GetParams, stream grpc.ServerStreamingServer[pb.URLInfo]) error {
	s.metrics.gets.Inc()
	began := time.Now()
	defer func() { s.metrics.getting.Observe(time.Since(began).Seconds()) }()
	if address, peer := s.nodes.owner(stream.Context(), p.GetKey(), false); peer != nil {
		theirs, err := peer.GetURLs(s.nodes.toHandOn(stream.Context()), p)
		if err != nil {
			return ofNode(address, err)
		}
		return passOn(address, theirs, stream.Send)
	}
	if s.inactive.Load() {
		return nil
	}
	r := schedule.Request{
		Key: p.GetKey(), Queues: int(p.GetMaxQueues()), PerQueue: int(p.GetMaxUrlsPerQueue()),
		Hold: cmp.Or(int64(p.GetDelayRequestable()), 30) * 1000,
	}
	if one, ok := p.GetItem().(*pb.GetParams_CrawlID); ok {
		r.Crawl = crawlOf(one.CrawlID)
	} else if r.Key != "" {
		return nil // a key means a queue only within a crawl
	}
	if r.Queues == 0 {
		// Those that are ready now, however long it takes to hand them out.
		if err := s.store.Settle(); err != nil {
			return s.failure(err)
		}
		s.store.View(func(sched *schedule.Schedule) { r.Queues = max(1, sched.Ready(r.Crawl)) })
	}
	if r.Key != "" {
		r.Queues = 1
	}
	// While the second half of some is sent, the next ones are taken: that waits for the disk, and sending for
	// the client.
	type taken struct {
		records []store.Record
		err     error
	}
	take := func(n int) (t taken) {
		t.records, t.err = s.store.Take(&r, n)
		return t
	}
	var ahead chan taken // nil while nothing is being taken
	defer func() {
		if ahead != nil {
			<-ahead
		}
	}()
	for n := together; ; {
		var t taken
		if ahead == nil {
			t = take(n)
		} else {
			t, ahead = <-ahead, nil
		}
		if t.err != nil {
			return s.failure(t.err)
		}
		if len(t.records) == 0 {
			return nil
		}
		whole := len(t.records) == n
		now := s.ms()
		for i := range t.records {
			if whole && i == len(t.records)/2 { // a client that reads none of them has no more taken for it
				bytes := 0
				for i := range t.records {
					bytes += len(t.records[i].Data)
				}
				n = max(1, min(2*n, mostTogether, bytesTogether/(bytes/n+1)))
				next := make(chan taken, 1)
				go func(n int) { next <- take(n) }(n)
				ahead = next
			}
			record := &t.records[i]
			info, err := infoOf(record)
			if err != nil {
				return s.failure(err)
			}
			if s.inactive.Load() {
				return nil // the others come back after their holds
			}
			// A discovered URL may be due before it was known: it has priority.
			s.metrics.behind.Observe(float64(now-max(record.Due, record.Created)) / 1000)
			if err := stream.Send(info); err != nil {
				return err
			}
			s.metrics.urlsGot.Inc()
		}
	}
}

func (s *Server) GetStats(ctx context.Context, p *pb.QueueWithinCrawlParams) (*pb.Stats, error) {
	if out, asked, err := ask(ctx, &s.nodes, p.GetKey(), p.GetLocal(), p, pb.URLFrontierClient.GetStats); asked {
		return out, err
	}
	crawl := crawlOf(p.GetCrawlID())
	var n schedule.Counts
	s.store.View(func(sched *schedule.Schedule) {
		if p.GetKey() == "" {
			n = sched.Counts(crawl)
		} else if q := sched.Lookup(crawl, p.GetKey()); q != nil {
			n = q.Counts()
		}
	})
	all := &pb.Stats{
		Size: uint64(n.Scheduled), InProcess: uint32(n.Held), NumberOfQueues: uint64(n.Queues), CrawlID: crawl,
		Counts: map[string]uint64{"completed": uint64(n.Completed), "active_queues": uint64(n.Active)},
	}
	if p.GetKey() != "" {
		return all, nil
	}
	others, err := askAll(ctx, &s.nodes, p.GetLocal(), p, pb.URLFrontierClient.GetStats)
	for _, o := range others {
		all.Size += o.Size
		all.InProcess += o.InProcess
		all.NumberOfQueues += o.NumberOfQueues
		for name, v := range o.Counts {
			all.Counts[name] += v
		}
	}
	return all, err
}

func (s *Server) ListNodes(context.Context, *pb.Empty) (*pb.StringList, error) {
	return &pb.StringList{Values: s.nodes.addresses}, nil
}

func (s *Server) ListCrawls(ctx context.Context, p *pb.Local) (*pb.StringList, error) {
	others, err := askAll(ctx, &s.nodes, p.GetLocal(), p, pb.URLFrontierClient.ListCrawls)
	l := &pb.StringList{Values: s.store.Crawls()}
	for _, o := range others {
		l.Values = append(l.Values, o.Values...)
	}
	slices.Sort(l.Values)
	l.Values = slices.Compact(l.Values)
	return l, err
}

// ListQueues lists those of all nodes in the order in which each has them: shorter names first.
func (s *Server) ListQueues(ctx context.Context, p *pb.Pagination) (*pb.QueueList, error) {
	all := s.ownQueues(p)
	if len(s.opt.Peers) > 0 && !p.GetLocal() && !isHandedOn(ctx) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		all = merged(s.queuesOfNodes(ctx, p))
	}
	l := &pb.QueueList{Start: p.GetStart(), CrawlID: crawlOf(p.GetCrawlID())}
	skip, most := p.GetStart(), int(cmp.Or(p.GetSize(), defaultSize))
	for key, err := range all {
		if err != nil {
			return nil, err
		}
		if skip > 0 {
			skip--
		} else if l.Values = append(l.Values, key); len(l.Values) == most {
			break
		}
	}
	l.Size = uint32(len(l.Values))
	return l, nil
}

// ownQueues returns the queues of this node.
func (s *Server) ownQueues(p *pb.Pagination) names {
	return func(yield func(string, error) bool) {
		more := true
		err := s.store.Queues(crawlOf(p.GetCrawlID()), func(key string, active bool) bool {
			if active || p.GetIncludeInactive() {
				more = yield(key, nil)
			}
			return more
		})
		if err != nil {
			yield("", s.failure(err))
		}
	}
}

// matching calls yield with the URLs whose name has the filter in it, until the context is done.
func (s *Server) matching(
	ctx context.Context, crawl, key, filter string, ignoreCase bool, yield func(*store.Record) bool,
) error {
	if ignoreCase {
		filter = strings.ToLower(filter)
	}
	err := s.store.URLs(crawlOf(crawl), key, func(r *store.Record) bool {
		if ctx.Err() != nil {
			return false
		}
		url := r.URL
		if ignoreCase {
			url = strings.ToLower(url)
		}
		return !strings.Contains(url, filter) || yield(r)
	})
	if err = s.failure(err); err == nil && ctx.Err() != nil {
		err = status.FromContextError(ctx.Err()).Err()
	}
	return err
}

// ListURLs lists those of one node after those of the one before.
func (s *Server) ListURLs(p *pb.ListUrlParams, stream grpc.ServerStreamingServer[pb.URLItem]) error {
	address, peer := s.nodes.owner(stream.Context(), p.GetKey(), p.GetLocal())
	if peer != nil {
		return s.otherURLs(address, p, stream.Context(), stream.Send)
	}
	if len(s.opt.Peers) == 0 || p.GetLocal() || p.GetKey() != "" || isHandedOn(stream.Context()) {
		return s.ownURLs(stream.Context(), p, stream.Send)
	}
	skip, left := p.GetStart(), cmp.Or(p.GetSize(), defaultSize)
	part := proto.CloneOf(p)
	for _, address := range s.nodes.addresses {
		part.Start, part.Size = 0, uint32(min(uint64(skip)+uint64(left), math.MaxUint32))
		send := func(item *pb.URLItem) error {
			if skip > 0 {
				skip--
				return nil
			}
			left--
			return stream.Send(item)
		}
		var err error
		if address == s.opt.Address {
			err = s.ownURLs(stream.Context(), part, send)
		} else {
			err = s.otherURLs(address, part, stream.Context(), send)
		}
		if err != nil || left == 0 {
			return err
		}
	}
	return nil
}

// otherURLs sends the URLs of another node.
func (s *Server) otherURLs(
	address string, p *pb.ListUrlParams, ctx context.Context, send func(*pb.URLItem) error,
) error {
	theirs, err := s.nodes.peers[address].ListURLs(s.nodes.toHandOn(ctx), p)
	if err != nil {
		return ofNode(address, err)
	}
	return passOn(address, theirs, send)
}

// ownURLs sends the URLs of this node, as they are moved or as they are shown.
func (s *Server) ownURLs(ctx context.Context, p *pb.ListUrlParams, send func(*pb.URLItem) error) error {
	skip, left := p.GetStart(), cmp.Or(p.GetSize(), defaultSize)
	form := itemOf
	if isMove(ctx) {
		form = newDump(s.store).item
	}
	var failed error
	err := s.matching(ctx, p.GetCrawlID(), p.GetKey(), p.GetFilter(), p.GetIgnoreCase(), func(r *store.Record) bool {
		if skip > 0 {
			skip--
			return true
		}
		item, err := form(r)
		if err == nil {
			err = send(item)
		}
		left--
		failed = err
		return err == nil && left > 0
	})
	return cmp.Or(err, failed)
}

func (s *Server) CountURLs(ctx context.Context, p *pb.CountUrlParams) (*pb.Long, error) {
	if out, asked, err := ask(ctx, &s.nodes, p.GetKey(), p.GetLocal(), p, pb.URLFrontierClient.CountURLs); asked {
		return out, err
	}
	others, failed := askAll(ctx, &s.nodes, p.GetLocal() || p.GetKey() != "", p, pb.URLFrontierClient.CountURLs)
	n := &pb.Long{}
	err := s.matching(ctx, p.GetCrawlID(), p.GetKey(), p.GetFilter(), p.GetIgnoreCase(), func(*store.Record) bool {
		n.Value++
		return true
	})
	return sum(n, err, others, failed)
}

func (s *Server) GetURLStatus(ctx context.Context, p *pb.URLStatusRequest) (*pb.URLItem, error) {
	id, ok := identify(&pb.URLInfo{Url: p.GetUrl(), Key: p.GetKey(), CrawlID: p.GetCrawlID()})
	if !ok {
		return nil, status.Errorf(codes.InvalidArgument, "no key can be derived from the URL %q", p.GetUrl())
	}
	if out, asked, err := ask(ctx, &s.nodes, id.Key, false, p, pb.URLFrontierClient.GetURLStatus); asked {
		return out, err
	}
	r, err := s.store.Find(id)
	if err != nil {
		return nil, s.failure(err)
	}
	if r == nil {
		return nil, status.Errorf(codes.NotFound, "%q is not known in queue %q of crawl %q", id.URL, id.Key, id.Crawl)
	}
	item, err := itemOf(r)
	if err == nil {
		s.opt.Learned.explain(id, item.GetKnown().GetInfo())
	}
	return item, err
}

// change changes the limits of a queue if it is there.
func (s *Server) change(crawl, key string, f func(*schedule.Limits)) (found bool, err error) {
	found, commit, err := s.store.Change(crawlOf(crawl), key, f)
	commit.Wait()
	return found, s.failure(err)
}

func (s *Server) BlockQueueUntil(ctx context.Context, p *pb.BlockQueueParams) (*pb.Empty, error) {
	out, asked, err := ask(ctx, &s.nodes, p.GetKey(), p.GetLocal(), p, pb.URLFrontierClient.BlockQueueUntil)
	if asked {
		return out, err
	}
	until := int64(0)
	if p.GetTime() > 0 {
		until = openAfter(int64(min(p.GetTime(), math.MaxInt64)))
	}
	_, err = s.change(p.GetCrawlID(), p.GetKey(), func(l *schedule.Limits) { l.Blocked = until })
	return &pb.Empty{}, err
}

func (s *Server) SetDelay(ctx context.Context, p *pb.QueueDelayParams) (*pb.Empty, error) {
	if out, asked, err := ask(ctx, &s.nodes, p.GetKey(), p.GetLocal(), p, pb.URLFrontierClient.SetDelay); asked {
		return out, err
	}
	delay := openAfter(int64(p.GetDelayRequestable()))
	if p.GetKey() == "" {
		_, failed := askAll(ctx, &s.nodes, p.GetLocal(), p, pb.URLFrontierClient.SetDelay)
		return &pb.Empty{}, cmp.Or(s.failure(s.store.SetDelay(delay)), failed)
	}
	_, err := s.change(p.GetCrawlID(), p.GetKey(), func(l *schedule.Limits) { l.Delay = delay })
	return &pb.Empty{}, err
}

func (s *Server) SetCrawlLimit(ctx context.Context, p *pb.CrawlLimitParams) (*pb.Empty, error) {
	if out, asked, err := ask(ctx, &s.nodes, p.GetKey(), p.GetLocal(), p, pb.URLFrontierClient.SetCrawlLimit); asked {
		return out, err
	}
	found, err := s.change(p.GetCrawlID(), p.GetKey(), func(l *schedule.Limits) { l.Most = p.GetLimit() })
	if err == nil && !found {
		err = status.Errorf(codes.Unknown, "there is no queue %q in crawl %q", p.GetKey(), crawlOf(p.GetCrawlID()))
	}
	return &pb.Empty{}, err
}

func (s *Server) SetActive(ctx context.Context, p *pb.Active) (*pb.Empty, error) {
	_, failed := askAll(ctx, &s.nodes, p.GetLocal(), p, pb.URLFrontierClient.SetActive)
	var kept []byte
	if !p.GetState() {
		kept = []byte{1}
	}
	err := s.store.SetOnFullDisk(inactive, kept)
	if err == nil {
		s.inactive.Store(!p.GetState())
	}
	return &pb.Empty{}, cmp.Or(s.failure(err), failed)
}

// GetActive reports whether all nodes are active.
func (s *Server) GetActive(ctx context.Context, p *pb.Local) (*pb.Boolean, error) {
	others, err := askAll(ctx, &s.nodes, p.GetLocal(), p, pb.URLFrontierClient.GetActive)
	active := !s.inactive.Load()
	for _, o := range others {
		active = active && o.State
	}
	return &pb.Boolean{State: active}, err
}

// removed is the answer to a call that removes.
func (s *Server) removed(n int, err error) (*pb.Long, error) {
	return &pb.Long{Value: uint64(n)}, s.failure(err)
}

// remove removes a queue, or a crawl if key is nil.
func (s *Server) remove(crawl string, key *string) (*pb.Long, error) {
	return s.removed(s.opt.Learned.remove(crawl, key))
}

func (s *Server) DeleteQueue(ctx context.Context, p *pb.QueueWithinCrawlParams) (*pb.Long, error) {
	if out, asked, err := ask(ctx, &s.nodes, p.GetKey(), p.GetLocal(), p, pb.URLFrontierClient.DeleteQueue); asked {
		return out, err
	}
	return s.remove(crawlOf(p.GetCrawlID()), &p.Key)
}

func (s *Server) DeleteCrawl(ctx context.Context, p *pb.DeleteCrawlMessage) (*pb.Long, error) {
	others, failed := askAll(ctx, &s.nodes, p.GetLocal(), p, pb.URLFrontierClient.DeleteCrawl)
	own, err := s.remove(crawlOf(p.GetValue()), nil)
	return sum(own, err, others, failed)
}

func (s *Server) PurgeURLs(ctx context.Context, p *pb.PurgeUrlParams) (*pb.Long, error) {
	if out, asked, err := ask(ctx, &s.nodes, p.GetKey(), false, p, pb.URLFrontierClient.PurgeURLs); asked {
		return out, err
	}
	others, failed := askAll(ctx, &s.nodes, p.GetKey() != "", p, pb.URLFrontierClient.PurgeURLs)
	before := s.now().AddDate(0, 0, -int(p.GetDays())).UnixMilli()
	own, err := s.removed(s.store.RemoveBefore(crawlOf(p.GetCrawlID()), p.GetKey(), before, s.opt.Learned.removed))
	return sum(own, err, others, failed)
}

func (s *Server) SetLogLevel(ctx context.Context, p *pb.LogLevelParams) (*pb.Empty, error) {
	_, failed := askAll(ctx, &s.nodes, p.GetLocal(), p, pb.URLFrontierClient.SetLogLevel)
	if v := s.opt.Levels[p.GetPackage()]; v != nil {
		v.Set(slog.Level(4 * (int(p.GetLevel()) - int(pb.LogLevelParams_INFO))))
	}
	return &pb.Empty{}, failed
}
