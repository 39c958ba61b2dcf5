package crawl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"

	"ephemera/live/feed"
	"ephemera/live/store"
)

// inFolders is a list in which feed 0 is alone, 1 in News, 4 in News/Local and in Both, and 8 in Both.
var inFolders = `<opml><body>
	<outline xmlUrl="` + address(0) + `"/>
	<outline text="News">
		<outline xmlUrl="` + address(1) + `" title="One &amp; only"/>
		<outline text="Local"><outline xmlUrl="` + address(4) + `" worth="2.5"/></outline>
	</outline>
	<outline text="Both">
		<outline xmlUrl="` + address(4) + `"/>
		<outline xmlUrl="` + address(8) + `"/>
	</outline>
</body></opml>`

// foldered returns a crawler of that list.
func foldered(t testing.TB, r *referee) *sim {
	s := simulate(t, r.Server, address(0))
	check(os.WriteFile(s.OPML, []byte(inFolders), 0o644))
	return s
}

// get asks a page.
func (s *sim) get(path string, header ...string) *httptest.ResponseRecorder {
	q := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, q)
	return w
}

// follow reads all pages of a river by a library that is not of this program.
func (s *sim) follow(t *testing.T, path string) (items []*gofeed.Item, title string) {
	for pages := 0; path != ""; pages++ {
		w := s.get(path)
		f, err := gofeed.NewParser().Parse(bytes.NewReader(w.Body.Bytes()))
		if err != nil || w.Code != 200 || pages > 100 {
			t.Fatalf("%s: %d %v\n%.500s", path, w.Code, err, w.Body)
		}
		items, title = append(items, f.Items...), f.Title
		var next struct {
			Next  string `json:"next_url" xml:"-"`
			Links []struct {
				Rel  string `xml:"rel,attr"`
				Href string `xml:"href,attr"`
			} `xml:"link" json:"-"`
		}
		if f.FeedType == "json" {
			check(json.Unmarshal(w.Body.Bytes(), &next))
		} else {
			check(xml.Unmarshal(w.Body.Bytes(), &next))
		}
		for _, l := range next.Links {
			if l.Rel == "next" {
				next.Next = l.Href
			}
		}
		if path = next.Next; path != "" && len(f.Items) != shownItems {
			t.Errorf("a page before the last has %d items", len(f.Items))
		}
	}
	return items, title
}

// TestRiver: what was found is read as JSON Feed and as Atom: all of it, of one feed, or of a
// category; each item once, the last found first, also after a restart.
func TestRiver(t *testing.T) {
	r := newReferee(t, 30)
	l := newLife(t, r.Server, 30, address(0))
	check(os.WriteFile(l.OPML, []byte(inFolders), 0o644))
	s := l.open(io.Discard).pass(50 * time.Hour)
	count := func(ks ...int) (n int) {
		for _, k := range ks {
			n += s.feeds[address(k)].Items
		}
		return n
	}
	q := func(name, value string) string { return "?" + url.Values{name: {value}}.Encode() }
	compare := func(s *sim) {
		for _, tt := range []struct {
			query, title string
			want         int
		}{
			{"", "Feeds", count(0, 1, 4, 8)},
			{q("feed", address(1)), "One & only", count(1)},
			{q("category", "News"), "News", count(1, 4)},
			{q("category", "News/Local"), "News/Local", count(4)},
			{q("category", "Both"), "Both", count(4, 8)},
		} {
			var keys [2][]string
			for k, format := range []string{"json", "atom"} {
				items, title := s.follow(t, "/items."+format+tt.query)
				if len(items) != tt.want || tt.want < 10 || title != tt.title {
					t.Errorf("%s%s: %d items of %q, want %d of %q",
						format, tt.query, len(items), title, tt.want, tt.title)
				}
				for _, it := range items {
					keys[k] = append(keys[k], it.GUID)
					if it.Title != "item" || it.PublishedParsed == nil && it.UpdatedParsed == nil ||
						!strings.HasPrefix(it.Link, "http://f") || len(it.Authors) != 1 || it.Authors[0].Name == "" {
						t.Fatalf("%s: %+v", format, it)
					}
				}
			}
			distinct := slices.Compact(slices.Sorted(slices.Values(keys[0])))
			if !slices.Equal(keys[0], keys[1]) || len(distinct) != tt.want {
				t.Errorf("%s: the formats have other items, or one twice", tt.query)
			}
		}
	}
	compare(s)
	l.Begin = s.now
	check(s.Close())
	again := l.open(io.Discard)
	compare(again)
	check(again.Close())
}

// TestRiverRefuses: what is not there is a clear error.
func TestRiverRefuses(t *testing.T) {
	s := foldered(t, newReferee(t, 30)).pass(time.Hour)
	for _, tt := range []struct {
		path   string
		status int
		text   string
	}{
		{"/items.json?feed=x", 404, `feed is "x"; no feed of the list is called so`},
		{"/items.atom?category=New", 404, `category is "New"; no feed of the list is in it`},
		{"/items.json?before=1", 400, `before is "1": it is no place among the items`},
		{"/items.json?before=0000000000000001", 400, "before is"},
	} {
		if w := s.get(tt.path); w.Code != tt.status || !strings.Contains(w.Body.String(), tt.text) {
			t.Errorf("%s: %d %s; want %d and %q", tt.path, w.Code, w.Body, tt.status, tt.text)
		}
	}
}

// TestRiverValidators: a reader that asks again gets the answer that nothing has changed, until something has.
func TestRiverValidators(t *testing.T) {
	s := foldered(t, newReferee(t, 30)).pass(3 * time.Hour)
	for _, path := range []string{"/items.json", "/items.atom", "/items.atom?category=News"} {
		s.now = s.now.Add(time.Minute)
		first := s.get(path)
		tag, modified := first.Header().Get("ETag"), first.Header().Get("Last-Modified")
		if first.Code != 200 || tag == "" || modified == "" {
			t.Fatal(first.Code, first.Header())
		}
		for _, tt := range []struct{ name, value string }{{"If-None-Match", tag}, {"If-Modified-Since", modified}} {
			if w := s.get(path, tt.name, tt.value); w.Code != 304 || w.Body.Len() > 0 {
				t.Errorf("%s with %s: %d, %d bytes; want 304 and none", path, tt.name, w.Code, w.Body.Len())
			}
		}
		r := s.feeds[address(1)]
		news := []feed.Item{{ID: uint64(s.now.UnixNano()), Title: "new"}}
		e := entry{Outcome: feed.Found, Previous: r.Last, Items: news}
		s.mu.Lock()
		commit := must(s.note(r, &e))
		s.mu.Unlock()
		commit.Wait()
		// In the second in which it came another may come: only the tag tells them apart.
		if w := s.get(path, "If-None-Match", tag); w.Code != 200 || w.Header().Get("Last-Modified") != "" {
			t.Errorf("%s, with something new: %d %v", path, w.Code, w.Header())
		}
		if w := s.get(path, "If-Modified-Since", modified); w.Code != 200 {
			t.Errorf("%s, with something new: %d %v", path, w.Code, w.Header())
		}
	}
}

// TestAtomValid: each entry has what Atom wants (RFC 4287, 4.1.1 and 4.1.2), whatever an item
// lacks.
func TestAtomValid(t *testing.T) {
	s := foldered(t, newReferee(t, 30)).pass(time.Hour)
	r := s.feeds[address(8)]
	e := entry{Outcome: feed.Found, Items: []feed.Item{
		{ID: 1},
		{ID: 2, Title: "<b> & \x01", Link: "http://x.test/?a&b"},
		{ID: 3, Summary: "says"},
	}}
	s.mu.Lock()
	commit := must(s.note(r, &e))
	s.mu.Unlock()
	commit.Wait()
	type text struct {
		Text string `xml:",chardata"`
	}
	var f struct {
		XMLName     xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		ID, Updated []text
		Title       []text
		Entries     []struct {
			ID      []text `xml:"id"`
			Title   []text `xml:"title"`
			Updated []text `xml:"updated"`
			Author  []text `xml:"author>name"`
			Content []text `xml:"content"`
			Links   []struct {
				Rel string `xml:"rel,attr"`
			} `xml:"link"`
		} `xml:"entry"`
	}
	w := s.get("/items.atom")
	check(xml.Unmarshal(w.Body.Bytes(), &f))
	if len(f.Entries) < 13 {
		t.Fatalf("%d entries", len(f.Entries))
	}
	for _, e := range f.Entries {
		_, err := time.Parse(time.RFC3339, e.Updated[0].Text)
		if len(e.ID) != 1 || len(e.Title) != 1 || len(e.Updated) != 1 || len(e.Author) != 1 ||
			len(e.Links)+len(e.Content) == 0 || err != nil ||
			!strings.HasPrefix(e.ID[0].Text, "urn:uuid:") || e.Author[0].Text == "" {
			t.Errorf("%+v: %v", e, err)
		}
	}
	if got := f.Entries[1]; got.Title[0].Text != "<b> & \ufffd" || len(got.Content) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestOPML: the list that is given back is that which was read, with titles as they are found
// and without passwords.
func TestOPML(t *testing.T) {
	s := foldered(t, newReferee(t, 30))
	const mine = `<outline title="Mine" xmlUrl="http://me:secret@f0002.test/2/feed"/>`
	text := strings.Replace(inFolders, "</body>", mine+"</body>", 1)
	check(os.WriteFile(s.OPML, []byte(text), 0o644))
	s.pass(3 * time.Minute)
	w := s.get("/opml")
	got, left, err := ParseOPML(w.Body.Bytes())
	if err != nil || len(left) > 0 || w.Code != http.StatusOK || strings.Contains(w.Body.String(), "secret") {
		t.Fatal(err, left, w.Code, w.Body)
	}
	want := map[string]string{
		address(0):                       "[] 1 " + address(0),
		address(1):                       "[News] 1 One & only",
		address(4):                       "[Both News/Local] 2.5 " + address(4),
		address(8):                       "[Both] 1 " + address(8),
		"http://xxxxx@f0002.test/2/feed": "[] 1 Mine",
	} // folders, worth and title
	for _, o := range got {
		slices.Sort(o.Categories)
		if is := fmt.Sprintf("%v %v %s", o.Categories, o.Worth, o.Title); is != want[o.URL] {
			t.Errorf("%s: %s, want %s", o.URL, is, want[o.URL])
		}
		delete(want, o.URL)
	}
	if len(want) > 0 {
		t.Errorf("missing are %v", want)
	}
}

// TestItemsKept: items are kept for 90 days, and no more than are allowed: of too many go those of
// the feeds that have most.
func TestItemsKept(t *testing.T) {
	s := foldered(t, newReferee(t, 30)).pass(3 * time.Hour)
	n := len(s.river)
	if n < 30 {
		t.Fatal(n)
	}
	s.now = s.now.Add(itemsAge - 4*time.Hour)
	check(s.save(s.clock(), true))
	if len(s.river) != n {
		t.Errorf("%d items of %d after 90 days less 4 hours", len(s.river), n)
	}
	s.now = s.now.Add(4 * time.Hour)
	check(s.save(s.clock(), true))
	kept := 0
	check(s.store.Values(itemPrefix, "", func(string, []byte) bool { kept++; return true }))
	if len(s.river) != 0 || kept != 0 {
		t.Errorf("%d items, %d on disk after 90 days", len(s.river), kept)
	}
	// One feed shows fresh ids at each look; those of the others stay, whenever they were found.
	flood := func(r *record, looks int) {
		e := entry{Outcome: feed.Found}
		for k := range 1000 {
			e.Items = append(e.Items, feed.Item{ID: uint64(k)})
		}
		for range looks {
			must(s.note(r, &e))
		}
	}
	held := func() (n [3]int) {
		for _, d := range s.river {
			n[slices.Index([]*record{s.feeds[address(0)], s.feeds[address(1)], s.feeds[address(4)]}, d.from)]++
		}
		return n
	}
	flood(s.feeds[address(1)], 2)
	flood(s.feeds[address(0)], itemsMost/1000+1)
	check(s.save(s.clock(), true))
	if n := held(); n != [3]int{itemsMost - 2000, 2000, 0} {
		t.Errorf("%d items; allowed are %d", n, itemsMost)
	}
	flood(s.feeds[address(4)], itemsMost/1000)
	check(s.save(s.clock(), true))
	if n := held(); n != [3]int{(itemsMost - 2000) / 2, 2000, (itemsMost - 2000) / 2} {
		t.Errorf("%d items of two feeds without an end and one other", n)
	}
	kept = 0
	check(s.store.Values(itemPrefix, "", func(string, []byte) bool { kept++; return true }))
	if kept != itemsMost || !slices.IsSortedFunc(s.river, func(a, b drop) int { return cmp.Compare(a.seq, b.seq) }) {
		t.Errorf("%d items on disk", kept)
	}
}

// TestItemsOfEarlierVersions: what an earlier version found, which kept items in its journal
// alone, is there to be read.
func TestItemsOfEarlierVersions(t *testing.T) {
	l := newLife(t, newReferee(t, 30).Server, 30, address(0), address(1))
	s := l.open(io.Discard).pass(10 * time.Hour)
	want, _ := s.follow(t, "/items.json")
	var older []store.Value
	check(s.journal(0, func(e *entry) bool {
		for i := range e.Items {
			e.Items[i].Title = "of the journal"
		}
		older = append(older, store.Value{Name: journalName(e.seq), Data: must(json.Marshal(e))})
		return true
	}))
	check(s.store.Values(itemPrefix, "", func(name string, _ []byte) bool {
		older = append(older, store.Value{Name: name})
		return true
	}))
	check(s.store.Set(append(older, store.Value{Name: itemsMark})...))
	l.Begin = s.now
	check(s.Close())
	for range 2 {
		again := l.open(io.Discard)
		got, _ := again.follow(t, "/items.json")
		check(again.Close())
		if len(got) != len(want) || len(got) < 20 || got[0].Title != "of the journal" || got[0].GUID != want[0].GUID {
			t.Errorf("%d items, there were %d", len(got), len(want))
		}
	}
}

// TestItemsSetBack: where the clock was ahead, items that were found then are no longer from
// the future.
func TestItemsSetBack(t *testing.T) {
	s := foldered(t, newReferee(t, 30)).pass(3 * time.Hour)
	n := len(s.river)
	s.Ahead = 365 * 24 * time.Hour
	s.pass(30 * time.Hour)
	if len(s.river) == n {
		t.Fatal("nothing was found")
	}
	s.Ahead = 0
	s.pass(time.Minute)
	items, _, err := s.find(nil, 1000, func(*drop) bool { return true })
	for _, it := range items {
		if it.At.After(s.now) {
			t.Errorf("it is %v, and an item was found at %v", s.now, it.At)
		}
	}
	if len(items) <= n || err != nil {
		t.Errorf("%d items: %v", len(items), err)
	}
}

// TestItemsOfOneLook: more items of one look than four digits count are there after a restart, in order.
func TestItemsOfOneLook(t *testing.T) {
	l := newLife(t, newReferee(t, 30).Server, 30, address(0))
	s := l.open(io.Discard)
	ks := []int{0xffff, 0x10000, 0x10001}
	for _, k := range ks {
		it := item{Item: feed.Item{Title: fmt.Sprint(k)}, Feed: address(0), At: l.Begin}
		check(s.store.SetValue(itemPrefix+place{1, k}.String(), must(json.Marshal(it))))
	}
	check(s.Close())
	s = l.open(io.Discard)
	defer s.Close()
	for i, k := range ks {
		if len(s.river) != len(ks) || s.river[i].k != k {
			t.Fatalf("after a restart there are %v", s.river)
		}
	}
}
