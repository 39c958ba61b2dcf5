package frontier

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protojson"

	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/store"
)

// Export writes all URLs as JSON lines, in the form of URLFrontier's client.
func Export(w io.Writer, s *store.Store) (n int, err error) {
	out := bufio.NewWriter(w)
	for _, crawl := range s.Crawls() {
		var failed error
		err := s.URLs(crawl, "", func(r *store.Record) bool {
			var item *pb.URLItem
			var line []byte
			if item, failed = itemOf(r); failed == nil {
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
	crawls, err := client.ListCrawls(ctx, &pb.Local{})
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
	ctx, end := context.WithCancel(ctx)
	defer end()
	puts, err := client.PutURLs(ctx)
	if err != nil {
		return 0, err
	}
	sent := make(chan error, 1)
	go func() {
		in := bufio.NewScanner(r)
		in.Buffer(nil, 16<<20)
		for line := 1; in.Scan(); line++ {
			var item pb.URLItem
			if err := protojson.Unmarshal(in.Bytes(), &item); err != nil {
				sent <- fmt.Errorf("line %d: %w", line, err)
				end()
				return
			}
			if puts.Send(&item) != nil {
				break // Recv has the error
			}
		}
		sent <- cmp.Or(in.Err(), puts.CloseSend())
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
		}
		n++
	}
}

// Import reads what Export or URLFrontier's client wrote. URLs that are known
// already are replaced.
func Import(r io.Reader, s *store.Store, now int64) (n int, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	var last *store.Commit
	for line := 1; in.Scan(); line++ {
		var item pb.URLItem
		if err := protojson.Unmarshal(in.Bytes(), &item); err != nil {
			return n, fmt.Errorf("line %d: %w", line, err)
		}
		info, due := item.GetDiscovered().GetInfo(), now/1000*1000
		if known := item.GetKnown(); known != nil {
			info, due = known.GetInfo(), seconds(known.GetRefetchableFromDate())
		}
		id, ok := identify(info)
		if !ok {
			return n, fmt.Errorf("line %d: URL %q has the key %q; "+
				"allowed is a URL with a host, or a key of 1 to %d bytes",
				line, id.URL, id.Key, longestKey)
		}
		created := now
		if item.GetCreationDate() > 0 {
			created = seconds(item.GetCreationDate())
		}
		if last, err = s.Put(id, due, created, metadata(info, due, nil)); err != nil {
			return n, fmt.Errorf("line %d: %w", line, err)
		}
		n++
	}
	last.Wait()
	return n, in.Err()
}
