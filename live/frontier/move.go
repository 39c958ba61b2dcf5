package frontier

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"google.golang.org/grpc"
	headers "google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"

	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// A dump has more of a URL than calls show, under names in its metadata that nothing else puts: what
// its record has of a learned one, and with the first URL of a queue what the queue is held to.
// Calls that are marked as a move give and take it.

const moving = "ephemera-move"

func isMove(ctx context.Context) bool {
	md, _ := headers.FromIncomingContext(ctx)
	return len(md.Get(moving)) > 0
}

func toMove(ctx context.Context) context.Context {
	return headers.AppendToOutgoingContext(ctx, moving, "1")
}

// dump makes the items of a dump from records in their order.
type dump struct {
	s    *store.Store
	last schedule.ID // of the record before
}

func newDump(s *store.Store) *dump { return &dump{s: s} }

// free are the limits of a queue of which nobody has set any, and which was never served.
var free = schedule.Limits{Delay: -1}

func (d *dump) item(r *store.Record) (*pb.URLItem, error) {
	info, err := wholeInfo(r)
	if r.Crawl != d.last.Crawl || r.Key != d.last.Key {
		if l, ok := d.s.Limits(r.Crawl, r.Key); ok && l != free {
			text, failed := json.Marshal(l)
			err = cmp.Or(err, failed)
			if info.Metadata == nil {
				info.Metadata = map[string]*pb.StringList{}
			}
			info.Metadata[metaQueue] = &pb.StringList{Values: []string{string(text)}}
		}
	}
	d.last = r.ID
	return knownItem(r, info), err
}

// restore puts a known URL of a dump, which is no fetch. It reports whether its record is of a
// learned one. What was before the dump was made was before now, whatever the clock there showed.
func restore(s *store.Store, item *pb.URLItem, id schedule.ID, now int64) (
	learned bool, commit *store.Commit, err error,
) {
	info := item.GetKnown().GetInfo()
	due, created := seconds(item.GetKnown().GetRefetchableFromDate()), now
	if item.GetCreationDate() > 0 {
		created = min(seconds(item.GetCreationDate()), now)
	}
	var state []byte
	for _, v := range info.GetMetadata()[metaState].GetValues() {
		learned, state = true, []byte(v)
	}
	var limits *schedule.Limits
	for _, v := range info.GetMetadata()[metaQueue].GetValues() {
		limits = &schedule.Limits{}
		if err := json.Unmarshal([]byte(v), limits); err != nil {
			return false, nil, fmt.Errorf("%s: %w", metaQueue, err)
		}
		limits.Last = min(limits.Last, now)
	}
	if commit, err = s.Put(id, due, created, metadata(info, due, state)); err == nil && limits != nil {
		_, commit, err = s.Change(id.Crawl, id.Key, func(l *schedule.Limits) { *l = *limits })
	}
	return learned, commit, err
}

// moved is a stream that puts a dump.
type moved struct {
	s       *Server
	on      bool
	learned map[string]bool // crawls
}

func (m *moved) put(item *pb.URLItem) (pb.AckMessage_Status, *store.Commit) {
	id, ok := identify(item.GetKnown().GetInfo())
	if !ok {
		return m.s.put(pb.AckMessage_SKIPPED, nil, nil)
	}
	learned, commit, err := restore(m.s.store, item, id, m.s.ms())
	if learned {
		if m.learned == nil {
			m.learned = map[string]bool{}
		}
		m.learned[id.Crawl] = true
	}
	return m.s.put(pb.AckMessage_OK, commit, err)
}

// end has the learners take up what was put.
func (m *moved) end() {
	for crawl := range m.learned {
		if err := m.s.opt.Learned.recall(crawl); err != nil {
			m.s.failure(err)
		}
	}
}

// Export writes all URLs as JSON lines, in the form of URLFrontier's client, as a dump.
func Export(w io.Writer, s *store.Store) (n int, err error) {
	out := bufio.NewWriter(w)
	form := newDump(s)
	for _, crawl := range s.Crawls() {
		var failed error
		err := s.URLs(crawl, "", func(r *store.Record) bool {
			var item *pb.URLItem
			var line []byte
			if item, failed = form.item(r); failed == nil {
				line, failed = protojson.Marshal(item)
			}
			out.Write(append(line, '\n')) // Flush has the error
			n++
			return failed == nil
		})
		if err := cmp.Or(err, failed); err != nil {
			return n, err
		}
	}
	return n, out.Flush()
}

// ExportFrom writes what Export does of the URLs of a service that runs.
func ExportFrom(ctx context.Context, w io.Writer, client pb.URLFrontierClient) (n int, err error) {
	out := bufio.NewWriter(w)
	ctx = toMove(ctx)
	crawls, err := client.ListCrawls(ctx, &pb.Local{}, grpc.MaxCallRecvMsgSize(math.MaxInt32)) // in one message
	if err != nil {
		return 0, err
	}
	for _, crawl := range crawls.GetValues() {
		urls, err := client.ListURLs(ctx, &pb.ListUrlParams{CrawlID: crawl, Size: math.MaxUint32})
		for err == nil {
			var item *pb.URLItem
			if item, err = urls.Recv(); err == nil {
				var line []byte
				line, err = protojson.Marshal(item)
				out.Write(append(line, '\n')) // Flush has the error
				n++
			}
		}
		if err != io.EOF {
			return n, err
		}
	}
	return n, out.Flush()
}

// ImportTo puts what Export or URLFrontier's client wrote to a service that runs, which hands each
// URL on to its owner. URLs that are known there already are replaced.
func ImportTo(ctx context.Context, r io.Reader, client pb.URLFrontierClient) (n int, err error) {
	ctx, end := context.WithCancel(toMove(ctx))
	defer end()
	puts, err := client.PutURLs(ctx)
	if err != nil {
		return 0, err
	}
	sent := make(chan error, 1)
	go func() {
		in := bufio.NewScanner(r)
		in.Buffer(nil, 16<<20)
		var failed error
		for line := 1; failed == nil && in.Scan(); line++ {
			var item *pb.URLItem
			item, _, failed = readItem(line, in.Bytes(), time.Now().UnixMilli())
			if failed == nil && puts.Send(item) != nil {
				break // Recv has the error
			}
		}
		sent <- cmp.Or(failed, in.Err())
		puts.CloseSend() // what was sent before is answered
	}()
	for {
		ack, err := puts.Recv()
		switch {
		case err == io.EOF:
			return n, <-sent
		case err != nil && ctx.Err() != nil:
			return n, cmp.Or(<-sent, err)
		case err != nil:
			return n, err
		case ack.Status == pb.AckMessage_FAIL:
			return n, fmt.Errorf("%s: the node that is to have it does not answer, or cannot write", ack.ID)
		case ack.Status != pb.AckMessage_OK:
			return n, fmt.Errorf("line %d: the service answers %s to %s", n+1, ack.Status, ack.ID)
		}
		n++
	}
}

// readItem reads a line of a dump as a known URL. One that was discovered is due now.
func readItem(line int, text []byte, now int64) (*pb.URLItem, schedule.ID, error) {
	item := &pb.URLItem{}
	if err := protojson.Unmarshal(text, item); err != nil {
		return nil, schedule.ID{}, fmt.Errorf("line %d: %w", line, err)
	}
	if found := item.GetDiscovered(); found != nil {
		item.Item = &pb.URLItem_Known{
			Known: &pb.KnownURLItem{Info: found.GetInfo(), RefetchableFromDate: uint64(now / 1000)},
		}
	}
	info := item.GetKnown().GetInfo()
	id, ok := identify(info)
	if !ok {
		return nil, id, fmt.Errorf("line %d: URL %.1000q has the key %q, and with its metadata has %d bytes; "+
			"allowed is a URL with a host, or a key of 1 to %d bytes, and %d bytes in all",
			line, id.URL, id.Key, sizeOf(info), longestKey, longestInfo)
	}
	return item, id, nil
}

// Import reads what Export or URLFrontier's client wrote. URLs that are known
// already are replaced.
func Import(r io.Reader, s *store.Store, now int64) (n int, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	var last *store.Commit
	for line := 1; in.Scan(); line++ {
		item, id, err := readItem(line, in.Bytes(), now)
		if err != nil {
			return n, err
		}
		if _, last, err = restore(s, item, id, now); err != nil {
			return n, fmt.Errorf("line %d: %w", line, err)
		}
		n++
	}
	last.Wait()
	return n, in.Err()
}
