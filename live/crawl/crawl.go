package crawl

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"ephemera/env"
	"ephemera/learner"
	"ephemera/live/clock"
	"ephemera/live/feed"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// Options are the settings of a [Crawler].
type Options struct {
	OPML     string  // file of the feeds
	Reader   Reader  // that fetches its own feeds, in place of those of OPML; nil for this program
	Shadow   bool    // the reader fetches when it wants, and is not asked to
	Dir      string  // of the state
	InMemory bool    // the state is begun in memory, and nothing is written to Dir
	Agent    string  // User-Agent, with a contact
	PerHour  float64 // requests for feeds

	Worth       map[string]float64 // of an item, by the feed's address; before that of the OPML file
	Objective   env.Objective      // what looks are to bring about; none stands for delay
	Shortest    time.Duration      // between two requests for a feed
	Longest     time.Duration      // as far as requests are allowed
	Unvalidated time.Duration      // shortest, for feeds of a quarter MB that cannot be asked for changes alone

	PublicURL    string // under which hubs reach the handler's /websub/; empty for no subscriptions
	AllowPrivate bool

	Hook       string // address of a program to which new items are posted; empty for none
	HookSecret []byte // with which that is signed

	Now    func() time.Time
	Uptime func() clock.Uptime // tells steps of Now from time that passes; nil for nothing
	Log    *slog.Logger

	disk  vfs.FS                               // of the state; nil for that of the machine
	pause func(context.Context, time.Duration) // waits, or until the context ends; nil by the clock of the machine
}

const (
	crawlName = "feeds" // in the store
	workers   = 16      // requests under way
	maxBytes  = 10 << 20
	wholeSize = 250_000 // bytes of a feed that is sent whole for which Options.Unvalidated holds
	asked     = "its server asks to wait"
	published = "its publisher asks to wait"
)

// Crawler crawls the feeds of an OPML file. Its methods may be called at once.
type Crawler struct {
	opt     Options
	store   *store.Store
	fetcher *feed.Fetcher
	reader  Reader
	running sync.WaitGroup

	mu       sync.Mutex
	learner  *learner.Crawler
	latest   time.Time          // that the clock has shown
	read     clock.Reading      // by which steps of the clock are found
	feeds    map[string]*record // by address in the OPML file
	blocked  map[string]block   // hosts that asked to be left alone
	river    []drop             // the items that are kept, the last found last
	hook     *hook
	listing  listing
	away     *Away     // why the reader does not answer, or that there is no network; nil if it does
	again    time.Time // when a feed is tried next, while there is no network
	underWay int
	seq      uint64 // of the last entry of the journal
	saved    time.Time
	stats    stats

	compared    *comparison // nil until somebody looked at the page
	comparing   bool
	comparisons sync.WaitGroup
	ending      context.Context // of Open, which ends when the crawler is closed, too
	end         func()

	asked      map[*record]time.Time // when requests were made, of which nothing was kept since
	recent     []time.Time           // the others, as many as are allowed together, the oldest first
	unanswered []time.Time           // those of recent, since it was saved, that are not in the journal
	early      []string              // feeds that the learner handed out a little before they may be asked for
}

// Open takes up the state of a directory, or begins one, and reads the OPML file; the list of a reader is read
// when it is needed. When the context ends, requests under way are broken off, and no others are made.
func Open(ctx context.Context, o Options) (c *Crawler, err error) {
	c = &Crawler{
		opt: o, feeds: map[string]*record{}, blocked: map[string]block{}, asked: map[*record]time.Time{},
	}
	c.ending, c.end = context.WithCancel(ctx)
	if o.Uptime == nil {
		c.opt.Uptime = func() clock.Uptime { return clock.Uptime{} }
	}
	if o.pause == nil {
		c.opt.pause = func(ctx context.Context, d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
		}
	}
	if o.InMemory {
		o.disk = vfs.NewMem()
	}
	c.store, err = store.Open(o.Dir, &store.Options{
		Program: "crawl", Delay: 1000, Memory: 16 << 20, Log: o.Log, FS: o.disk,
		Now: func() time.Time { return c.latest }, // it is asked for that with the crawler's lock
	})
	if errors.Is(err, store.ErrInUse) {
		return nil, inUse{o.Dir}
	}
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Control: feed.Public}
	if o.AllowPrivate {
		dialer.Control = nil
	}
	c.fetcher = &feed.Fetcher{
		Agent: o.Agent, Timeout: 30 * time.Second, MaxBytes: maxBytes, Memory: c, Now: o.Now, Dial: dialer.DialContext,
		DialHub: (&net.Dialer{Control: feed.Public}).DialContext,
	}
	if c.reader = o.Reader; c.reader == nil {
		c.reader = &own{path: o.OPML, fetcher: c.fetcher}
	}
	if err := c.load(); err != nil {
		c.store.Close()
		return nil, err
	}
	return c, nil
}

// inUse says of a directory that another crawler has it.
type inUse struct{ dir string }

func (e inUse) Error() string { return e.dir + " is in use by another crawl; end that one first" }
func (e inUse) Unwrap() error { return store.ErrInUse }

// epoch returns how long an epoch of the learner is, and how many requests it has in the mean. It is
// the shortest part of an hour, or of a day, of five minutes or more that has a request. Much is
// published at full hours: what is decided a minute later in each hour finds that at once, and epochs that
// do not divide the hour are late by another time in each. What is left of the requests of an epoch goes on
// to the next one; where there are few, so that this changes their number much, an epoch takes a whole
// number of them, as long as that is, up to the next part of an hour.
func (o *Options) epoch() (length time.Duration, requests float64) {
	const day, few = 24 * time.Hour, 4
	least := o.PerHour / 12 // requests of an epoch
	if least < few {
		least = math.Ceil(least)
	}
	for _, parts := range []float64{288, 240, 144, 120, 96, 72, 48, 24, 12, 8, 6, 4, 3, 2, 1} {
		if requests = o.PerHour * 24 / parts; requests >= least*(1-1e-9) {
			return day / time.Duration(parts), requests
		}
	}
	days := math.Ceil(1 / requests)
	return time.Duration(days) * day, days * requests
}

// lead is by how much the learner may hand out a feed too early, and [Crawler.Tick] holds it. An
// answer comes a little after its epoch has begun, so that a wait of whole epochs ends a little after
// another one has; else it would go on to the next.
func (o *Options) lead() time.Duration {
	length, _ := o.epoch()
	return length / 10
}

// limits are those of the learner for each feed.
func (o *Options) limits() learner.Source {
	return learner.Source{Shortest: max(0, o.Shortest-o.lead()), Longest: o.Longest}
}

// free returns from when a feed may be asked for that is not under way, from a time on, and why no
// sooner. Hours and days that it leaves out do not make it wait for longer than the longest interval.
func (c *Crawler) free(r *record, from time.Time) (at time.Time, why string) {
	at, why = r.NotBefore, r.Why
	if host := c.blocked[r.ID.Key].Until; host.After(at) {
		at, why = host, asked
	}
	begin := at
	if from.After(begin) {
		begin = from
	}
	next := r.Pace.Next(begin)
	if last := r.Tried.Add(c.opt.Longest); next.After(last) {
		next = last
	}
	if next.After(begin) {
		return next, published
	}
	return at, why
}

// Tick begins the requests for which it is time, and returns how many.
func (c *Crawler) Tick() (begun int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opt.Shadow && c.store.Full() { // what the reader fetched is read when it can be kept
		return 0, store.ErrFull
	}
	gone, said := c.away, c.listing.err
	err = c.reread(c.clock())
	switch {
	case c.ending.Err() != nil:
		return 0, nil
	case c.listing.feeds == nil:
		return 0, err
	case c.away != nil && gone == nil:
		c.opt.Log.Error("no request is made", "error", c.away)
	case c.away == nil && err != nil && (said == nil || said.Error() != err.Error()):
		c.opt.Log.Error("the list of feeds stays as it was", "error", err)
	}
	now := c.clock()
	if left := c.again.Sub(now); c.away != nil && (c.opt.Reader != nil || 0 < left && left <= rereading) {
		// It is longer after the clock was set back.
		return 0, nil
	}
	if err := c.settle(now); err != nil {
		return 0, err
	}
	if c.opt.Shadow {
		return c.watch(), c.save(now, false)
	}
	room := min(workers-c.underWay, c.allowance(now))
	if c.away != nil { // one finds out whether that is over
		room = min(room, 1-c.underWay)
	}
	if room <= 0 {
		return 0, nil
	}
	if c.store.Full() { // what the learner hands out would have to wait for longer than until there is room
		return 0, store.ErrFull
	}
	var due []schedule.ID
	handed := append(c.early, c.learner.Select(now, max(0, room-len(c.early)))...)
	c.early = nil
	for _, address := range handed {
		r := c.feeds[address]
		switch at, _ := c.free(r, now); {
		case !at.After(now):
			due = append(due, r.ID)
		case at.Sub(now) <= c.opt.lead():
			c.early = append(c.early, address)
		default:
			if err := c.postpone(r, now, at.Add(-c.opt.lead())); err != nil {
				return 0, err
			}
		}
	}
	if _, err := c.store.Hasten(due); err != nil {
		return 0, err
	}
	taken, err := c.store.Take(
		&schedule.Request{Crawl: crawlName, PerQueue: 1, Hold: c.opt.hold().Milliseconds()}, room)
	if err != nil {
		return 0, err
	}
	for _, t := range taken {
		r := c.feeds[t.URL]
		if at, _ := c.free(r, now); !c.learner.Has(t.URL) || at.After(now) {
			if err := c.unmade(r, now, at.Add(-c.opt.lead())); err != nil {
				return begun, err
			}
			continue
		}
		begun++
		c.asked[r] = now
		c.begin(r, time.Time{})
	}
	return begun, c.save(now, false)
}

// begin has a feed be looked at, or that a reader fetched at a time.
func (c *Crawler) begin(r *record, fetched time.Time) {
	c.underWay++
	r.held = true
	place, unseen := r.Place, c.listing.unseen
	c.running.Go(func() {
		l := c.look(place)
		l.byList, l.unseen, l.unread = fetched, unseen, c.opt.Shadow && l.Err != nil && l.At.IsZero()
		if l.At.IsZero() {
			l.At = fetched
		}
		if err := c.take(r, &l); err != nil {
			c.opt.Log.Error("an answer was not kept", "feed", r.Address(), "error", err)
		}
	})
}

// watch takes up what the reader has fetched since it was asked last, and returns how many feeds.
// A fetch that is newer than the list is looked at once, and not for as long as the list is old.
func (c *Crawler) watch() (begun int) {
	for _, o := range c.listing.latest {
		r := c.feeds[o.URL]
		if c.underWay == workers {
			break
		}
		if r.unread != nil && r.unread.tried.Equal(c.listing.tried) { // it is asked again when there is another list
			continue
		}
		if !r.held && !o.Checked.IsZero() && !o.Checked.Equal(r.Checked) && !o.Checked.Equal(r.byList) {
			begun++
			c.begin(r, o.Checked)
		}
	}
	return begun
}

// Wait returns when no request is under way.
func (c *Crawler) Wait() { c.running.Wait() }

// Run ticks every second until the crawler's context ends. After an error, such as a full
// disk, it waits for a minute; it says an error once, until there is none or another. It ends with the
// error of a reader that at first gives another answer than its list; for one that gives none it waits.
func (c *Crawler) Run() error {
	defer c.Wait()
	var posting sync.WaitGroup
	posting.Go(func() { c.postAll(c.ending) })
	defer posting.Wait()
	said := ""
	for {
		wait, text := time.Second, ""
		_, err := c.Tick()
		if a := away(err); a != nil && !a.Silent {
			c.end()
			return err
		}
		if err != nil {
			wait, text = time.Minute, err.Error()
		}
		if text != said && text != "" {
			c.opt.Log.Error("no request is made", "error", text)
		}
		said = text
		select {
		case <-c.ending.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// LimitMemory has this program collect its garbage in time to stay below 128 MB and 16 kB a feed,
// unless GOMEMLIMIT names another limit. Sixteen bodies of 10 MB at once would otherwise leave as
// much again behind before they are collected. It returns the limit in bytes.
func (c *Crawler) LimitMemory() int64 {
	if os.Getenv("GOMEMLIMIT") == "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		debug.SetMemoryLimit(128<<20 + 16<<10*int64(len(c.feeds)))
	}
	return debug.SetMemoryLimit(-1)
}

// Close breaks off the requests under way, and closes the state.
func (c *Crawler) Close() error {
	c.end()
	c.comparisons.Wait()
	c.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.save(c.clock(), true), c.store.Close())
}
