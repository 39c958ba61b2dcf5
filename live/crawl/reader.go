package crawl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"ephemera/live/feed"
)

// Reader is what fetches feeds: this program, or a reader that people have already, which then
// fetches when it is asked to. Its methods may be called at once, and end with their context.
type Reader interface {
	// Feeds returns the feeds that are to be fetched, and an error for each that is left out.
	Feeds(ctx context.Context) (feeds []Outline, left []error, err error)
	// Refresh has a feed fetched. What that brought is among its entries, also after an error.
	Refresh(ctx context.Context, p feed.Place) error
	// Entries returns how the last fetch of a feed ended, and what the reader has found of the
	// feed since a place. It asks no publisher and changes nothing.
	Entries(ctx context.Context, p feed.Place) Look
}

// Look is what a fetch of a feed brought.
type Look struct {
	feed.Result
	At     time.Time // when it was, by the reader's clock; zero for now, or if the reader has not said how it ended
	byList time.Time // when the fetch was by the list of the reader, for which it is looked at; zero without one
	unread bool      // the reader, which fetches by itself, has not said how it ended
	unseen bool      // the reader may have fetched the feed more often since the look before
}

// Away says that a reader does not do what it is asked for, so that nothing is known of its feeds.
type Away struct {
	Err    error
	Silent bool // it has no answer of its own, as while it starts
}

func (e *Away) Error() string { return e.Err.Error() }
func (e *Away) Unwrap() error { return e.Err }

// away returns the error of a reader that does not do what it is asked for, or nil.
func away(err error) *Away {
	var a *Away
	errors.As(err, &a)
	return a
}

// look has a feed fetched, unless the reader does that by itself, and returns what it brought. Where the
// reader does not do it but still gives its list, it is not away, and the failure is the feed's.
func (c *Crawler) look(p feed.Place) Look {
	var failure error
	if !c.opt.Shadow {
		failure = c.reader.Refresh(c.ending, p)
	}
	l := c.reader.Entries(c.ending, p)
	if failure != nil && l.Err == nil {
		l.Outcome, l.Feed, l.Err = feed.Failed, nil, failure
	}
	if a := away(l.Err); a != nil && c.opt.Reader != nil {
		if _, _, err := c.reader.Feeds(c.ending); err == nil {
			l.Err = a.Err
		}
	}
	return l
}

// own fetches the feeds of an OPML file.
type own struct {
	path    string
	fetcher *feed.Fetcher

	// What was read last.
	text  []byte
	feeds []Outline
	left  []error
}

// Feeds implements [Reader].
func (o *own) Feeds(context.Context) (feeds []Outline, left []error, err error) {
	text, err := os.ReadFile(o.path)
	if err != nil {
		return nil, nil, err
	}
	if o.text == nil || !bytes.Equal(text, o.text) {
		feeds, left, err := ParseOPML(text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", o.path, err)
		}
		o.text, o.feeds, o.left = text, feeds, left
	}
	return o.feeds, o.left, nil
}

// Refresh implements [Reader]. Nothing is kept between two calls here, so it is Entries that fetches.
func (o *own) Refresh(context.Context, feed.Place) error { return nil }

// Entries implements [Reader]. Without a network it does nothing.
func (o *own) Entries(ctx context.Context, p feed.Place) Look {
	res := o.fetcher.Fetch(ctx, p)
	if res.Offline {
		res.Err = &Away{Err: fmt.Errorf("no server is reached from here: %w", res.Err)}
	}
	return Look{Result: res}
}

const (
	readerTimeout = 2 * time.Minute // in which it fetches a feed, or gives pages of new entries
	firstEntries  = 100             // of a feed that are read at first
	pageEntries   = 1000            // at once, the most that Miniflux gives
)

// remote is a reader at an address.
type remote struct {
	name, url string
	client    http.Client

	mu  sync.Mutex
	ids map[string]int64 // of feeds, by address
}

// newRemote returns the reader at an address. People may give that of one of its pages instead.
func newRemote(name, address string, pages ...string) remote {
	address, _, _ = strings.Cut(address, "?")
	address = strings.TrimRight(address, "/")
	for _, page := range pages {
		address = strings.TrimRight(strings.TrimSuffix(address, page), "/")
	}
	return remote{name: name, url: address, client: http.Client{
		Timeout:       readerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Name returns what people call it.
func (m *remote) Name() string { return m.name }

// readerName returns what people call a reader.
func readerName(r Reader) string {
	if named, is := r.(interface{ Name() string }); is {
		return named.Name()
	}
	return "the reader"
}

// away is an error of this reader.
func (m *remote) away(format string, args ...any) error {
	return &Away{Err: fmt.Errorf("%s at %s %w", m.name, shown(m.url), fmt.Errorf(format, args...))}
}

// silent is one of a reader that has no answer of its own.
func (m *remote) silent(format string, args ...any) error {
	err := m.away(format, args...)
	away(err).Silent = true
	return err
}

// answers is the error of an answer other than what is asked for, with what it says.
func (m *remote) answers(status int, says string) error {
	switch {
	case status >= 500: // so does a proxy in front of a reader that does not run
		return m.silent("answers %d: %s", status, cmp.Or(says, http.StatusText(status)))
	case says == "" && (status/100 == 3 || status == http.StatusNotFound):
		return m.away("answers %d: %s; needed is the address of %s itself, with its path if it has one",
			status, http.StatusText(status), m.name)
	}
	return m.away("answers %d: %s", status, cmp.Or(says, http.StatusText(status)))
}

// call makes a request, and returns the answer.
func (m *remote) call(r *http.Request) (status int, body []byte, err error) {
	res, err := m.client.Do(r)
	var in *url.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	var late net.Error
	switch {
	case errors.As(err, &late) && late.Timeout():
		return 0, nil, m.silent("does not answer within %s", span(readerTimeout))
	case err != nil:
		return 0, nil, m.silent("does not answer: %w", err)
	}
	defer res.Body.Close()
	switch body, err = io.ReadAll(res.Body); {
	case errors.As(err, &late) && late.Timeout():
		return 0, nil, m.silent("does not answer in full within %s", span(readerTimeout))
	case err != nil:
		return 0, nil, m.silent("broke off: %w", err)
	}
	if to, err := res.Location(); err == nil {
		asked := strings.TrimPrefix(r.URL.String(), m.url)
		if other, is := strings.CutSuffix(to.String(), asked); is {
			return 0, nil, m.away("has moved to %s; give that address", shown(other))
		}
	}
	return res.StatusCode, body, nil
}

// id returns the number of a feed.
func (m *remote) id(p feed.Place) (id int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, is := m.ids[p.URL]
	if !is {
		err = fmt.Errorf("it is not in %s any more", m.name)
	}
	return id, err
}

// know takes up the numbers of the feeds.
func (m *remote) know(ids map[string]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids = ids
}
