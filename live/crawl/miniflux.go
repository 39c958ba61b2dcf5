package crawl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"ephemera/live/feed"
)

// Miniflux is a reader, Miniflux 2 (https://miniflux.app/docs/api.html): it fetches its feeds
// with its own validators and filters when it is asked to refresh one.
type Miniflux struct {
	remote
	token string
}

var _ Reader = (*Miniflux)(nil)

// NewMiniflux returns the Miniflux at an address, for the user of a token.
func NewMiniflux(address, token string) *Miniflux {
	return &Miniflux{newRemote("Miniflux", address, "/v1"), token}
}

// minifluxFeed is what is read of a feed.
type minifluxFeed struct {
	ID           int64     `json:"id"`
	URL          string    `json:"feed_url"`
	Title        string    `json:"title"`
	CheckedAt    time.Time `json:"checked_at"`
	NextCheckAt  time.Time `json:"next_check_at"`
	ETag         string    `json:"etag_header"`
	LastModified string    `json:"last_modified_header"`
	Error        string    `json:"parsing_error_message"`
	Errors       int       `json:"parsing_error_count"`
	Disabled     bool      `json:"disabled"`
	Category     struct {
		Title string `json:"title"`
	} `json:"category"`
}

// minifluxEntry is what is read of an entry.
type minifluxEntry struct {
	ID        int64     `json:"id"`
	Hash      string    `json:"hash"` // of what its feed names it by
	Title     string    `json:"title"`
	URL       string    `json:"url"`
	Content   string    `json:"content"`
	Published time.Time `json:"published_at"`
	Created   time.Time `json:"created_at"` // when Miniflux found it
}

// name returns a number that the entry has in any database, where its feed gives it.
func (e *minifluxEntry) name() uint64 {
	n, _ := strconv.ParseUint(e.Hash[:min(16, len(e.Hash))], 16, 64)
	return cmp.Or(n, uint64(e.ID))
}

// ask asks, and reads the answer into a value unless that is nil.
func (m *Miniflux) ask(ctx context.Context, method, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, m.url+path, nil)
	if err != nil {
		return &Away{Err: err}
	}
	r.Header.Set("X-Auth-Token", m.token)
	status, body, err := m.call(r)
	switch {
	case err != nil:
		return err
	case status == http.StatusUnauthorized:
		return m.away("refuses the token; needed is that of an API key of its settings")
	case status/100 != 2:
		var says struct {
			Text string `json:"error_message"`
		}
		json.Unmarshal(body, &says) // if it is Miniflux that answers
		return m.answers(status, says.Text)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &Away{Err: fmt.Errorf("%s is not Miniflux: %w", shown(m.url), err)}
	}
	return nil
}

// Feeds implements [Reader]. Those that are disabled there are no feeds.
func (m *Miniflux) Feeds(ctx context.Context) (feeds []Outline, left []error, err error) {
	var all []minifluxFeed
	if err := m.ask(ctx, http.MethodGet, "/v1/feeds", &all); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(all, func(a, b minifluxFeed) int { return cmp.Compare(a.ID, b.ID) })
	ids := map[string]int64{}
	for _, f := range all {
		if f.Disabled {
			continue
		}
		ids[f.URL] = f.ID
		o := Outline{URL: f.URL, Title: f.Title, Worth: 1}
		if !f.NextCheckAt.Equal(f.CheckedAt) { // else it was imported then, and not fetched yet
			o.Checked = f.CheckedAt
		}
		o.put(Folder("").With(f.Category.Title))
		feeds = append(feeds, o)
	}
	m.know(ids)
	return feeds, nil, nil
}

// Refresh implements [Reader]. That a feed fails is answered as an error of the server.
func (m *Miniflux) Refresh(ctx context.Context, p feed.Place) error {
	id, err := m.id(p)
	if err != nil {
		return err
	}
	return m.ask(ctx, http.MethodPut, minifluxPath(id)+"/refresh", nil)
}

func minifluxPath(id int64) string { return "/v1/feeds/" + strconv.FormatInt(id, 10) }

// Entries implements [Reader].
func (m *Miniflux) Entries(ctx context.Context, p feed.Place) Look {
	out := Look{Result: feed.Result{Outcome: feed.Failed, Place: p}}
	id, err := m.id(p)
	if err != nil {
		out.Err = err
		return out
	}
	path := minifluxPath(id)
	var f minifluxFeed
	if out.Err = m.ask(ctx, http.MethodGet, path, &f); out.Err != nil {
		return out
	}
	// The time to the next check is the longest of what Miniflux waits at least and of what the
	// publisher asks for, both by its clock.
	out.At, out.Fresh = f.CheckedAt, max(0, f.NextCheckAt.Sub(f.CheckedAt))
	if f.Errors > 0 && f.Error != "" {
		out.Err = errors.New(f.Error)
		return out
	}
	entries, err := m.entries(ctx, path, p)
	if err != nil {
		out.At, out.Err = time.Time{}, err
		return out
	}
	found := &feed.Feed{Title: f.Title, Whole: true}
	if len(entries) > 0 {
		out.Place.After, out.Place.AfterAt = entries[0].ID, entries[0].Created
	}
	for _, e := range entries {
		item := feed.Item{
			ID: e.name(), Title: feed.Line(e.Title), Link: e.URL,
			Summary: feed.Summary(e.Content), Published: e.Published.UTC(),
		}
		if !e.Published.Before(f.CheckedAt) {
			item.Published = time.Time{} // it has none, and was given that of the check
		}
		found.Items = append(found.Items, item)
	}
	out.Place.Final, out.Place.ETag, out.Place.LastModified = p.URL, f.ETag, f.LastModified
	out.Outcome = feed.Unchanged
	if len(found.Items) > 0 || p.Final == "" {
		out.Outcome, out.Feed = feed.Found, found
	}
	return out
}

// entries returns the entries of a feed since a place, the last first; at first, the last ones. Where the last
// one has a lower number than the place, those after it were removed, or the reader numbers anew, as it has
// another database.
func (m *Miniflux) entries(ctx context.Context, path string, p feed.Place) (entries []minifluxEntry, err error) {
	ask := func(limit int, order string, after ...int64) (page []minifluxEntry, err error) {
		query := url.Values{"order": {"id"}, "direction": {order}, "limit": {strconv.Itoa(limit)}}
		for _, id := range after {
			query.Set("after_entry_id", strconv.FormatInt(id, 10))
		}
		var answer struct{ Entries []minifluxEntry }
		err = m.ask(ctx, http.MethodGet, path+"/entries?"+query.Encode(), &answer)
		return answer.Entries, err
	}
	after := p.After
	if after == 0 {
		return ask(firstEntries, "desc")
	}
	switch last, err := ask(1, "desc"); {
	case err != nil || len(last) == 0 || last[0].ID == after:
		return nil, err
	case last[0].ID < after:
		entries, err = ask(firstEntries, "desc")
		known := func(e minifluxEntry) bool { return !e.Created.After(p.AfterAt) }
		return slices.DeleteFunc(entries, known), err
	}
	for {
		page, err := ask(pageEntries, "asc", after)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page...)
		if len(page) < pageEntries {
			slices.Reverse(entries)
			return entries, nil
		}
		after = page[len(page)-1].ID
	}
}
