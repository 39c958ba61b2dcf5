package feed

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

var at, _ = url.Parse("http://h/feeds/x")

// TestCharsets: BOM before HTTP header before declaration, and bytes that are none
// of the charset cost a letter.
func TestCharsets(t *testing.T) {
	doc := func(encoding, title string) string {
		return `<?xml version="1.0"` + encoding + `?><rss version="2.0"><channel><title>` + title + `</title></channel></rss>`
	}
	for _, tt := range []struct{ contentType, body, want string }{
		{"", doc("", "Käse"), "Käse"},
		{"text/xml; charset=utf-8", doc(` encoding="iso-8859-1"`, "Käse"), "Käse"},
		{"text/xml", doc(` encoding="ISO-8859-1"`, "K\xe4se"), "Käse"},
		{"text/xml; charset=windows-1251", doc("", "\xd1\xfb\xf0"), "Сыр"},
		{"text/xml; charset=iso-8859-1", "\xef\xbb\xbf" + doc("", "Käse"), "Käse"},
		{"text/xml", "\xff\xfe" + strings.Join(strings.Split(doc(` encoding="utf-16"`, "K"), ""), "\x00") + "\x00", "K"},
		{"text/xml; charset=klingon", doc("", "Käse"), "Käse"},
		{"text/xml", doc(` encoding="klingon"`, "Käse"), "Käse"},
		{"", doc("", "K\xe4se"), "Käse"},
		{"text/xml; charset=utf-8", doc("", "K\xe4se"), "K\uFFFDse"},
		{"", "\n " + doc("", "K\x00\x08se"), "Kse"},
	} {
		if f, err := Parse([]byte(tt.body), tt.contentType, at); err != nil || f.Title != tt.want {
			t.Errorf("%s %q: %+v %v", tt.contentType, tt.body, f, err)
		}
	}
}

// TestItems: of each kind of feed, items have names of their own, absolute links
// and dates.
func TestItems(t *testing.T) {
	date := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, body := range map[string]string{
		"RSS":  `<rss version="2.0"><channel><item><guid>1</guid><link>/a</link><pubDate>Sun, 01 Mar 2026 13:00:00 +0100</pubDate></item><item><guid>1</guid></item><item><title>b</title></item></channel></rss>`,
		"RDF":  `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><item><link>/a</link><dc:date>2026-03-01T12:00:00Z</dc:date></item><item><title>b</title></item></rdf:RDF>`,
		"Atom": `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id><link href="/a"/><updated>2026-03-01T12:00:00Z</updated></entry><entry><id>2</id></entry></feed>`,
		"JSON": `{"version":"https://jsonfeed.org/version/1","items":[{"id":"1","url":"/a","date_published":"2026-03-01T12:00:00Z"},{"id":"2","content_html":"` + strings.Repeat("<p>", 2000) + `"}]}`,
	} {
		f, err := Parse([]byte(body), "", at)
		if err != nil || len(f.Items) != 2 || f.Items[0].ID == f.Items[1].ID {
			t.Errorf("%s: %+v %v", name, f, err)
			continue
		}
		if it := f.Items[0]; it.Link != "http://h/a" || !it.Published.Equal(date) || !f.Items[1].Published.IsZero() {
			t.Errorf("%s: %+v", name, it)
		}
	}
}

// TestHub: the hub is found where a feed names one, and in the header.
func TestHub(t *testing.T) {
	for name, body := range map[string]string{
		"RSS":  `<rss version="2.0" xmlns:a="http://www.w3.org/2005/Atom"><channel><a:link rel="hub" href="//hub/x"/><a:link rel="self" href="/self"/></channel></rss>`,
		"Atom": `<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="http://hub/x"/><link rel="self" href="self"/><link href="/"/></feed>`,
	} {
		f, err := Parse([]byte(body), "", at)
		if err != nil || f.Hub != "http://hub/x" || !strings.HasSuffix(f.Topic, "/self") {
			t.Errorf("%s: %+v %v", name, f, err)
		}
	}
	for header, want := range map[string]string{
		`<http://hub/x>; rel="hub"`:                             "http://hub/x",
		`</self>; rel=self, <//hub/x>; type=a; rel=hub`:         "http://hub/x",
		`<http://b>; rel=preload, <http://c>; rel="stylesheet"`: "",
	} {
		got := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", header)
			io.WriteString(w, example)
		}).Fetch(context.Background(), Place{URL: "http://a.test/feed"})
		if got.Feed == nil || got.Feed.Hub != want {
			t.Errorf("%s: %+v", header, got)
		}
	}
}

// FuzzParse: whatever is sent, an answer is given, with items that differ.
func FuzzParse(f *testing.F) {
	f.Add([]byte(example), "text/xml; charset=utf-16")
	f.Add([]byte(`<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>1</id></entry></feed>`), "")
	f.Add([]byte(`{"version":"https://jsonfeed.org/version/1","items":[{"id":"1"}]}`), "")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		got, err := Parse(body, contentType, at)
		if err != nil {
			return
		}
		known := map[uint64]bool{}
		for _, it := range got.Items {
			if known[it.ID] || len([]rune(it.Title)) > maxText+1 {
				t.Fatalf("%+v", got)
			}
			known[it.ID] = true
		}
	})
}
