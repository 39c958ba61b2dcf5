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

	Categories []Folder // at most mostCategories

	Checked time.Time // when a reader fetched it last, as far as that is known
}

// equal reports whether the list says the same of two feeds.
func (o Outline) equal(p Outline) bool {
	return o.URL == p.URL && o.Title == p.Title && o.Worth == p.Worth && slices.Equal(o.Categories, p.Categories)
}

// put puts the feed into a folder, too.
func (o *Outline) put(f Folder) {
	if f != "" && len(o.Categories) < mostCategories && !slices.Contains(o.Categories, f) {
		o.Categories = append(o.Categories, f)
	}
}

// Of a list that is damaged or hostile, folders with longer paths, and further categories
// of a feed, do not count, and further outlines that are left out are not named.
const (
	longestPath    = 1000 // bytes
	mostCategories = 100
	mostLeft       = 100 // outlines that are named
	longestName    = 300 // letters of an address in an error
)

// ParseOPML reads the feeds of an OPML file, in whatever folders they are. A feed that is
// named twice counts once. What names no feed is left out, each with an error that says
// where it stands.
func ParseOPML(text []byte) (feeds []Outline, left []error, err error) {
	d := xml.NewDecoder(bytes.NewReader(feed.UTF8(text, "")))
	d.Strict = false // people forget to write & as &amp;
	d.Entity = xml.HTMLEntity
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // it is UTF-8 by now
	known := map[string]int{}                                                          // place among the feeds
	var open []Folder                                                                  // the folders of outlines
	more := 0                                                                          // that are left out, too
	for inside := false; ; {
		line, _ := d.InputPos()
		token, err := d.Token()
		if err == io.EOF && inside {
			break
		}
		if err == io.EOF {
			err = errors.New("it has no element; needed is <opml>")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("it is no OPML: %w", err)
		}
		start, is := token.(xml.StartElement)
		if is && !inside && !strings.EqualFold(start.Name.Local, "opml") {
			return nil, nil, fmt.Errorf("it is no OPML: it begins with <%s>", start.Name.Local)
		}
		inside = inside || is
		if end, is := token.(xml.EndElement); is && strings.EqualFold(end.Name.Local, "outline") && len(open) > 0 {
			open = open[:len(open)-1]
		}
		if !is || !strings.EqualFold(start.Name.Local, "outline") {
			continue
		}
		o, err := newOutline(start.Attr)
		var folder Folder
		if len(open) > 0 {
			folder = open[len(open)-1]
		}
		open = append(open, folder)
		if inner := folder.With(o.Title); o.URL == "" && len(inner) <= longestPath {
			open[len(open)-1] = inner
		}
		if err != nil && len(left) < mostLeft {
			left = append(left, fmt.Errorf("line %d: %w", line, err))
		} else if err != nil {
			more++
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
		feeds[k].put(folder)
	}
	if more > 0 {
		left = append(left, fmt.Errorf("%d more outlines name no feed", more))
	}
	if len(feeds) == 0 {
		return nil, left, errors.Join(append(left, errNoFeeds)...)
	}
	return feeds, left, nil
}

// errNoFeeds says that there is nothing to crawl.
var errNoFeeds = errors.New("no outline has an xmlUrl; needed is a feed")

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
		return o, fmt.Errorf("xmlUrl is %.*q; allowed is an address with http or https", longestName, shown(address))
	}
	if o.Worth, err = ParseWorth(cmp.Or(value["worth"], "1")); err != nil {
		return o, fmt.Errorf("%.*s: %w", longestName, shown(address), err)
	}
	return o, nil
}

// ParseWorth reads what an item of a feed is worth.
func ParseWorth(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 10) {
		return 0, fmt.Errorf("worth is %.*q; allowed is a number from 0 to 10", longestName, s)
	}
	return v, nil
}
