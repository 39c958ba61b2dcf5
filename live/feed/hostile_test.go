package feed

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"golang.org/x/sync/errgroup"
)

// A crawler reads 10 MB, and Go ends a program of which a stack has 1 GB. These feeds have half as much,
// and so have their memory and stacks.
const (
	hostileBytes  = 5 << 20
	hostileMemory = 500 // MB
)

// fill returns about as many bytes as are read: begin, pieces, end.
func fill(begin, piece, end string) []byte {
	return []byte(begin + strings.Repeat(piece, (hostileBytes-len(begin)-len(end))/len(piece)) + end)
}

// pieces is fill with pieces that are numbered.
func pieces(begin string, piece func(k int) string, end string) []byte {
	var b bytes.Buffer
	b.WriteString(begin)
	for k := 0; b.Len() < hostileBytes-5000-len(end); k++ {
		b.WriteString(piece(k))
	}
	b.WriteString(end)
	return b.Bytes()
}

func inUTF16(text []byte) []byte {
	b := []byte{0xff, 0xfe}
	for _, c := range utf16.Encode([]rune(string(text[:len(text)/2-2]))) {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	return b
}

const (
	rssBegin  = `<rss version="2.0" xmlns:a="u"><channel><title>T</title>`
	rssItem   = `<item><guid>first</guid></item>`
	rssEnd    = `</channel></rss>`
	atomBegin = `<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title>`
	jsonBegin = `{"version":"https://jsonfeed.org/version/1","title":"T","items":[`
)

// date is that of item k of a feed in which an item appears every second.
func date(k int) time.Time { return time.Date(2026, 1, 1, 0, 0, k, 0, time.UTC) }

type hostileFeed struct {
	name   string
	body   func() []byte
	items  int
	reason string
}

// hostile are feeds that are written so as to break a reader, with the number of items that
// are found in them, or the reason for which there is none.
var hostile = []hostileFeed{
	{name: "deep behind a control character", items: 1, body: func() []byte {
		return fill("<rss version=\"2.0\" xmlns:a='u'>\x08<channel><title>T</title>"+rssItem, "<a:b>", "")
	}},
	{name: "deep behind a second declaration", items: 1, body: func() []byte {
		return fill(`<?xml version="1.0" encoding="utf-8"?><rss xmlns:a='u'>`+
			`<?xml version="1.0" encoding="windows-1252"?><channel><title>T</title>`+rssItem, "<a:b>", "")
	}},
	{name: "deep behind an unknown encoding", items: 1, body: func() []byte {
		return fill(`<rss xmlns:a='u'><?xml version="1.0" encoding="klingon"?><channel><title>T</title>`+rssItem,
			"<a:b>", "")
	}},
	{name: "deep in an item", items: 2, body: func() []byte {
		return fill(rssBegin+rssItem+"<item><title>x", "<b>", "")
	}},
	{name: "deep XHTML", items: 1, body: func() []byte {
		return fill(atomBegin+`<entry xml:base="http://h/"><id>1</id><content type="xhtml">`, "<div>", "")
	}},
	{name: "deep HTML in CDATA", items: 1, body: func() []byte {
		return fill(atomBegin+`<entry xml:base="http://h/"><id>1</id><content type="html"><![CDATA[`,
			"<div>", "]]></content></entry></feed>")
	}},
	{name: "empty items", items: 0, body: func() []byte { return fill(rssBegin, "<item/>", rssEnd) }},
	{name: "empty entries", items: 0, body: func() []byte { return fill(atomBegin, "<entry/>", "</feed>") }},
	{name: "empty JSON items", items: 0, body: func() []byte { return fill(jsonBegin, "{},", "{}]}") }},
	{name: "many items", items: maxItems, body: func() []byte {
		return pieces(rssBegin, func(k int) string {
			return fmt.Sprintf("<item><guid>%d</guid><pubDate>%s</pubDate></item>", k, date(k).Format(time.RFC1123Z))
		}, rssEnd)
	}},
	{name: "many JSON items", items: maxItems, body: func() []byte {
		return pieces(jsonBegin, func(k int) string {
			return fmt.Sprintf(`{"id":%d,"date_published":"%s"},`, k, date(k).Format(time.RFC3339))
		}, `{"id":"last"}]}`)
	}},
	{name: "many dates that are none", items: 1, body: func() []byte {
		return fill(rssBegin+"<item><guid>1</guid>", "<pubDate>x</pubDate>", "</item>"+rssEnd)
	}},
	{name: "items with dates that are none", items: 1, body: func() []byte {
		return fill(rssBegin, "<item><pubDate>x</pubDate></item>", rssEnd)
	}},
	{name: "items with many dates that are none", items: maxItems, body: func() []byte {
		return pieces(rssBegin, func(k int) string {
			return fmt.Sprintf("<item><guid>%d</guid>%s</item>", k, strings.Repeat("<pubDate>x</pubDate>", 200))
		}, rssEnd)
	}},
	{name: "JSON items with dates that are none", items: 1, body: func() []byte {
		return fill(jsonBegin+"{}", `,{"date_published":"x"}`, "]}")
	}},
	{name: "elements of a namespace", items: 1, body: func() []byte {
		return fill(rssBegin+"<item><guid>1</guid>", "<a:b/>", "</item>"+rssEnd)
	}},
	{name: "elements of the channel", items: 1, body: func() []byte {
		return fill(rssBegin+rssItem, "<a:b/>", rssEnd)
	}},
	{name: "channels", items: 0, body: func() []byte {
		return fill(`<rss version="2.0">`, "<channel><item/></channel>", "</rss>")
	}},
	{name: "an attribute without end", items: 1, body: func() []byte {
		return fill(rssBegin+rssItem+`<item a="`, "x", `"/>`+rssEnd)
	}},
	{name: "attributes of a tag", items: 1, body: func() []byte {
		return fill(rssBegin+rssItem+"<item", " b", "/>"+rssEnd)
	}},
	{name: "attributes of many tags", items: 2, body: func() []byte {
		return fill(rssBegin+rssItem+"<item>", "<a:b"+strings.Repeat(" b", 2000)+"/>", "</item>"+rssEnd)
	}},
	{name: "names of namespaces", items: 1, body: func() []byte {
		return fill(`<rss version="2.0" xmlns:a="`+strings.Repeat("u", 60_000)+`"><channel><title>T</title>`+
			`<item><guid>1</guid>`, "<a:b/><c/>", "</item>"+rssEnd)
	}},
	{name: "namespaces of open elements", items: 1, body: func() []byte {
		return pieces(rssBegin+rssItem, func(k int) string {
			return "<a:b" + strings.Repeat(fmt.Sprintf(` xmlns:c%d="u"`, k), 300) + ">"
		}, "")
	}},
	{name: "names without end", items: 1, body: func() []byte {
		return fill(rssBegin+rssItem+"<item><", "b", "/></item>"+rssEnd)
	}},
	{name: "long names", items: 1, body: func() []byte {
		return fill(rssBegin+rssItem, "<"+strings.Repeat("b", 60_000)+"/>", rssEnd)
	}},
	{name: "a title without end", items: 1, body: func() []byte {
		return fill(rssBegin+"<item><title>", "x", "</title></item>"+rssEnd)
	}},
	{name: "a JSON title without end", items: 1, body: func() []byte {
		return fill(jsonBegin+`{"id":"1","title":"`, "x", `"}]}`)
	}},
	{name: "a deep JSON id", reason: "max depth", body: func() []byte { return fill(jsonBegin+`{"id":`, "[", "") }},
	{name: "a wide JSON id", items: 1, body: func() []byte {
		return fill(jsonBegin+`{"url":"x","id":[1`, ",1", `]}]}`)
	}},
	{name: "JSON attachments", items: 1, body: func() []byte {
		return fill(jsonBegin+`{"id":1,"attachments":[{}`, ",{}", `]}]}`)
	}},
	{name: "JSON authors", items: 0, body: func() []byte {
		return fill(`{"title":"T","items":[],"authors":[{}`, ",{}", `]}`)
	}},
	{name: "JSON fields", items: 0, body: func() []byte {
		return pieces(`{"title":"T","items":[]`, func(k int) string { return fmt.Sprintf(`,"%d":0`, k) }, "}")
	}},
	{name: "ampersands", items: 1, body: func() []byte {
		return fill(rssBegin+"<item><title>", "&", "</title></item>"+rssEnd)
	}},
	{name: "small pieces of CDATA", items: 1, body: func() []byte {
		return fill(rssBegin+"<item><title>", "<![CDATA[x]]>", "</title></item>"+rssEnd)
	}},
	{name: "entities", items: 1, body: func() []byte {
		laughs := `<!DOCTYPE lolz [<!ENTITY a0 "lol">`
		for k := range 9 {
			laughs += fmt.Sprintf(`<!ENTITY a%d "%s">`, k+1, strings.Repeat(fmt.Sprintf("&a%d;", k), 10))
		}
		return fill(laughs+"]>"+rssBegin+"<item><title>", "&a9;", "</title></item>"+rssEnd)
	}},
	{name: "a document type without end", reason: "malformed", body: func() []byte {
		return fill("<!DOCTYPE x [", `<!ENTITY a "b">`, "")
	}},
	{name: "comments", items: 1, body: func() []byte { return fill(rssBegin+rssItem, "<!---->", rssEnd) }},
	{name: "instructions", items: 1, body: func() []byte { return fill(rssBegin+rssItem, "<?x?>", rssEnd) }},
	{name: "end tags of nothing", items: 1, body: func() []byte { return fill(rssBegin+rssItem, "</b>", rssEnd) }},
	{name: "hubs", items: 1, body: func() []byte {
		return fill(strings.Replace(rssBegin, `"u"`, `"http://www.w3.org/2005/Atom"`, 1)+rssItem,
			`<a:link rel="hub" href="http://h/"/>`, rssEnd)
	}},
	{name: "control characters", items: 1, body: func() []byte { return fill(rssBegin+rssItem, "\x00\x08", rssEnd) }},
	{name: "bytes that are no letters", items: 1, body: func() []byte {
		return fill(`<?xml version="1.0" encoding="utf-8"?>`+rssBegin+"<item><title>", "\xff", "</title></item>"+rssEnd)
	}},
	{name: "letters that grow", items: 1, body: func() []byte {
		return fill(`<?xml version="1.0" encoding="windows-1252"?>`+rssBegin+"<item><title>",
			"\x80", "</title></item>"+rssEnd)
	}},
	{name: "UTF-16", items: 2, body: func() []byte { return inUTF16(fill(rssBegin+rssItem, "<item>", "")) }},
	{name: "markup in HTML", items: 1000, body: func() []byte {
		return pieces(atomBegin, func(k int) string {
			return fmt.Sprintf(`<entry xml:base="http://h/"><id>%d</id>`+
				`<title type="html"><![CDATA[%s]]></title></entry>`, k, strings.Repeat("<b><p>", 600))
		}, "</feed>")
	}},
	{name: "a gzip bomb", reason: "neither RSS", body: func() []byte { return make([]byte, 64<<20) }},
	{name: "more than is read", items: 1, body: func() []byte {
		return append(fill(rssBegin, "<item><title>x</title></item>", ""), "<item><title>y</title></item>"+rssEnd...)
	}},
}

// TestNewestOfMany: of a feed of very many items the newest are found, wherever it shows them.
func TestNewestOfMany(t *testing.T) {
	const n = 10_500
	orders := []struct {
		name  string
		place func(k int) int
	}{
		{"falling", func(k int) int { return n - 1 - k }},
		{"rising", func(k int) int { return k }},
		{"shuffled", func(k int) int { return k * 7919 % n }}, // a prime, which does not divide n
	}
	for _, tt := range []struct{ name, begin, item, end, layout string }{
		{"RSS", rssBegin, `<item><guid>%d</guid><pubDate>%s</pubDate></item>`, rssEnd, time.RFC1123Z},
		{"JSON", jsonBegin, `{"id":%d,"date_published":"%s"},`, "]}", time.RFC3339},
	} {
		for _, order := range orders {
			var b strings.Builder
			b.WriteString(tt.begin)
			for k := range n {
				k = order.place(k)
				fmt.Fprintf(&b, tt.item, k, date(k).Format(tt.layout))
			}
			f, err := Parse([]byte(strings.TrimSuffix(b.String(), ",")+tt.end), "", at)
			if err != nil || len(f.Items) != maxItems {
				t.Fatalf("%s, %s: %v", tt.name, order.name, err)
			}
			oldest, newest := f.Items[0].Published, f.Items[0].Published
			for _, it := range f.Items {
				if it.Published.After(newest) {
					newest = it.Published
				}
				if it.Published.Before(oldest) {
					oldest = it.Published
				}
			}
			if !newest.Equal(date(n-1)) || !oldest.Equal(date(n-maxItems)) {
				t.Errorf("%s, %s: items from %v to %v; want %v to %v",
					tt.name, order.name, oldest, newest, date(n-maxItems), date(n-1))
			}
		}
	}
}

// TestMostItems: of a feed of more items than are read the first are found.
func TestMostItems(t *testing.T) {
	for _, tt := range []struct{ name, begin, item, end, layout string }{
		{"RSS", rssBegin, `<item><guid>%d</guid><pubDate>%s</pubDate></item>`, rssEnd, time.RFC1123Z},
		{"JSON", jsonBegin, `{"id":%d,"date_published":"%s"},`, "]}", time.RFC3339},
	} {
		var b strings.Builder
		b.WriteString(tt.begin)
		for k := range mostItems + 1 {
			fmt.Fprintf(&b, tt.item, k, date(k).Format(tt.layout))
		}
		f, err := Parse([]byte(strings.TrimSuffix(b.String(), ",")+tt.end), "", at)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		newest := time.Time{}
		for _, it := range f.Items {
			if it.Published.After(newest) {
				newest = it.Published
			}
		}
		if !newest.Equal(date(mostItems - 1)) {
			t.Errorf("%s: the newest item is of %v; want %v, of the last that is read",
				tt.name, newest, date(mostItems-1))
		}
	}
}

// hostileResult is how the fetch of such a feed ended.
type hostileResult struct {
	Kind, Items int
	Err         string
	Took        time.Duration
	MB          int // of the process, at most so far
}

// fetchHostile fetches each of the feeds, 16 at once, and prints how it ended.
func fetchHostile(server string) {
	debug.SetMaxStack(hostileMemory << 20)
	var dialer net.Dialer
	f := &Fetcher{Timeout: 10 * time.Minute, MaxBytes: hostileBytes, Memory: newMemory(), Now: time.Now}
	f.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, server)
	}
	var group errgroup.Group
	group.SetLimit(16)
	var printing sync.Mutex
	for kind := range hostile {
		group.Go(func() error {
			begin := time.Now()
			got := f.Fetch(context.Background(), Place{URL: fmt.Sprintf("http://h%d.test/%d", kind, kind)})
			r := hostileResult{Kind: kind, Took: time.Since(begin)}
			if got.Err != nil {
				r.Err = got.Err.Error()
			} else {
				r.Items = len(got.Feed.Items)
			}
			status, _ := os.ReadFile("/proc/self/status")
			_, peak, _ := strings.Cut(string(status), "VmHWM:")
			fmt.Sscan(peak, &r.MB)
			r.MB >>= 10
			printing.Lock()
			defer printing.Unlock()
			return json.NewEncoder(os.Stdout).Encode(r)
		})
	}
	group.Wait()
	os.Exit(0)
}

// TestHostileFeeds: a process that fetches such feeds, 16 at once, ends by none of them and
// needs less than 500 MB for feeds of 5 MB.
func TestHostileFeeds(t *testing.T) {
	if server := os.Getenv("EPHEMERA_TEST_HOSTILE"); server != "" {
		fetchHostile(server)
	}
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var kind int
		if n, _ := fmt.Sscanf(r.URL.Path, "/%d", &kind); n == 0 {
			http.NotFound(w, r) // robots.txt
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		z.Write(hostile[kind].body())
		z.Close()
	}))
	defer s.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHostileFeeds$")
	cmd.Env = append(os.Environ(), "EPHEMERA_TEST_HOSTILE="+s.Listener.Addr().String())
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("the process ended with %v: %.300s", err, said.String())
	}
	results := json.NewDecoder(bytes.NewReader(out))
	for k := range hostile {
		var got hostileResult
		if err := results.Decode(&got); err != nil {
			t.Fatalf("%d of %d feeds were fetched", k, len(hostile))
		}
		want := hostile[got.Kind]
		t.Logf("%-32s %4d items, %q; %.1f s; %d MB so far", want.name, got.Items, got.Err, got.Took.Seconds(), got.MB)
		if got.Items != want.items || (got.Err == "") != (want.reason == "") ||
			!strings.Contains(got.Err, want.reason) || got.MB == 0 || got.MB > hostileMemory {
			t.Errorf("%s: %d items, %q, %d MB; want %d, %q and less than %d MB",
				want.name, got.Items, got.Err, got.MB, want.items, want.reason, hostileMemory)
		}
	}
}
