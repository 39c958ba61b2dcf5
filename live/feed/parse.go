package feed

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mmcdole/gofeed"
	"github.com/mmcdole/gofeed/atom"
	"github.com/mmcdole/gofeed/rss"
	"golang.org/x/net/html/charset"
)

// Limits of what is read of a feed.
const (
	maxItems = 1000
	maxTitle = 300 // characters
	maxLink  = 2000
)

// Feed is what a feed shows.
type Feed struct {
	Title string
	Pace  Pace   // when it is not to be asked for, as it says itself
	Hub   string // WebSub hub that sends what is new; empty without
	Topic string // what the hub calls the feed
	Items []Item // in the order of the feed
	Whole bool   // nothing that is new is missing among the items, although each of them may be new
}

// Item is an item of a feed.
type Item struct {
	ID        uint64    `json:"id"` // unlike that of other items of the feed
	Also      uint64    `json:"-"`  // an item with the same one is the same, at another look; 0 without
	Title     string    `json:"title,omitempty"`
	Link      string    `json:"link,omitempty"`
	Summary   string    `json:"summary,omitempty"`  // beginning of what it says, as text
	Published time.Time `json:"published,omitzero"` // zero where it does not say
}

// parsing is locked by Parse, so that the memory for one feed is enough.
var parsing sync.Mutex

// Parse reads a feed that was found at an address: its newest items, if there are more than
// maxItems. It may be called at once, and then waits for the others.
func Parse(body []byte, contentType string, at *url.URL) (*Feed, error) {
	return parse(body, false, contentType, at)
}

// parse is Parse for a feed, or for its beginning.
func parse(body []byte, beginning bool, contentType string, at *url.URL) (f *Feed, err error) {
	parsing.Lock()
	defer parsing.Unlock()
	public := *at
	public.User = nil // of which neither its links nor its hub are to know
	at = &public
	// A panic of a parser over what a stranger sent is an error of that feed.
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, failf("it is malformed: %.100v", r)
		}
	}()
	parser := gofeed.NewParser()
	parser.KeepOriginalFeed = true
	parser.RSSTranslator = &gofeed.DefaultRSSTranslator{DisableContentImageScan: true}
	shown := newNewest()
	head, err := inParts(plain(body, contentType), beginning, func(document []byte) error {
		part, err := parser.Parse(bytes.NewReader(document))
		if err != nil {
			return err
		}
		for k, it := range part.Items {
			if r, is := part.OriginalFeed().(*rss.Feed); is && it.Link == "" {
				it.Link = permalink(r.Items[k].GUID)
			}
			shown.add(newItem(part, it, at))
		}
		return nil
	})
	var parsed *gofeed.Feed
	if err == nil {
		parsed, err = parser.Parse(bytes.NewReader(head))
	}
	if err == error(errNoFeed) {
		return nil, err
	}
	if err != nil {
		return nil, failf("it is malformed: %.100v", err)
	}
	f = &Feed{Title: title(parsed, parsed.Title), Topic: at.String(), Items: shown.take()}
	for i, it := range f.Items {
		if shown.also[it.Also] > 1 { // several of one title and date are not the same
			f.Items[i].Also = 0
		}
		if shown.shared[it.ID] {
			f.Items[i].ID = shown.known[it.ID]
		}
	}
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
	}
	f.Pace = paceOf(parsed)
	return f, nil
}

// reference is one of HTML to a character.
var reference = regexp.MustCompile(`&#?\w+;`)

// title returns a title of a feed for people. In XML many are HTML, so that references are left in them.
func title(of *gofeed.Feed, text string) string {
	if of.FeedType != "json" {
		text = reference.ReplaceAllStringFunc(text, html.UnescapeString)
	}
	return Line(text)
}

// permalink returns the link that an id of RSS is, or nothing.
func permalink(id *rss.GUID) string {
	if id == nil || strings.EqualFold(id.IsPermalink, "false") || !webAddress.MatchString(id.Value) {
		return ""
	}
	return id.Value
}

var webAddress = regexp.MustCompile(`(?i)^https?://`)

// newItem returns an item of a feed. Its id is what the feed says it is, or else its link, without
// what is added to links to see who follows them; and one without an id is the same as
// that of another look with the same title and date, wherever its link leads by then. An episode
// without a link has that of its file. Titled is its id if items with other titles have the same link; 0 if it has
// another name than its link.
func newItem(of *gofeed.Feed, it *gofeed.Item, at *url.URL) (item Item, titled uint64) {
	name := cmp.Or(it.GUID, untracked(it.Link), it.Title+"\x00"+it.Published+"\x00"+it.Description)
	if it.GUID == "" && it.Link != "" {
		titled = Hash(name + "\x00" + Line(cmp.Or(it.Title, it.Description))) // a date may be that of the fetch
	}
	if names := it.Extensions["itunes"]["title"]; it.Title == "" && len(names) > 0 {
		it.Title = names[0].Value
	}
	item = Item{ID: Hash(name), Title: title(of, it.Title), Summary: Summary(it.Description)}
	if item.Summary == "" { // as of a picture
		item.Summary = Summary(it.Content)
	}
	if item.Link = link(at, it.Link); item.Link == "" && len(it.Enclosures) > 0 {
		item.Link = link(at, it.Enclosures[0].URL)
	}
	// One whose year has not four digits is none, such as a date without a year, read as year 0.
	if date := cmp.Or(it.PublishedParsed, it.UpdatedParsed); date != nil {
		if year := date.UTC().Year(); 0 < year && year < 10_000 {
			item.Published = date.UTC()
		}
	}
	if it.GUID == "" && item.Title != "" && !item.Published.IsZero() {
		item.Also = Hash(Line(it.Title) + "\x00" + item.Published.Format(time.RFC3339))
	}
	return item, titled
}

// link returns where a link of a page leads, or nothing.
func link(at *url.URL, to string) string {
	u, err := at.Parse(to)
	if err != nil || to == "" || len(to) > maxLink || slices.Contains(runs, u.Scheme) {
		return ""
	}
	return u.String()
}

// runs are the schemes of links that lead nowhere: a page that has one runs what is written in it.
var runs = []string{"javascript", "vbscript", "data"}

// Hash returns the number of a name.
func Hash(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.LittleEndian.Uint64(sum[:])
}

// tracking is the name of a parameter that is added to a link and that no site has as one of its own.
var tracking = regexp.MustCompile(`(?i)^(utm_\w*|mtm_\w*|hsa_\w*|_hsenc|_hsmi|` +
	`(fb|g|d|y|tw|tt)clid|msclkid|[gw]braid|gclsrc|igshid|mc_[ce]id|mkt_tok|xtor|_openstat)(=|$)`)

// untracked returns a link without such parameters.
func untracked(link string) string {
	address, fragment, anchored := strings.Cut(link, "#")
	path, query, asks := strings.Cut(address, "?")
	if parameters := strings.Split(query, "&"); slices.ContainsFunc(parameters, tracking.MatchString) {
		query = strings.Join(slices.DeleteFunc(parameters, tracking.MatchString), "&")
		asks = query != ""
	}
	if asks {
		path += "?" + query
	}
	if anchored && !tracking.MatchString(fragment) {
		path += "#" + fragment
	}
	return path
}

// newest keeps the newest of items: those with the latest dates, and of equal dates, or
// without dates, those that the feed shows first.
type newest struct {
	items  []Item            // in the order of the feed
	known  map[uint64]uint64 // what newItem calls titled, by ID
	also   map[uint64]int    // items
	shared map[uint64]bool   // IDs of links that items with several titles have
}

func newNewest() *newest {
	return &newest{known: map[uint64]uint64{}, also: map[uint64]int{}, shared: map[uint64]bool{}}
}

func (n *newest) add(it Item, titled uint64) {
	if first := n.known[it.ID]; first != 0 && titled != 0 && titled != first {
		n.shared[it.ID] = true
		it.ID = titled
	}
	if _, is := n.known[it.ID]; is {
		return
	}
	n.known[it.ID] = titled
	n.also[it.Also]++
	if n.items = append(n.items, it); len(n.items) == 2*maxItems {
		n.take()
	}
}

// take returns at most maxItems items, and drops the others.
func (n *newest) take() []Item {
	if len(n.items) > maxItems {
		byDate := slices.Clone(n.items)
		slices.SortStableFunc(byDate, func(a, b Item) int { return b.Published.Compare(a.Published) })
		left := map[uint64]bool{}
		for _, it := range byDate[maxItems:] {
			left[it.ID] = true
		}
		n.items = slices.DeleteFunc(n.items, func(it Item) bool { return left[it.ID] })
	}
	return n.items
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

// Line returns the beginning of a title, in one line.
func Line(s string) string {
	r := []rune(inLine(s))
	return string(r[:min(len(r), maxTitle)])
}

// inLine returns a text in one line, without the characters by which it would command a terminal.
func inLine(s string) string {
	none := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	return strings.Join(strings.FieldsFunc(s, none), " ")
}

// declaration is that of XML, with its encoding.
var declaration = regexp.MustCompile(`^\s*<\?xml\s(?:[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["'])?[^>]*>`)

// noCharacter is a reference by number to what is no character of XML.
var noCharacter = regexp.MustCompile(
	`(?i)&#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01]|6553[45])|x0*(?:[0-8bcef]|1[0-9a-f]|fff[ef]));`)

// UTF8 returns a text in UTF-8, without what is no character of XML. What its declaration
// says of its encoding does not hold any more.
func UTF8(body []byte, contentType string) []byte {
	coding, _ := charset.Lookup(encoding(body, contentType))
	if text, err := coding.NewDecoder().Bytes(body); err == nil {
		body = text
	}
	body = bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\ufffe' || r == '\uffff' {
			return -1
		}
		return r // U+FFFD for what is no UTF-8
	}, bytes.TrimPrefix(body, []byte("\ufeff")))
	return noCharacter.ReplaceAll(body, nil)
}

// plain returns a feed in UTF-8, without a declaration.
func plain(body []byte, contentType string) []byte {
	return bytes.TrimSpace(declaration.ReplaceAll(UTF8(body, contentType), nil))
}

// encoding returns the name of that of a body. A byte order mark decides over the HTTP
// header, and this over the declaration (RFC 7303). Without any of them it is what the
// bytes are. JSON is UTF-8, whatever a header says (RFC 8259, section 8.1); so is XML that says so and
// is, as some servers name one charset for all that they have.
func encoding(body []byte, contentType string) (name string) {
	starts := func(with string) bool { return bytes.HasPrefix(body, []byte(with)) }
	start := bytes.TrimLeft(body[:min(len(body), 1024)], "\ufeff \t\r\n")
	if bytes.HasPrefix(start, []byte("{")) && !starts("{\x00") {
		contentType = "application/json; charset=utf-8"
	}
	m := declaration.FindSubmatch(body)
	if m != nil && strings.EqualFold(string(m[1]), "utf-8") && utf8.Valid(body) {
		return "utf-8"
	}
	if _, name, certain := charset.DetermineEncoding(body[:min(len(body), 3)], contentType); certain {
		return name
	}
	// A declaration that is read as ASCII is none of UTF-16.
	if m != nil {
		if _, name := charset.Lookup(string(m[1])); name != "" && !strings.HasPrefix(name, "utf-16") {
			return name
		}
	}
	switch {
	case starts("<\x00") || starts("{\x00"):
		return "utf-16le"
	case starts("\x00<") || starts("\x00{"):
		return "utf-16be"
	case utf8.Valid(body):
		return "utf-8"
	}
	return "windows-1252"
}
