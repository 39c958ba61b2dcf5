package feed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mmcdole/gofeed"
	"github.com/mmcdole/gofeed/atom"
	"github.com/mmcdole/gofeed/rss"
	"golang.org/x/net/html/charset"
)

// Limits of what is read of a feed.
const (
	maxItems = 1000
	maxText  = 300  // characters of a title
	maxDepth = 1000 // of elements
)

// Feed is what a feed shows.
type Feed struct {
	Title string
	TTL   time.Duration // not to be asked for again before, as it says itself
	Hub   string        // WebSub hub that tells what is new; empty without
	Topic string        // what the hub calls the feed
	Items []Item        // in the order of the feed
}

// Item is an item of a feed.
type Item struct {
	ID        uint64    `json:"id"` // unlike that of other items of the feed
	Title     string    `json:"title,omitempty"`
	Link      string    `json:"link,omitempty"`
	Published time.Time `json:"published,omitzero"` // zero where it does not say
}

// Parse reads a feed that was found at an address.
func Parse(body []byte, contentType string, at *url.URL) (f *Feed, err error) {
	text := toUTF8(body, contentType)
	if !bytes.HasPrefix(text, []byte("{")) {
		if err := checkDepth(text); err != nil {
			return nil, err
		}
	}
	parser := gofeed.NewParser()
	parser.KeepOriginalFeed = true
	// A panic of the parser over what a stranger sent is an error of that feed.
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, failf("it is malformed: %.100v", r)
		}
	}()
	parsed, err := parser.Parse(bytes.NewReader(text))
	if errors.Is(err, gofeed.ErrFeedTypeNotDetected) {
		return nil, failf("it is neither RSS, nor Atom, nor a JSON feed")
	}
	if err != nil {
		return nil, failf("it is malformed: %.100v", err)
	}
	f = &Feed{Title: short(parsed.Title), Topic: at.String()}
	switch r := parsed.OriginalFeed().(type) {
	case *atom.Feed:
		for _, l := range r.Links {
			f.link(at, l.Rel, l.Href)
		}
	case *rss.Feed:
		for _, names := range r.Extensions { // atom:link
			for _, l := range names["link"] {
				f.link(at, l.Attrs["rel"], l.Attrs["href"])
			}
		}
		if minutes, err := strconv.Atoi(strings.TrimSpace(r.TTL)); err == nil && minutes > 0 {
			f.TTL = min(time.Duration(min(minutes, 1<<20))*time.Minute, maxWait)
		}
	}
	known := map[uint64]bool{}
	for _, it := range parsed.Items {
		item := Item{Title: short(it.Title), Link: it.Link}
		if to, err := at.Parse(it.Link); err == nil {
			item.Link = to.String()
		}
		if len(item.Link) > 2000 {
			item.Link = ""
		}
		switch {
		case it.PublishedParsed != nil:
			item.Published = it.PublishedParsed.UTC()
		case it.UpdatedParsed != nil:
			item.Published = it.UpdatedParsed.UTC()
		}
		name := it.GUID
		if name == "" {
			name = it.Link
		}
		if name == "" {
			name = it.Title + "\x00" + it.Published + "\x00" + it.Description
		}
		sum := sha256.Sum256([]byte(name))
		item.ID = binary.LittleEndian.Uint64(sum[:])
		if !known[item.ID] {
			known[item.ID] = true
			f.Items = append(f.Items, item)
		}
		if len(f.Items) == maxItems {
			break
		}
	}
	return f, nil
}

// link takes up a link to the hub or to itself.
func (f *Feed) link(at *url.URL, rel, href string) {
	to, err := at.Parse(href)
	if err != nil || href == "" {
		return
	}
	switch rel {
	case "hub":
		f.Hub = to.String()
	case "self":
		f.Topic = to.String()
	}
}

var linkHeader = regexp.MustCompile(`<([^>]*)>[^,]*?;\s*rel="?(hub|self)\b`)

func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) > maxText {
		s = string([]rune(s)[:maxText]) + "…"
	}
	return s
}

var declaration = regexp.MustCompile(`^\s*<\?xml[^>]*?(\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["'])`)

// toUTF8 returns a body in UTF-8. A byte order mark decides over the HTTP header,
// and this over the declaration in the document (RFC 7303).
func toUTF8(body []byte, contentType string) []byte {
	head := func() []byte { return body[:min(len(body), 1024)] }
	coding, _, certain := charset.DetermineEncoding(head(), contentType)
	if m := declaration.FindSubmatch(head()); m != nil && !certain {
		coding, _ = charset.Lookup(string(m[2]))
	}
	if coding != nil {
		if text, err := coding.NewDecoder().Bytes(body); err == nil {
			body = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
	}
	if m := declaration.FindSubmatchIndex(head()); m != nil {
		body = slices.Concat(body[:m[2]], body[m[3]:])
	}
	body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	return bytes.TrimLeft(bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return -1 // no character of XML
		}
		return r
	}, body), " \t\r\n")
}

// checkDepth refuses elements within elements without end, on which a parser that
// calls itself would run out of stack.
func checkDepth(text []byte) error {
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Strict = false
	for depth := 0; ; {
		token, err := d.RawToken()
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
		if depth > maxDepth {
			return failf("it is malformed: more than %d elements within each other", maxDepth)
		}
		if err != nil {
			return nil // at the end; or the parser says what is wrong
		}
	}
}
