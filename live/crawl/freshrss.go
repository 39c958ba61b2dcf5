package crawl

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ephemera/live/feed"
)

// FreshRSS is a reader, FreshRSS 1.24 or later
// (https://freshrss.github.io/FreshRSS/en/users/08_FeedUpdates.html and its API of Google Reader
// and of Fever): it fetches a feed when that is asked for with a user's token.
type FreshRSS struct {
	remote
	user, token, password string

	auth    string // of the API; empty before the first use
	lock    sync.Mutex
	checked map[string]time.Time // when it fetched its feeds last, by address
}

var _ Reader = (*FreshRSS)(nil)

// NewFreshRSS returns the FreshRSS at an address for one of its users, whose authentication token
// has feeds fetched, and whose API password gives entries.
func NewFreshRSS(address, user, token, password string) *FreshRSS {
	return &FreshRSS{
		remote: newRemote("FreshRSS", address, "/i", "/greader.php", "/fever.php", "/api"),
		user:   user, token: token, password: password,
	}
}

// get asks for a page, with the token in its query.
func (m *FreshRSS) get(ctx context.Context, query url.Values) ([]byte, error) {
	query.Set("user", m.user)
	query.Set("token", m.token)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+"/i/?"+query.Encode(), nil)
	if err != nil {
		return nil, &Away{Err: err}
	}
	status, body, err := m.call(r)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusFound || status == http.StatusForbidden:
		return nil, m.away("refuses the token; needed is the authentication token of %s's profile", m.user)
	case status != http.StatusOK:
		return nil, m.answers(status, "")
	}
	return body, nil
}

const greader = "/api/greader.php"

// login returns what its API of Google Reader is asked with.
func (m *FreshRSS) login(ctx context.Context) (auth string, err error) {
	form := url.Values{"Email": {m.user}, "Passwd": {m.password}}
	r, err := m.post(ctx, greader+"/accounts/ClientLogin", form)
	if err != nil {
		return "", err
	}
	status, body, err := m.call(r)
	_, auth, is := strings.Cut(string(body), "Auth=")
	switch {
	case err != nil:
		return "", err
	case status == http.StatusUnauthorized:
		return "", m.away("refuses the API password of %s, which is set in the profile", m.user)
	case status == http.StatusServiceUnavailable:
		return "", m.away("has no API; allow it in its settings of authentication")
	case status != http.StatusOK:
		return "", m.answers(status, "")
	case !is:
		return "", &Away{Err: fmt.Errorf("%s is not FreshRSS: its API answers %.60q", shown(m.url), body)}
	}
	return strings.TrimSpace(auth), nil
}

func (m *FreshRSS) post(ctx context.Context, path string, form url.Values) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, &Away{Err: err}
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r, nil
}

// api asks its API of Google Reader, and reads the answer into a value.
func (m *FreshRSS) api(ctx context.Context, path string, query url.Values, into any) error {
	m.lock.Lock()
	auth, begun := m.auth, m.auth == ""
	m.lock.Unlock()
	for {
		var err error
		if auth == "" {
			if auth, err = m.login(ctx); err != nil {
				return err
			}
			m.lock.Lock()
			m.auth = auth
			m.lock.Unlock()
		}
		address := m.url + greader + "/reader/api/0/" + path + "?" + query.Encode()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return &Away{Err: err}
		}
		r.Header.Set("Authorization", "GoogleLogin auth="+auth)
		status, body, err := m.call(r)
		switch {
		case err != nil:
			return err
		case status == http.StatusUnauthorized && !begun: // the password was set anew
			auth, begun = "", true
			continue
		case status != http.StatusOK:
			return m.answers(status, "")
		}
		if err := json.Unmarshal(body, into); err != nil {
			return &Away{Err: fmt.Errorf("%s is not FreshRSS: %w", shown(m.url), err)}
		}
		return nil
	}
}

// fever returns when feeds were fetched last, by their numbers, which its API of Fever alone says.
func (m *FreshRSS) fever(ctx context.Context) (map[int64]time.Time, error) {
	form := url.Values{"api_key": {feverKey(m.user, m.password)}}
	r, err := m.post(ctx, "/api/fever.php?api&feeds", form)
	if err != nil {
		return nil, err
	}
	status, body, err := m.call(r)
	if err != nil {
		return nil, err
	}
	var all struct {
		Auth  int
		Feeds []struct {
			ID      int64
			Updated int64 `json:"last_updated_on_time"`
		}
	}
	if err := json.Unmarshal(body, &all); err != nil || status != http.StatusOK || all.Auth != 1 {
		return nil, m.away("does not answer its API of Fever: %d", status)
	}
	at := map[int64]time.Time{}
	for _, f := range all.Feeds {
		if f.Updated > 0 {
			at[f.ID] = time.Unix(f.Updated, 0).UTC()
		}
	}
	return at, nil
}

// feverKey is what the API of Fever is asked with.
func feverKey(user, password string) string {
	sum := md5.Sum([]byte(user + ":" + password))
	return hex.EncodeToString(sum[:])
}

// usual has the letters be again that its API puts other ones for.
var usual = strings.NewReplacer("＆", "&", "＜", "<", "＞", ">")

// Feeds implements [Reader]. Those that are muted there are no feeds.
func (m *FreshRSS) Feeds(ctx context.Context) (feeds []Outline, left []error, err error) {
	var all struct {
		Subscriptions []struct {
			ID, Title, URL string
			Categories     []struct{ Label string }
		}
	}
	if err := m.api(ctx, "subscription/list", url.Values{"output": {"json"}}, &all); err != nil {
		return nil, nil, err
	}
	at, err := m.fever(ctx)
	if err != nil {
		return nil, nil, err
	}
	text, err := m.get(ctx, url.Values{"a": {"opml"}, "get": {"a"}})
	if err != nil {
		return nil, nil, err
	}
	outlines, _, err := ParseOPML(text)
	if err != nil && !errors.Is(err, errNoFeeds) { // nobody has subscribed yet, or all feeds are muted
		return nil, nil, m.away("gives no list of feeds: %w", err)
	}
	loud := map[string]bool{}
	for _, o := range outlines {
		loud[o.URL] = true
	}
	ids, checked := map[string]int64{}, map[string]time.Time{}
	for _, f := range all.Subscriptions {
		id, err := strconv.ParseInt(strings.TrimPrefix(f.ID, "feed/"), 10, 64)
		if err != nil {
			return nil, nil, m.away("names a feed %q", f.ID)
		}
		if !loud[f.URL] {
			continue
		}
		ids[f.URL], checked[f.URL] = id, at[id]
		o := Outline{URL: f.URL, Title: usual.Replace(f.Title), Worth: 1, Checked: at[id]}
		for _, c := range f.Categories {
			o.put(Folder("").With(c.Label))
		}
		feeds = append(feeds, o)
	}
	m.know(ids)
	m.lock.Lock()
	m.checked = checked
	m.lock.Unlock()
	return feeds, nil, nil
}

// Refresh implements [Reader].
func (m *FreshRSS) Refresh(ctx context.Context, p feed.Place) error {
	id, err := m.id(p)
	if err != nil {
		return err
	}
	query := url.Values{"c": {"feed"}, "a": {"actualize"}, "id": {strconv.FormatInt(id, 10)}, "ajax": {"1"}}
	text, err := m.get(ctx, query)
	if err == nil && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("OK")) {
		err = m.away("answers %.60q", text)
	}
	return err
}

// undatedWithin is how long after a fetch FreshRSS gives an entry without a date that of then.
const undatedWithin = 5 * time.Second

// Entries implements [Reader]. Whether a fetch failed FreshRSS does not say.
func (m *FreshRSS) Entries(ctx context.Context, p feed.Place) Look {
	out := Look{Result: feed.Result{Outcome: feed.Failed, Place: p}}
	id, err := m.id(p)
	if err != nil {
		out.Err = err
		return out
	}
	// Entries have the times in µs at which they were found for numbers.
	query := url.Values{"r": {"d"}, "n": {strconv.Itoa(firstEntries)}}
	if p.After > 0 {
		query = url.Values{"r": {"o"}, "n": {strconv.Itoa(pageEntries)}, "ot": {strconv.FormatInt(p.After/1e6, 10)}}
	}
	type entry struct {
		number int64
		item   feed.Item
	}
	var entries []entry
	for more := true; more; {
		var page struct {
			Items []struct {
				TimestampUsec string
				Published     int64
				Title         string
				Canonical     []struct{ Href string }
				Summary       struct{ Content string }
			}
			Continuation string
		}
		if out.Err = m.api(ctx, "stream/contents/feed/"+strconv.FormatInt(id, 10), query, &page); out.Err != nil {
			return out
		}
		for _, e := range page.Items {
			number, err := strconv.ParseInt(e.TimestampUsec, 10, 64)
			if err != nil {
				out.Err = m.away("numbers an entry %q", e.TimestampUsec)
				return out
			}
			if number <= p.After {
				continue
			}
			item := feed.Item{Title: feed.Line(usual.Replace(e.Title)), Summary: feed.Summary(e.Summary.Content)}
			if len(e.Canonical) > 0 {
				item.Link = e.Canonical[0].Href
			}
			if at := time.Unix(e.Published, 0).UTC(); time.UnixMicro(number).Sub(at) >= undatedWithin {
				item.Published = at
			}
			// A feed that is subscribed anew has its entries again, under other numbers.
			item.ID = feed.Hash(fmt.Sprint(item.Link, "\n", item.Title, "\n", item.Published.Unix()))
			entries = append(entries, entry{number, item})
			out.Place.After = max(out.Place.After, number)
		}
		more = p.After > 0 && page.Continuation != "" && len(page.Items) > 0
		query.Set("c", page.Continuation)
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(b.number, a.number) }) // the last first
	found := &feed.Feed{Whole: true}
	for _, e := range entries {
		found.Items = append(found.Items, e.item)
	}
	m.lock.Lock()
	out.At = m.checked[p.URL]
	m.lock.Unlock()
	// It keeps the validators of feeds, and does not say which have any.
	out.Place.Final, out.Place.ETag, out.Outcome = p.URL, "FreshRSS", feed.Unchanged
	if len(found.Items) > 0 || p.Final == "" {
		out.Outcome, out.Feed = feed.Found, found
	}
	return out
}
