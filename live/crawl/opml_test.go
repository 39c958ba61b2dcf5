package crawl

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

func inUTF16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, c := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, c)
	}
	return string(b)
}

// TestParseOPML: what is read of files, as readers and people write them. An outline that
// names no feed is left out, with its line.
func TestParseOPML(t *testing.T) {
	body := func(outlines string) string {
		return "<opml version=\"2.0\">\n<body>\n" + outlines + "\n</body></opml>"
	}
	const good = `<outline type="rss" title="Zürich" xmlUrl="http://a.test/feed"/>`
	declared := func(encoding string) string { return `<?xml version="1.0" encoding="` + encoding + `"?>` + body(good) }
	leftOut := string(must(os.ReadFile("testdata/left-out.opml")))
	for _, tt := range []struct {
		name  string
		text  string
		feeds string // addresses
		title string // of the first
		left  []string
		err   string
	}{
		{name: "UTF-8", text: body(good), feeds: "http://a.test/feed", title: "Zürich"},
		{name: "a mark", text: "\ufeff" + declared("utf-8"), feeds: "http://a.test/feed", title: "Zürich"},
		{name: "Latin 1", text: strings.Replace(declared("iso-8859-1"), "ü", "\xfc", 1),
			feeds: "http://a.test/feed", title: "Zürich"},
		{name: "no charset", text: strings.Replace(body(good), "ü", "\xfc", 1),
			feeds: "http://a.test/feed", title: "Zürich"},
		{name: "UTF-16", text: inUTF16(binary.LittleEndian, "\ufeff"+declared("utf-16")),
			feeds: "http://a.test/feed", title: "Zürich"},
		{name: "big endian", text: inUTF16(binary.BigEndian, "\ufeff"+declared("UTF-16")),
			feeds: "http://a.test/feed", title: "Zürich"},
		{name: "UTF-16, no mark", text: inUTF16(binary.LittleEndian, declared("utf-16")),
			feeds: "http://a.test/feed", title: "Zürich"},
		{name: "UTF-16, only said", text: declared("utf-16"), feeds: "http://a.test/feed", title: "Zürich"},
		{name: "an unknown charset", text: declared("klingon"), feeds: "http://a.test/feed", title: "Zürich"},
		{
			name: "feed",
			text: body(`<outline xmlUrl="feed://a.test/x"/><outline xmlUrl="FEED:https://b.test/X"/>` +
				`<outline xmlUrl="feed:http://a.test/x"/>`),
			feeds: "http://a.test/x https://b.test/X",
		},
		{
			name: "folders",
			text: body(`<outline text="a"><outline text="b"><outline text="c" xmlUrl=" http://c.test/ "/></outline>` +
				good + `</outline>`),
			feeds: "http://c.test/ http://a.test/feed",
			title: "c",
		},
		{name: "other spelling", text: `<OPML><BODY><OUTLINE XMLURL="http://a.test/feed"/></BODY></OPML>`,
			feeds: "http://a.test/feed"},
		{name: "an ampersand", text: body(`<outline title="A & B&nbsp;C" xmlUrl="http://a.test/feed?a=1&b=2"/>`),
			feeds: "http://a.test/feed?a=1&b=2", title: "A & B\u00a0C"},
		{name: "an entity", text: body(`<outline xmlUrl="http://a.test/feed?a=1&amp;b=2"/>`),
			feeds: "http://a.test/feed?a=1&b=2"},
		{name: "twice", text: body(good + good), feeds: "http://a.test/feed", title: "Zürich"},
		{
			name: "left out", text: leftOut, feeds: "http://a.test/feed", title: "Zürich",
			left: []string{
				`line 4: xmlUrl is "/feed"; allowed is an address with http or https`,
				`line 6: xmlUrl is "file:///x"; allowed is an address with http or https`,
				`line 8: http://b.test/: worth is "11"; allowed is a number from 0 to 10`,
				`line 8: xmlUrl is "http://%zz/"; allowed is an address with http or https`,
				`line 8: xmlUrl is "ftp://xxxxx@b.test"; allowed is an address with http or https`,
			},
		},
		{name: "nothing", text: "", err: "it is no OPML: it has no element; needed is <opml>"},
		{name: "addresses", text: "http://a.test/feed\n", err: "it is no OPML: it has no element; needed is <opml>"},
		{name: "no outline", text: body(""), err: "no outline has an xmlUrl; needed is a feed"},
		{
			name: "none is good",
			text: body(`<outline xmlUrl="/feed"/>`),
			err:  `line 3: xmlUrl is "/feed"`,
			left: []string{`line 3: xmlUrl is "/feed"; allowed is an address with http or https`},
		},
		{name: "torn", text: body(good)[:60], err: "it is no OPML"},
		{name: "a page", text: "<!doctype html><p>hello</p>", err: "it is no OPML: it begins with <p>"},
		{name: "JSON", text: `{"a":1}`, err: "it is no OPML"},
		{name: "without quote", text: body(`<outline xmlUrl=http://a.test/feed />`), err: "it is no OPML"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			feeds, left, err := ParseOPML([]byte(tt.text))
			var addresses, said []string
			for _, o := range feeds {
				addresses = append(addresses, o.URL)
			}
			for _, err := range left {
				said = append(said, err.Error())
			}
			if strings.Join(addresses, " ") != tt.feeds || tt.title != "" && feeds[0].Title != tt.title ||
				!slices.Equal(said, tt.left) {
				t.Errorf("%+v, left out %q; want %s, the title %q, left out %q",
					feeds, said, tt.feeds, tt.title, tt.left)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v; want %q", err, tt.err)
			}
		})
	}
}

// TestOddList: a list with bad outlines is crawled, and the page says what is left out; a
// start with an empty one is an error.
func TestOddList(t *testing.T) {
	r := newReferee(t, 30)
	l := newLife(t, r.Server, 30, address(0), "/relative")
	s := l.open(io.Discard)
	s.pass(2 * time.Hour)
	if r.looks == 0 || s.listing.err != nil {
		t.Errorf("%d requests, %v", r.looks, s.listing.err)
	}
	w := httptest.NewRecorder()
	q := httptest.NewRequest("GET", "http://127.0.0.1/", nil)
	s.Handler().ServeHTTP(w, q)
	if page := w.Body.String(); !strings.Contains(page, "line 1: xmlUrl is &#34;/relative&#34;") {
		t.Errorf("%.3000s", page)
	}
	check(s.Close())
	for _, text := range []string{"", "<opml><body/></opml>", opml("/relative")} {
		check(os.WriteFile(l.OPML, []byte(text), 0o644))
		c, err := Open(t.Context(), Options{
			OPML: l.OPML, Dir: l.Dir, PerHour: 30, Shortest: time.Hour, Longest: time.Hour,
			Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		if err == nil {
			t.Errorf("%q is taken for a list", text)
			c.Close()
		}
	}
}

// TestOPMLWithoutEnd: a list whose folders, categories or mistakes have no end is read in seconds,
// and says little.
func TestOPMLWithoutEnd(t *testing.T) {
	const feed, many = `<outline xmlUrl="http://a.test/"/>`, 100_000
	for _, tt := range []struct {
		name, list       string
		categories, left int
	}{
		{"deep folders", strings.Repeat(`<outline text="a">`, many) + feed, 1, 0},
		{"deep folders with feeds", strings.Repeat(`<outline text="a">`+feed, many), mostCategories, 0},
		{"long folders", strings.Repeat(`<outline text="`+strings.Repeat("a", 100_000)+`">`, 100) + feed, 0, 0},
		{"deep elements", strings.Repeat(`<a>`, many) + feed, 0, 0},
		{"many categories", strings.Repeat(`<outline text="a"/>`, many) + func() string {
			var b strings.Builder
			for k := range many {
				fmt.Fprintf(&b, `<outline text="%d">%s</outline>`, k, feed)
			}
			return b.String()
		}(), mostCategories, 0},
		{"mistakes", strings.Repeat(`<outline xmlUrl="x"/>`, many) + feed, 0, mostLeft + 1},
		{"a long mistake", `<outline xmlUrl="` + strings.Repeat("x", 8<<20) + `"/>` + feed, 0, 1},
		{"a long worth", `<outline xmlUrl="http://a.test/" worth="` + strings.Repeat("x", 8<<20) + `"/>` + feed, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			feeds, left, err := ParseOPML([]byte(`<opml><body>` + tt.list + `</body></opml>`))
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it takes %v", took)
			}
			if err != nil || len(feeds) != 1 || len(feeds[0].Categories) != tt.categories || len(left) != tt.left {
				t.Fatalf("%d feeds, %d left out: %.500v", len(feeds), len(left), err)
			}
			size := len(fmt.Sprint(left)) + len(fmt.Sprint(feeds[0].Categories))
			if size > mostCategories*longestPath {
				t.Errorf("%d bytes are said", size)
			}
		})
	}
}
