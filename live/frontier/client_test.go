package frontier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"ephemera/live/frontier/urlfrontier"
)

// crawl is the client of docs/frontier.md.
func crawl(
	ctx context.Context, address string, fetch func(*urlfrontier.URLInfo) (signature string, again uint64),
) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	client := urlfrontier.NewURLFrontierClient(conn)
	puts, err1 := client.PutURLs(ctx)
	urls, err2 := client.GetURLs(ctx, &urlfrontier.GetParams{MaxQueues: 10, MaxUrlsPerQueue: 1})
	for err = errors.Join(err1, err2); err == nil; {
		var u *urlfrontier.URLInfo
		if u, err = urls.Recv(); err == nil {
			signature, again := fetch(u) // a hash of the page, "" if there is none; when it is due, 0: never again
			if u.Metadata == nil {
				u.Metadata = map[string]*urlfrontier.StringList{}
			}
			u.Metadata["signature"] = &urlfrontier.StringList{Values: []string{signature}} // not that of before
			known := &urlfrontier.KnownURLItem{Info: u, RefetchableFromDate: again}
			puts.Send(&urlfrontier.URLItem{Item: &urlfrontier.URLItem_Known{Known: known}})
			_, err = puts.Recv() // it is on disk
		}
	}
	return err // io.EOF: nothing more is due
}

// begin is how docs/frontier.md puts the first URLs.
func begin(puts urlfrontier.URLFrontier_PutURLsClient) (err error) {
	info := &urlfrontier.URLInfo{Url: "https://example.com/", CrawlID: "news"}
	puts.Send(&urlfrontier.URLItem{Item: &urlfrontier.URLItem_Discovered{
		Discovered: &urlfrontier.DiscoveredURLItem{Info: info},
	}})
	_, err = puts.Recv()
	return err
}

// TestClientInDocsSeesChanges: where pages are learned, the client says when one has changed, also after a fetch
// that failed, and keeps other metadata.
func TestClientInDocsSeesChanges(t *testing.T) {
	s := serve(t, LearnOptions{PerHour: 60, Longest: Duration{time.Hour}})
	s.put(discoveredInfo(&urlfrontier.URLInfo{
		Url: "http://h/", CrawlID: "L", Metadata: map[string]*urlfrontier.StringList{"mine": {Values: []string{"x"}}},
	}))
	for _, tt := range []struct {
		page             string
		fetched, changed int // in all
	}{{"one", 1, 0}, {"one", 2, 0}, {"two", 3, 1}, {"", 3, 1}, {"two", 4, 1}, {"three", 5, 2}} {
		fetches := 0
		err := crawl(t.Context(), s.address, func(u *urlfrontier.URLInfo) (string, uint64) {
			fetches++
			s.want(fmt.Sprint(u.Metadata["mine"].GetValues()), "[x]")
			return tt.page, 0
		})
		s.want(err, io.EOF)
		s.want(fetches, 1)
		sum := s.server.opt.Learned.Summaries(0)[0]
		s.want(fmt.Sprint(sum.Fetched, sum.Changes), fmt.Sprint(tt.fetched, tt.changed))
		s.wait(3600)
		s.server.opt.Learned.Advance()
	}
}

// TestClientInDocs runs the client and holds that the page has the same.
func TestClientInDocs(t *testing.T) {
	s := serve(t)
	s.put(discovered("http://a/"), discovered("http://b/"))
	err := crawl(t.Context(), s.address, func(u *urlfrontier.URLInfo) (string, uint64) {
		if u.Key == "a" {
			return "", 0
		}
		return "", start + 100
	})
	s.want(err, io.EOF)
	s.want(s.list(&urlfrontier.ListUrlParams{}), "http://a/@0 http://b/@1700000100")
	s.want(begin(must(s.PutURLs(t.Context()))), nil)
	s.want(s.list(&urlfrontier.ListUrlParams{CrawlID: "news"}), "https://example.com/@1700000000")

	source, page := must(os.ReadFile("client_test.go")), must(os.ReadFile("../../docs/frontier.md"))
	for head, end := range map[string]string{
		"again uint64),\n) error {\n": "\treturn err // io.EOF", "PutURLsClient) (err error) {\n": "\treturn err\n",
	} {
		_, client, _ := strings.Cut(string(source), head)
		client, _, _ = strings.Cut(client, end)
		if !strings.Contains(string(page), strings.ReplaceAll(client, "\n\t", "\n")[1:]) {
			t.Error("docs/frontier.md has another client")
		}
	}
}
