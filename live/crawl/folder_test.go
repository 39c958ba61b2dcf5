package crawl

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ephemera/live/feed"
)

// inPaths reads in which folders the feeds of a list are, without the code under test.
func inPaths(t *testing.T, list []byte) map[string][][]string {
	t.Helper()
	var doc struct {
		Body outline `xml:"body"`
	}
	if err := xml.Unmarshal(list, &doc); err != nil {
		t.Fatal(err)
	}
	paths := map[string][][]string{}
	var read func(o outline, path []string)
	read = func(o outline, path []string) {
		for _, in := range o.Outlines {
			if in.URL != "" {
				paths[in.URL] = append(paths[in.URL], path)
			}
			read(in, append(slices.Clip(path), in.Text))
		}
	}
	read(doc.Body, nil)
	return paths
}

// listOf returns a list of feeds, each in a folder of its own.
func listOf(paths [][]string) string {
	var body strings.Builder
	for k, path := range paths {
		for _, name := range path {
			fmt.Fprintf(&body, `<outline text="%s">`, html.EscapeString(name))
		}
		fmt.Fprintf(&body, `<outline xmlUrl="%s"/>`, address(k))
		body.WriteString(strings.Repeat(`</outline>`, len(path)))
	}
	return "<opml><body>" + body.String() + "</body></opml>"
}

// linked reports whether a page has a link to a category after its name.
func linked(page, name, category string) bool {
	parts := strings.Split(page, `: <a href="`)
	for i, part := range parts[1:] {
		address, _, _ := strings.Cut(part, `"`)
		to, err := url.Parse(html.UnescapeString(address))
		if err == nil && to.Path == "/items.json" && to.Query().Get("category") == category &&
			strings.HasSuffix(html.UnescapeString(parts[i]), "; "+name) {
			return true
		}
	}
	return false
}

// TestFolders: a folder stays what it is, whatever its name: in the list that is given back, when that
// list is read again, and as a category. One without a name is none.
func TestFolders(t *testing.T) {
	paths := [][]string{
		{"TV/Film"}, {"TV", "Film"}, {"TV~1Film"}, {"TV/", "Film"}, {"TV", "/Film"}, {"TV"},
		{"/"}, {"~"}, {"~1"}, {`\`}, {`'Quoted' & <b>"so"</b>`}, {"Zürich", "東京/大阪"},
		{"100 %", "a+b", "?c#d"}, {},
		{"", "Outer", "", " ", "Inner", ""},
	}
	l := newLife(t, newReferee(t, 30).Server, 30, address(0))
	check(os.WriteFile(l.OPML, []byte(listOf(paths)), 0o644))
	s := l.open(io.Discard)
	defer func() { s.Close() }()
	paths[len(paths)-1] = []string{"Outer", "Inner"}
	list := s.get("/opml").Body.Bytes()
	got := inPaths(t, list)
	for k, path := range paths {
		if in := got[address(k)]; len(in) != 1 || !slices.Equal(in[0], path) {
			t.Errorf("feed %d is in %q; want %q", k, in, path)
		}
	}
	check(s.Close())
	check(os.WriteFile(l.OPML, list, 0o644))
	s = l.open(io.Discard)
	if again := s.get("/opml").Body.String(); again != string(list) {
		t.Errorf("the list is\n%s\nand when it is read again\n%s", list, again)
	}
	for k := range paths {
		e := entry{Outcome: feed.Found, Items: []feed.Item{{ID: 1, Title: "one"}}}
		s.mu.Lock()
		commit := must(s.note(s.feeds[address(k)], &e))
		s.mu.Unlock()
		commit.Wait()
	}
	page := s.get("/").Body.String()
	for k, path := range paths {
		if len(path) == 0 {
			continue
		}
		var one, all jsonFeed
		check(json.Unmarshal(s.get("/items.json?feed="+url.QueryEscape(address(k))).Body.Bytes(), &one))
		category := fmt.Sprint(one.Items[0].Tags[0])
		check(json.Unmarshal(s.get("/items.json?category="+url.QueryEscape(category)).Body.Bytes(), &all))
		within := 0
		for _, other := range paths {
			if len(other) >= len(path) && slices.Equal(other[:len(path)], path) {
				within++
			}
		}
		name := strings.Join(path, "/")
		if len(all.Items) != within || all.Title != name {
			t.Errorf("%q: %d feeds are in %s, which has the title %q; want %d and %q",
				path, len(all.Items), category, all.Title, within, name)
		}
		if !linked(page, name, category) {
			t.Errorf("the page does not link %s as %s", category, name)
		}
	}
}

// TestFoldersOfReaders: the folders of a reader have no folders in them, whatever their names.
func TestFoldersOfReaders(t *testing.T) {
	const feed = "http://f.test/feed"
	names := []string{"TV/Film", "~1", "", " ", `<"so"> & so`}
	want := [][]string{{"TV/Film"}, {"~1"}, nil, nil, {`<"so"> & so`}}
	miniflux, fresh := newFakeMiniflux(t), newFakeFreshRSS(t, &fakeFresh{url: feed, every: time.Hour})
	miniflux.now, fresh.now = time.Now, time.Now
	for _, tt := range []struct {
		Reader
		call func(name string)
	}{
		{NewMiniflux(miniflux.URL, "token"), func(name string) {
			miniflux.mu.Lock() // it may still answer what Close broke off
			defer miniflux.mu.Unlock()
			miniflux.feeds[1] = &fakeFeed{url: feed, every: time.Hour, category: &name}
		}},
		{NewFreshRSS(fresh.URL, "alice", "token", "apisecret"), func(name string) {
			fresh.mu.Lock()
			defer fresh.mu.Unlock()
			fresh.feeds[0].label = &name
		}},
	} {
		for k, name := range names {
			tt.call(name)
			l := newLife(t, miniflux.Server, 30)
			l.Reader = tt.Reader
			s := l.open(io.Discard)
			must(s.Tick())
			got := inPaths(t, s.get("/opml").Body.Bytes())[feed]
			if len(got) != 1 || !slices.Equal(got[0], want[k]) {
				t.Errorf("%T: a feed of %q is in %q; want %q", tt.Reader, name, got, want[k])
			}
			check(s.Close())
		}
	}
}
