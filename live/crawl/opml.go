package crawl

import (
	"encoding/xml"
	"fmt"
	"net/url"
	"os"
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

// ReadOPML reads the feeds of an OPML file, in whatever folders they are. A feed
// that is named twice counts once.
func ReadOPML(path string) ([]Outline, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := xml.NewDecoder(f)
	d.CharsetReader = charset.NewReaderLabel
	var doc struct {
		XMLName  xml.Name      `xml:"opml"`
		Outlines []opmlOutline `xml:"body>outline"`
	}
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("%s: it is no OPML: %w", path, err)
	}
	var feeds []Outline
	known := map[string]bool{}
	var walk func([]opmlOutline) error
	walk = func(all []opmlOutline) error {
		for _, o := range all {
			if err := walk(o.Outlines); err != nil {
				return err
			}
			address := strings.TrimSpace(o.URL)
			if address == "" || known[address] {
				continue
			}
			known[address] = true
			u, err := url.Parse(address)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return fmt.Errorf("%s: xmlUrl is %q; allowed is an address with http or https", path, address)
			}
			feed := Outline{URL: address, Title: o.Title, Worth: 1}
			if feed.Title == "" {
				feed.Title = o.Text
			}
			if o.Worth != "" {
				if feed.Worth, err = ParseWorth(o.Worth); err != nil {
					return fmt.Errorf("%s: %s: %w", path, address, err)
				}
			}
			feeds = append(feeds, feed)
		}
		return nil
	}
	if err := walk(doc.Outlines); err != nil {
		return nil, err
	}
	if len(feeds) == 0 {
		return nil, fmt.Errorf("%s: no outline has an xmlUrl; needed is a feed", path)
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
