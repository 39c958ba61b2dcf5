package crawl

import (
	"bytes"
	"fmt"
	"os"

	"ephemera/live/feed"
)

// Reader is who fetches feeds: this program, or a reader that people have already, which then
// fetches when it is asked to. Its methods may be called at once.
type Reader interface {
	// Feeds returns the feeds that are to be fetched, and an error for each that is left out.
	Feeds() (feeds []Outline, left []error, err error)
	// Refresh has a feed fetched, and returns what that brought, and what the reader has found
	// of it otherwise since then. An error that is an [Away] is of the reader itself.
	Refresh(p feed.Place) feed.Result
}

// Away says that a reader does not answer, so that nothing is known of its feeds.
type Away struct{ Err error }

func (e *Away) Error() string { return e.Err.Error() }
func (e *Away) Unwrap() error { return e.Err }

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
func (o *own) Feeds() (feeds []Outline, left []error, err error) {
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

// Refresh implements [Reader].
func (o *own) Refresh(p feed.Place) feed.Result { return o.fetcher.Fetch(p) }
