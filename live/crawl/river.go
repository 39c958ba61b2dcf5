package crawl

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What was found can be read as a feed: /items.json is a JSON Feed 1.1
// (https://www.jsonfeed.org/version/1.1), /items.atom is Atom (RFC 4287) in pages (RFC 5005).

// riverPage is one page of the items of some feeds.
type riverPage struct {
	Title   string
	ID      string // of the feed that it is a page of
	Home    string // address of the page for people
	Self    string
	First   string // address of the first page
	Next    string // address of the next page; empty on the last one
	Updated time.Time
	Items   []*item
}

// asUUID returns a name as a UUID, which is the same wherever it is made (RFC 9562, version 8).
func asUUID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	h := hex.EncodeToString(sum[:16])
	return "urn:uuid:" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Key names the item everywhere: by its feed and what that says it is.
func (it *item) Key() string { return asUUID("item", it.Feed, strconv.FormatUint(it.ID, 16)) }

// Dated is when it was published, or when it was found if nobody knows.
func (it *item) Dated() time.Time {
	if it.Published.IsZero() {
		return it.At.UTC()
	}
	return it.Published.UTC()
}

// in reports whether the feed is in a folder, or in one within it.
func (r *record) in(f Folder) bool {
	return slices.ContainsFunc(r.Categories, func(one Folder) bool { return one.within(f) })
}

// origin returns how this server is reached.
func origin(q *http.Request) string {
	scheme := "http"
	if q.TLS != nil || q.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + q.Host
}

// riverPage returns the page that a request asks for: of all feeds of the list, of one or of a
// category, before a place.
func (c *Crawler) riverPage(q *http.Request) (p *riverPage, status int, err error) {
	values := q.URL.Query()
	feed, category := values.Get("feed"), Folder(values.Get("category"))
	var before *place
	if text := values.Get("before"); text != "" {
		at, err := parsePlace(text)
		if err != nil {
			return nil, http.StatusBadRequest, fmt.Errorf("before is %q: %w", text, err)
		}
		before = &at
	}
	p = &riverPage{Title: "Feeds", ID: asUUID("river", feed, string(category))}
	var one *record
	if feed != "" {
		if one = c.named(feed); one == nil || !one.listed {
			return nil, http.StatusNotFound, fmt.Errorf("feed is %q; no feed of the list is called so", feed)
		}
		p.Title = one.Name()
	}
	if category != "" {
		if one == nil {
			p.Title = category.Name()
		}
		if !slices.ContainsFunc(c.onList(), func(r *record) bool { return r.in(category) }) {
			return nil, http.StatusNotFound, fmt.Errorf("category is %q; no feed of the list is in it", category)
		}
	}
	items, next, err := c.find(before, shownItems, func(d *drop) bool {
		return (one == nil || d.from == one) && (category == "" || d.from.in(category))
	})
	if err != nil {
		return nil, http.StatusInternalServerError, err
	}
	here := origin(q)
	at := func(before string) string {
		query := url.Values{}
		for name, value := range map[string]string{"feed": feed, "category": string(category), "before": before} {
			if value != "" {
				query.Set(name, value)
			}
		}
		u := url.URL{Path: q.URL.Path, RawQuery: query.Encode()}
		return here + u.String()
	}
	p.Home, p.Self, p.First, p.Items = here+"/", at(values.Get("before")), at(""), items
	if one != nil {
		p.Home += "?" + url.Values{"feed": {one.Key()}}.Encode()
	}
	if next != nil {
		p.Next = at(next.String())
	}
	for _, it := range items {
		if it.At.After(p.Updated) {
			p.Updated = it.At.UTC()
		}
	}
	return p, http.StatusOK, nil
}

// jsonFeed and those below are the elements of a JSON Feed.
type jsonFeed struct {
	Version string     `json:"version"`
	Title   string     `json:"title"`
	Home    string     `json:"home_page_url"`
	Self    string     `json:"feed_url"`
	Next    string     `json:"next_url,omitempty"`
	Items   []jsonItem `json:"items"`
}

type jsonItem struct {
	ID        string       `json:"id"`
	URL       string       `json:"url,omitempty"`
	Title     string       `json:"title,omitempty"`
	Text      string       `json:"content_text"`
	Published time.Time    `json:"date_published"`
	Authors   []jsonAuthor `json:"authors"`
	Tags      []Folder     `json:"tags,omitempty"`
}

type jsonAuthor struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// asJSON returns the item as one of a JSON Feed. Its author is the feed that it is of.
func (it *item) asJSON() jsonItem {
	return jsonItem{
		ID: it.Key(), URL: it.Link, Title: it.Title, Text: cmp.Or(it.Summary, it.Title), Published: it.Dated(),
		Authors: []jsonAuthor{{it.from.Name(), it.from.Address()}}, Tags: it.from.Categories,
	}
}

func (p *riverPage) json() ([]byte, error) {
	f := jsonFeed{
		Version: "https://jsonfeed.org/version/1.1", Title: p.Title, Home: p.Home, Self: p.First, Next: p.Next,
		Items: []jsonItem{},
	}
	for _, it := range p.Items {
		f.Items = append(f.Items, it.asJSON())
	}
	return json.MarshalIndent(f, "", "\t")
}

// atomFeed and those below are the elements of Atom.
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated time.Time   `xml:"updated"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	ID         string         `xml:"id"`
	Title      string         `xml:"title"`
	Updated    time.Time      `xml:"updated"`
	Published  *time.Time     `xml:"published"`
	Author     atomAuthor     `xml:"author"`
	Links      []atomLink     `xml:"link"`
	Categories []atomCategory `xml:"category"`
	Content    *string        `xml:"content"`
	Source     atomSource     `xml:"source"`
}

type atomAuthor struct {
	Name string `xml:"name"`
}

type atomCategory struct {
	Term Folder `xml:"term,attr"`
}

type atomSource struct {
	ID    string     `xml:"id"`
	Title string     `xml:"title"`
	Links []atomLink `xml:"link"`
}

func (p *riverPage) atom() ([]byte, error) {
	f := atomFeed{
		ID: p.ID, Title: p.Title, Updated: p.Updated,
		Links: []atomLink{
			{"self", "application/atom+xml", p.Self},
			{"first", "application/atom+xml", p.First},
			{"alternate", "text/html", p.Home},
		},
	}
	if p.Next != "" {
		f.Links = append(f.Links, atomLink{"next", "application/atom+xml", p.Next})
	}
	for _, it := range p.Items {
		r := it.from
		e := atomEntry{
			ID: it.Key(), Title: it.Title, Updated: it.Dated(), Author: atomAuthor{r.Name()},
			Source: atomSource{asUUID("feed", r.ID.URL), r.Name(), []atomLink{{Rel: "self", Href: r.Address()}}},
		}
		if !it.Published.IsZero() {
			e.Published = &e.Updated
		}
		if it.Link != "" {
			e.Links = []atomLink{{Rel: "alternate", Href: it.Link}}
		}
		if it.Summary != "" || it.Link == "" { // an entry has either a link or content
			text := cmp.Or(it.Summary, it.Title)
			e.Content = &text
		}
		for _, f := range r.Categories {
			e.Categories = append(e.Categories, atomCategory{f})
		}
		f.Entries = append(f.Entries, e)
	}
	text, err := xml.MarshalIndent(f, "", "\t")
	return append([]byte(xml.Header), text...), err
}

// stale is how old the last item is before an answer says when that was: an item that comes
// within the same second would be missed by a reader that asks for what came after it.
const stale = 10 * time.Second

// serveRiver answers with a page of items. The validator is that of the text.
func (c *Crawler) serveRiver(contentType string, write func(*riverPage) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		c.mu.Lock()
		p, status, err := c.riverPage(q)
		var text []byte
		var modified time.Time
		if err == nil {
			if text, err = write(p); err != nil {
				status = http.StatusInternalServerError
			}
			if c.clock().Sub(p.Updated) > stale {
				modified = p.Updated
			}
		}
		c.mu.Unlock()
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if err != nil {
			http.Error(w, err.Error(), status)
			return
		}
		sum := sha256.Sum256(text)
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:16])+`"`)
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "no-cache") // ask each time whether it is the same
		http.ServeContent(w, q, "", modified, bytes.NewReader(text))
	}
}

// outline is an element of an OPML file that is written.
type outline struct {
	Text     string    `xml:"text,attr"`
	Title    string    `xml:"title,attr,omitempty"`
	Type     string    `xml:"type,attr,omitempty"`
	URL      string    `xml:"xmlUrl,attr,omitempty"`
	Worth    string    `xml:"worth,attr,omitempty"`
	Outlines []outline `xml:"outline"`
}

// put puts the outline of a feed into a folder.
func (o *outline) put(f Folder, feed outline) {
	if f == "" {
		o.Outlines = append(o.Outlines, feed)
		return
	}
	outer, inner, _ := strings.Cut(string(f), "/")
	name := Folder(outer).Name()
	i := slices.IndexFunc(o.Outlines, func(in outline) bool { return in.URL == "" && in.Text == name })
	if i < 0 {
		i = len(o.Outlines)
		o.Outlines = append(o.Outlines, outline{Text: name})
	}
	o.Outlines[i].put(Folder(inner), feed)
}

// writeOPML returns the list of feeds as it stands, in their folders.
func (c *Crawler) writeOPML() ([]byte, error) {
	var all outline
	for _, r := range c.onList() {
		feed := outline{Text: r.Name(), Title: r.Name(), Type: "rss", URL: r.Address()}
		if r.Worth != 1 {
			feed.Worth = strconv.FormatFloat(r.Worth, 'g', -1, 64)
		}
		if len(r.Categories) == 0 {
			all.put("", feed)
		}
		for _, f := range r.Categories {
			all.put(f, feed)
		}
	}
	doc := struct {
		XMLName xml.Name  `xml:"opml"`
		Version string    `xml:"version,attr"`
		Title   string    `xml:"head>title"`
		Feeds   []outline `xml:"body>outline"`
	}{Version: "2.0", Title: "Feeds", Feeds: all.Outlines}
	text, err := xml.MarshalIndent(doc, "", "\t")
	return append([]byte(xml.Header), text...), err
}

// serveOPML answers with the list of feeds.
func (c *Crawler) serveOPML(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	text, err := c.writeOPML()
	c.mu.Unlock()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/x-opml; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="feeds.opml"`)
	w.Write(text)
}
