package feed

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// A feed may be written so as to break its reader: elements within elements without end,
// millions of items, texts of megabytes, names that are long and repeated. So the parser
// does not read what was sent. It reads documents that are written here from the tokens of
// it: the head, which is all but the items, and parts with some of the items each. What
// does not fit into these limits is left out; the parts come one after the other, so that
// memory for one is enough.
const (
	maxDepth     = 1000      // of elements: what follows a deeper one is cut
	maxTag       = 64 << 10  // bytes of one tag that was sent: what follows a longer one is cut
	maxAttrs     = 3000      // bytes of a tag that is written
	maxName      = 200       // bytes of the name of an element, or of a namespace
	maxChild     = 4000      // bytes of a child of an item, or of the feed
	maxChildren  = 64 << 10  // bytes of an item, or of the head
	maxPart      = 256 << 10 // bytes of a part without its last item
	maxPartItems = 1000      // of a part
	mostItems    = 50_000    // of a feed: what follows is cut
	mostOdd      = 5000      // dates of items that are in no form of a standard: further ones are left out
)

const itunes = "http://www.itunes.com/DTDs/PodCast-1.0.dtd" // as the parser knows the namespace

var errNoFeed = failf("it is neither RSS, nor Atom, nor a JSON feed")

// inParts returns the head of a feed, and calls part with one part after the other. The
// text is UTF-8; where it is the beginning of a feed alone, an item that has no end is left out.
func inParts(text []byte, beginning bool, part func(document []byte) error) (head []byte, err error) {
	if bytes.HasPrefix(text, []byte("{")) {
		head, err = jsonInParts(text, part)
		if beginning && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
			err = nil
		}
		return head, err
	}
	s := &splitter{part: part, beginning: beginning}
	err = s.split(text)
	return s.head.Bytes(), err
}

// splitter writes head and parts of an XML feed.
type splitter struct {
	part  func(document []byte) error
	head  bytes.Buffer
	items bytes.Buffer // of the part
	n     int          // items in it
	all   int          // items of parts that were handed out
	open  []element    // that are written and have not ended
	left  int          // elements within these that have not ended and are left out
	dates dates        // of items

	beginning bool // of a feed is the text
}

// element is one that is written.
type element struct {
	name, space string
	tag         string // its start
	markup      string // as its attribute type says
	kind        kind
	to          *bytes.Buffer
	begin       int // of to, where it is
	end         int // of to, up to which what is in the element may be written
}

type kind int

const (
	inner kind = iota
	frame      // the root, or the channel: around items
	item
)

// split reads the text token by token, up to the end of the root, or as far as the limits
// allow.
func (s *splitter) split(text []byte) error {
	in := &window{text: text}
	d := xml.NewDecoder(in)
	d.Strict = false
	// It is UTF-8 by now, whatever a declaration says.
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for {
		at := d.InputOffset()
		in.end = len(text)
		if rest := text[at:]; len(rest) > 1 && rest[0] == '<' && rest[1] != '!' {
			in.end = min(len(text), int(at)+maxTag)
		}
		token, err := d.Token()
		switch t := token.(type) {
		case nil:
			if in.end < len(text) && in.at == in.end {
				return s.finish()
			}
			if len(s.open) == 0 && err == io.EOF {
				return errNoFeed
			}
			if s.beginning && in.at == len(text) {
				s.drop()
				return s.finish()
			}
			return err
		case xml.StartElement:
			if len(s.open)+s.left == maxDepth {
				return s.finish()
			}
			name := strings.ToLower(t.Name.Local)
			if len(s.open) == 0 && name != "rss" && name != "rdf" && name != "feed" {
				return errNoFeed
			}
			s.start(t)
		case xml.EndElement:
			if err := s.end(); err != nil || len(s.open) == 0 {
				return err
			}
			if s.all >= mostItems {
				return s.finish()
			}
		case xml.CharData:
			s.text(text[at:d.InputOffset()])
		}
	}
}

// start takes up the start of an element.
func (s *splitter) start(t xml.StartElement) {
	if s.left > 0 {
		s.left++
		return
	}
	var around element
	if n := len(s.open); n > 0 {
		around = s.open[n-1]
	}
	space := t.Name.Space[:min(len(t.Name.Space), maxName)]
	if strings.EqualFold(space, itunes) { // Apple writes it in small letters
		space = itunes
	}
	e := element{name: t.Name.Local, space: space, to: around.to, end: around.end}
	switch name := strings.ToLower(e.name); {
	case len(s.open) == 0 || len(s.open) == 1 && name == "channel":
		e.kind, e.to, e.end = frame, &s.head, maxChildren
	case around.kind == frame && (name == "item" || name == "entry"):
		e.kind, e.to, e.end = item, &s.items, s.items.Len()+maxChildren
	case around.kind != inner:
		e.end = min(e.to.Len()+maxChild, around.end)
	}
	for _, a := range t.Attr {
		if a.Name.Space == "" && a.Name.Local == "type" {
			e.markup = strings.ToLower(a.Value)
		}
	}
	e.tag = e.start(around.space, t.Attr)
	if len(e.name) > maxName || e.to.Len()+len(e.tag) > e.end {
		s.left = 1
		return
	}
	e.begin = e.to.Len()
	s.open = append(s.open, e)
	s.write(e, e.tag)
	if e.kind == item {
		s.n++
	}
}

// write writes a tag of an element. Those of the frame are in the head and in each part.
func (s *splitter) write(e element, tag string) {
	e.to.WriteString(tag)
	if e.kind == frame {
		s.items.WriteString(tag)
	}
}

// start returns the start tag, with the namespace where it is not that around the element.
// Of the attributes only those are in it that have no namespace, or that of xml:base.
func (e *element) start(around string, attrs []xml.Attr) string {
	var b bytes.Buffer
	b.WriteString("<" + e.name)
	write := func(name, value string) {
		if b.Len()+len(name)+len(value) <= maxAttrs {
			b.WriteString(" " + name + `="`)
			xml.EscapeText(&b, []byte(value)) // into memory, which takes all
			b.WriteByte('"')
		}
	}
	if e.space != around {
		write("xmlns", e.space)
	}
	for _, a := range attrs {
		switch {
		case a.Name.Space == "" && a.Name.Local != "xmlns":
			write(a.Name.Local, a.Value)
		case a.Name.Space == "http://www.w3.org/XML/1998/namespace":
			write("xml:"+a.Name.Local, a.Value)
		}
	}
	b.WriteByte('>')
	return b.String()
}

// text takes up text as it was sent, with its entities or as CDATA.
func (s *splitter) text(sent []byte) {
	if s.left > 0 || len(s.open) == 0 {
		return
	}
	const begin, end = "<![CDATA[", "]]>"
	e := s.open[len(s.open)-1]
	room := e.end - e.to.Len()
	if e.kind == frame || room <= 0 {
		return
	}
	if inside, is := bytes.CutPrefix(sent, []byte(begin)); is {
		e.to.WriteString(begin)
		e.to.Write(cut(bytes.TrimSuffix(inside, []byte(end)), room))
		e.to.WriteString(end)
	} else {
		e.to.Write(cut(sent, room))
	}
}

// cut returns the beginning of a text, of whole letters.
func cut[T []byte | string](text T, n int) T {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// end takes up the end of an element.
func (s *splitter) end() error {
	if s.left > 0 {
		s.left--
		return nil
	}
	e := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	if e.kind == item && s.items.Len() == e.begin+len(e.tag) { // one without anything in it is none
		s.items.Truncate(e.begin)
		s.n--
		return nil
	}
	if s.mend(e) {
		s.write(e, "</"+e.name+">")
	}
	if len(s.open) > 0 && (e.kind == inner || s.n < maxPartItems && s.items.Len() < maxPart) {
		return nil
	}
	return s.hand()
}

// mend writes what is in an element as the parser reads it best: titles as text, and dates of items, all in
// one form. It reports whether the element is still there.
func (s *splitter) mend(e element) (is bool) {
	if e.kind != inner {
		return true
	}
	inside := e.to.Bytes()[e.begin+len(e.tag):]
	switch name := strings.ToLower(e.name); {
	case name == "title" && strings.Contains(e.markup, "html"):
		text := textOf(inside, strings.Contains(e.markup, "xhtml"))
		e.to.Truncate(e.begin)
		e.to.WriteString(e.tag[:len(e.tag)-1] + ` type="text">`)
		// What is written like a reference in a title is read as one.
		xml.EscapeText(e.to, []byte(html.EscapeString(text)))
	case e.to == &s.items && isDate[name]:
		sent := bytes.TrimSpace(inside)
		if cdata, is := bytes.CutPrefix(sent, []byte("<![CDATA[")); is {
			sent = bytes.TrimSpace(bytes.TrimSuffix(cdata, []byte("]]>")))
		}
		switch date := s.dates.read(string(sent)); date {
		case "":
			e.to.Truncate(e.begin)
			return false
		case string(sent):
		default:
			e.to.Truncate(e.begin + len(e.tag))
			e.to.WriteString(date)
		}
	}
	return true
}

// textOf returns what is written in XHTML, or in HTML within XML, as text in one line.
func textOf(inside []byte, xhtml bool) string {
	d := xml.NewDecoder(bytes.NewReader(inside))
	d.Strict = false
	d.Entity = xml.HTMLEntity
	var markup strings.Builder
	for {
		token, err := d.Token()
		if err != nil {
			return excerpt(asText(markup.String()), maxTitle)
		}
		switch t := token.(type) {
		case xml.StartElement:
			markup.WriteString("<" + t.Name.Local + ">")
		case xml.EndElement:
			markup.WriteString("</" + t.Name.Local + ">")
		case xml.CharData:
			if text := string(t); xhtml {
				markup.WriteString(html.EscapeString(text))
			} else {
				markup.WriteString(text)
			}
		}
	}
}

// hand hands out a part, which is full or the last one.
func (s *splitter) hand() error {
	for _, e := range slices.Backward(s.open) {
		s.items.WriteString("</" + e.name + ">")
	}
	var err error
	if s.n > 0 {
		err = s.part(s.items.Bytes())
	}
	s.all += s.n
	s.n = 0
	s.items.Reset()
	for _, e := range s.open {
		s.items.WriteString(e.tag)
	}
	return err
}

// drop takes back an item that is open.
func (s *splitter) drop() {
	if k := slices.IndexFunc(s.open, func(e element) bool { return e.kind == item }); k >= 0 {
		s.items.Truncate(s.open[k].begin)
		s.n--
		s.open = s.open[:k]
	}
}

// finish ends what is open: the rest is cut.
func (s *splitter) finish() (err error) {
	for s.left = 0; len(s.open) > 0 && err == nil; {
		err = s.end()
	}
	return err
}

// window reads a text up to a place that the caller moves.
type window struct {
	text    []byte
	at, end int
}

func (w *window) ReadByte() (byte, error) {
	if w.at == w.end {
		return 0, io.EOF
	}
	w.at++
	return w.text[w.at-1], nil
}

func (w *window) Read(p []byte) (int, error) {
	n := copy(p, w.text[w.at:w.end])
	if w.at += n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// jsonInParts is inParts for a JSON feed.
func jsonInParts(sent []byte, part func(document []byte) error) (head []byte, err error) {
	d := json.NewDecoder(bytes.NewReader(sent))
	d.Token()      // the brace
	var title text // of the head nothing else is read
	is := false    // a feed, which has items, if only none
	for err == nil && d.More() {
		var token json.Token
		if token, err = d.Token(); err != nil {
			break
		}
		switch name := token.(string); { // of an object
		case strings.EqualFold(name, "items"):
			is = true
			err = jsonItems(d, part)
		case strings.EqualFold(name, "title"):
			err = d.Decode(&title)
		default:
			var other json.RawMessage
			err = d.Decode(&other)
		}
	}
	if err == nil {
		_, err = d.Token()
	}
	if err == nil && !is {
		return nil, errNoFeed
	}
	head, bad := json.Marshal(map[string]text{"title": title})
	return head, cmp.Or(err, bad)
}

// text is the beginning of a text of a JSON feed. Some feeds have a number in its place; what else may
// stand there is as if there were nothing.
type text string

func (t *text) UnmarshalJSON(sent []byte) error {
	var s string
	if json.Unmarshal(sent, &s) != nil && bytes.ContainsAny(sent[:1], "-0123456789") {
		s = string(sent)
	}
	*t = text(cut(s, maxChild))
	return nil
}

// jsonItem is what is read of an item of a JSON feed.
type jsonItem struct {
	ID        text `json:"id,omitempty"`
	URL       text `json:"url"`
	External  text `json:"external_url,omitempty"`
	Title     text `json:"title"`
	Summary   text `json:"summary"`
	HTML      text `json:"content_html"`
	Text      text `json:"content_text"`
	Published text `json:"date_published"`
	Modified  text `json:"date_modified"`
}

// jsonItems hands out the items of a JSON feed.
func jsonItems(d *json.Decoder, part func(document []byte) error) error {
	token, err := d.Token()
	if err != nil || token == nil {
		return err
	}
	if token != json.Delim('[') {
		return errors.New("its items are no list")
	}
	var items []jsonItem
	size, all := 0, 0
	var dates dates
	hand := func() error {
		document, err := json.Marshal(map[string][]jsonItem{"items": items})
		if err == nil && len(items) > 0 {
			err = part(document)
		}
		items, size = items[:0], 0
		return err
	}
	for d.More() {
		var it jsonItem
		err := d.Decode(&it)
		var other *json.UnmarshalTypeError
		if err != nil && !errors.As(err, &other) {
			return cmp.Or(hand(), err)
		}
		it.Published, it.Modified = text(dates.read(string(it.Published))), text(dates.read(string(it.Modified)))
		if it == (jsonItem{Modified: it.Modified}) { // one without anything in it is none
			continue
		}
		if all == mostItems {
			continue
		}
		all++
		if it.HTML == "" {
			it.HTML = text(html.EscapeString(string(it.Text)))
		}
		it.Text = "" // as HTML it is read as the others are
		it.URL, it.External = cmp.Or(it.URL, it.External), ""
		items = append(items, it)
		size += len(it.ID) + len(it.URL) + len(it.Title) + len(it.Summary) + len(it.HTML)
		if len(items) == maxPartItems || size >= maxPart {
			if err := hand(); err != nil {
				return err
			}
		}
	}
	_, err = d.Token()
	return cmp.Or(hand(), err)
}
