package crawl

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ephemera/live/feed"
)

// Outline is a feed of an OPML file.
type Outline struct {
	URL   string
	Title string
	Worth float64 // of an item, 0 to 10

	Categories []string // paths of the folders that it is in, such as News/Local

	Checked time.Time // when a reader fetched it last, as far as that is known
}

// equal reports whether the list says the same of two feeds.
func (o Outline) equal(p Outline) bool {
	return o.URL == p.URL && o.Title == p.Title && o.Worth == p.Worth && slices.Equal(o.Categories, p.Categories)
}

// ParseOPML reads the feeds of an OPML file, in whatever folders they are. A feed that is
// named twice counts once. What names no feed is left out, each with an error that says
// where it stands.
func ParseOPML(text []byte) (feeds []Outline, left []error, err error) {
	d := xml.NewDecoder(bytes.NewReader(feed.UTF8(text, "")))
	d.Strict = false // people forget to write & as &amp;
	d.Entity = xml.HTMLEntity
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // it is UTF-8 by now
	known := map[string]int{}                                                          // place among the feeds
	var folders []string                                                               // that are open; "" for a feed
	for inside := false; ; {
		line, _ := d.InputPos()
		token, err := d.Token()
		if err == io.EOF && inside {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("it is no OPML: %w", err)
		}
		start, is := token.(xml.StartElement)
		if is && !inside && !strings.EqualFold(start.Name.Local, "opml") {
			return nil, nil, fmt.Errorf("it is no OPML: it begins with <%s>", start.Name.Local)
		}
		inside = inside || is
		if end, is := token.(xml.EndElement); is && strings.EqualFold(end.Name.Local, "outline") && len(folders) > 0 {
			folders = folders[:len(folders)-1]
		}
		if !is || !strings.EqualFold(start.Name.Local, "outline") {
			continue
		}
		o, err := newOutline(start.Attr)
		nameless := func(name string) bool { return name == "" }
		category := strings.Join(slices.DeleteFunc(slices.Clone(folders), nameless), "/")
		folder := ""
		if o.URL == "" {
			folder = o.Title
		}
		folders = append(folders, folder)
		if err != nil {
			left = append(left, fmt.Errorf("line %d: %w", line, err))
		}
		if err != nil || o.URL == "" {
			continue
		}
		k, is := known[o.URL]
		if !is {
			k = len(feeds)
			known[o.URL] = k
			feeds = append(feeds, o)
		}
		if category != "" && !slices.Contains(feeds[k].Categories, category) {
			feeds[k].Categories = append(feeds[k].Categories, category)
		}
	}
	if len(feeds) == 0 {
		return nil, left, errors.Join(append(left, errors.New("no outline has an xmlUrl; needed is a feed"))...)
	}
	return feeds, left, nil
}

// newOutline returns the feed of an outline, without an address if it is a folder. Readers
// write feed://host/path for http, and feed:https://host/path.
func newOutline(attrs []xml.Attr) (o Outline, err error) {
	value := map[string]string{}
	for _, a := range attrs {
		value[strings.ToLower(a.Name.Local)] = strings.TrimSpace(a.Value)
	}
	o.Title = cmp.Or(value["title"], value["text"])
	address := value["xmlurl"]
	if address == "" {
		return o, nil
	}
	o.URL = address
	if scheme, rest, _ := strings.Cut(address, ":"); strings.EqualFold(scheme, "feed") {
		if o.URL = rest; strings.HasPrefix(rest, "//") {
			o.URL = "http:" + rest
		}
	}
	u, err := url.Parse(o.URL)
	if err == nil && u.User != nil { // what is wrong with it is said without the password
		address = u.Redacted()
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return o, fmt.Errorf("xmlUrl is %q; allowed is an address with http or https", shown(address))
	}
	if o.Worth, err = ParseWorth(cmp.Or(value["worth"], "1")); err != nil {
		return o, fmt.Errorf("%s: %w", shown(address), err)
	}
	return o, nil
}

// ParseWorth reads what an item of a feed is worth.
func ParseWorth(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 10) {
		return 0, fmt.Errorf("worth is %q; allowed is a number from 0 to 10", s)
	}
	return v, nil
}
