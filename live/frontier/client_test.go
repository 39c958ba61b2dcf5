package frontier

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"ephemera/live/frontier/urlfrontier"
)

// crawl is the client of docs/frontier.md.
func crawl(ctx context.Context, address string, fetch func(*urlfrontier.URLInfo) (again uint64)) error {
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
			known := &urlfrontier.KnownURLItem{Info: u, RefetchableFromDate: fetch(u)} // 0: never again
			puts.Send(&urlfrontier.URLItem{Item: &urlfrontier.URLItem_Known{Known: known}})
			_, err = puts.Recv() // it is on disk
		}
	}
	return err // io.EOF: nothing more is due
}

// TestClientInDocs runs the client and holds that the page has the same.
func TestClientInDocs(t *testing.T) {
	s := serve(t)
	s.put(discovered("http://a/"), discovered("http://b/"))
	err := crawl(t.Context(), s.address, func(u *urlfrontier.URLInfo) uint64 {
		if u.Key == "a" {
			return 0
		}
		return start + 100
	})
	s.want(err, io.EOF)
	s.want(s.list(&urlfrontier.ListUrlParams{}), "http://a/@0 http://b/@1700000100")

	source, page := must(os.ReadFile("client_test.go")), must(os.ReadFile("../../docs/frontier.md"))
	_, client, _ := strings.Cut(string(source), "(again uint64)) error {\n")
	client, _, _ = strings.Cut(client, "\treturn err // io.EOF")
	if !strings.Contains(string(page), strings.ReplaceAll(client, "\n\t", "\n")[1:]) {
		t.Error("docs/frontier.md has another client")
	}
}
