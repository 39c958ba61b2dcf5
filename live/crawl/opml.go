package crawl

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html/charset"
)

// Outline is a feed of an OPML file.
type Outline struct {
	URL   string
	Title string
	Worth float64 // of an item, 0 to 10
}

type opmlOutline struct {
	URL      string        `xml:"xmlUrl,attr"`
	Title    string        `xml:"title,attr"`
	Text     string        `xml:"text,attr"`
	Worth    string        `xml:"worth,attr"`
	Outlines []opmlOutline `xml:"outline"`
}

// ParseOPML reads the feeds of an OPML file, in whatever folders they are. A feed
// that is named twice counts once.
func ParseOPML(text []byte) (feeds []Outline, err error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	d.CharsetReader = charset.NewReaderLabel
	var doc struct {
		XMLName  xml.Name      `xml:"opml"`
		Outlines []opmlOutline `xml:"body>outline"`
	}
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("it is no OPML: %w", err)
	}
	known := map[string]bool{"": true}
	for all, k := doc.Outlines, 0; k < len(all); k++ {
		o := all[k]
		all = append(all, o.Outlines...)
		address := strings.TrimSpace(o.URL)
		if known[address] {
			continue
		}
		known[address] = true
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("xmlUrl is %q; allowed is an address with http or https", address)
		}
		worth, err := ParseWorth(cmp.Or(o.Worth, "1"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
		feeds = append(feeds, Outline{URL: address, Title: cmp.Or(o.Title, o.Text), Worth: worth})
	}
	if len(feeds) == 0 {
		return nil, errors.New("no outline has an xmlUrl; needed is a feed")
	}
	return feeds, nil
}

// ParseWorth reads what an item of a feed is worth.
func ParseWorth(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 10) {
		return 0, fmt.Errorf("worth is %q; allowed is a number from 0 to 10", s)
	}
	return v, nil
}
