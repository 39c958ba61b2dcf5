package frontier

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ephemera/env"
	"ephemera/learner"
	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// Metadata by which a client tells what a fetch found, and more. A known URL of a learned
// crawl that has one of the first three, or a signature, is fetched again when the learner says.
const (
	// When the items were published that are new since the last fetch, RFC 3339 or Unix seconds.
	metaItems = "ephemera.items"
	metaWorth = "ephemera.worth" // what each of them is worth; 1 without
	metaNew   = "ephemera.new"   // how many are new, where their times are not known
	metaDone  = "ephemera.done"  // the URL is not to be fetched again
	metaPing  = "ephemera.ping"  // when something else says that the URL has changed; now without a value
	metaWhy   = "ephemera.why"   // the answer of GetURLStatus says what the learner thinks
	metaState = "ephemera.state" // what is kept of the URL in its record; dumps alone have it
	metaQueue = "ephemera.queue" // in a dump, of the first URL of a queue: what the queue is held to
	metaOurs  = "ephemera."      // begins all of them

	// metaSignature is what changes with a page, unless an option names another.
	metaSignature = "signature"
)

// LearnOptions say how the URLs of a crawl are fetched again.
type LearnOptions struct {
	PerHour float64 `toml:"per_hour"` // fetches
	// Nothing is changed: what the learner would do is compared with what the client does.
	Shadow   bool     `toml:"shadow"`
	Shortest Duration `toml:"shortest"`
	Longest  Duration `toml:"longest"` // as far as the budget goes; 0 leaves it open

	// What fetches are to bring about; none stands for freshness where the first fetch that is
	// reported comes with a signature, and for delay where it comes with items.
	Objective env.Objective `toml:"objective"`
	Changed   string        `toml:"changed"` // metadata that changes with the page; none stands for "signature"
	Dates     Dates         `toml:"dates"`   // none stands for ignore under freshness, else for earliest

	Nodes int `toml:"-"` // that share the budget; 0 stands for 1
}

// Check tells what is wrong with the options, if anything is.
func (o *LearnOptions) Check() error {
	if !(o.PerHour > 0) || math.IsInf(o.PerHour, 1) {
		return fmt.Errorf("there are %v fetches an hour; allowed is a finite number above 0", o.PerHour)
	}
	if o.Longest.Duration > 0 && o.Shortest.Duration > o.Longest.Duration {
		return fmt.Errorf("shortest is %v and longest %v; allowed is a shortest up to longest",
			o.Shortest.Duration, o.Longest.Duration)
	}
	return nil
}

// Dates say what the dates of known URLs mean. It is a struct, as Duration is: TOML sets what is a
// string or a number without asking UnmarshalText.
type Dates struct{ name string }

// A date in the future is the earliest time of the next fetch, or nothing.
var (
	Earliest = Dates{"earliest"}
	Ignore   = Dates{"ignore"}
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Dates) UnmarshalText(text []byte) error {
	if *d = (Dates{string(text)}); *d != Earliest && *d != Ignore {
		return fmt.Errorf("dates is %q; allowed are earliest and ignore", text)
	}
	return nil
}

// Duration is a time.Duration that a file has as "24h".
type Duration struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	if d.Duration, err = time.ParseDuration(string(text)); err != nil || d.Duration < 0 {
		return fmt.Errorf("there is the time %q; allowed is one of 0 or more such as \"90m\" or \"24h\"", text)
	}
	return nil
}

const (
	// saveEvery is how old what all URLs have in common may be after a kill.
	saveEvery = 5 * time.Minute
	// anyway is after which time a URL is fetched again if the learner never says so, unless
	// the longest interval is longer.
	anyway = 30 * 24 * time.Hour
	// mostNew is how many items of a fetch are taken up where only their number is given.
	mostNew = 1000
)

// Learned sets when known URLs are fetched again.
type Learned struct {
	store  *store.Store
	log    *slog.Logger
	mu     sync.Mutex
	pause  func()       // gives the lock up for others, and takes it again
	moment store.Moment // the last one
	crawls map[string]*learnedCrawl
}

type learnedCrawl struct {
	opt      LearnOptions
	share    share
	byReport bool // the objective is that of what is reported first
	crawler  *learner.Crawler
	sources  map[string]packed  // what fetches of each learned URL have found
	mistakes map[string]string  // in what the last put said of a fetch, if there was one
	shadows  map[string]*shadow // of URLs whose items the learner would find, in the shadow
	removing int                // calls that remove a queue, or all, and have not forgotten all of its URLs yet
	saved    time.Time
	began    time.Time // first fetch since the start
	sum      Summary
	client   float64 // sum over items from publication until the client found them, hours
	learner  float64 // and until the learner would have
}

// shadow is what the learner would have done with a URL since the last put.
type shadow struct {
	picks []time.Time // when it would have fetched
	late  []time.Time // items that it would have found only after that
}

// NewLearned returns the learners of crawls, which go on from what the store kept.
func NewLearned(s *store.Store, log *slog.Logger, crawls map[string]LearnOptions) (*Learned, error) {
	l := &Learned{store: s, log: log, moment: s.Moment(), crawls: map[string]*learnedCrawl{}}
	l.pause = func() {
		l.mu.Unlock()
		l.mu.Lock()
	}
	now := l.moment.Time
	for name, opt := range crawls {
		c := newLearnedCrawl(opt, now)
		if c.byReport = opt.Objective.Law == ""; c.byReport {
			c.opt.Objective = env.Delay
		}
		err := l.openShare(name, c)
		if err == nil {
			err = l.open(name, c, now)
		}
		if err != nil {
			return nil, fmt.Errorf("crawl %q: %w", name, err)
		}
		l.crawls[name] = c
	}
	return l, nil
}

func newLearnedCrawl(opt LearnOptions, now time.Time) *learnedCrawl {
	return &learnedCrawl{
		opt: opt, saved: now,
		sources: map[string]packed{}, mistakes: map[string]string{}, shadows: map[string]*shadow{},
	}
}

func stateName(crawl string) string { return "learned " + crawl }
func clockName(crawl string) string { return "clock of learned " + crawl }

// sourceName returns the learner's name of a URL: the length of its key, key and URL.
func sourceName(id schedule.ID) string { return beginning(id.Key) + id.URL }

// beginning returns what the names of a queue's URLs begin with, and no others.
func beginning(key string) string { return strconv.Itoa(len(key)) + ":" + key }

func idOf(crawl, name string) schedule.ID {
	length, rest, _ := strings.Cut(name, ":")
	n, _ := strconv.Atoi(length)
	return schedule.ID{Crawl: crawl, Key: rest[:n], URL: rest[n:]}
}

// shadow returns what the learner would have done with a URL.
func (c *learnedCrawl) shadow(name string) *shadow {
	s := c.shadows[name]
	if s == nil {
		s = &shadow{}
		c.shadows[name] = s
	}
	return s
}

// forget forgets a URL.
func (c *learnedCrawl) forget(name string) {
	c.crawler.Remove(name)
	delete(c.sources, name)
	delete(c.mistakes, name)
	delete(c.shadows, name)
}

// remove removes a queue, or a crawl if key is nil, and returns how many URLs it had. It forgets them part after part,
// so that others get at the learners in between.
func (l *Learned) remove(crawl string, key *string) (int, error) {
	c := l.crawls[crawl]
	if c == nil {
		return l.store.Remove(crawl, key)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.removing++
	defer func() { c.removing-- }()
	l.mu.Unlock()
	n, err := l.store.Remove(crawl, key)
	l.mu.Lock()
	if n == 0 {
		return n, err
	}
	begins := ""
	if key != nil {
		begins = beginning(*key)
	}
	for name := range l.names(c) {
		if strings.HasPrefix(name, begins) {
			l.forgetRemoved(idOf(crawl, name), c)
		}
	}
	return n, err
}

// namesAtOnce is how many learned URLs are looked at under one lock.
const namesAtOnce = 100

// names calls yield with the names of the learned URLs of a crawl. It is called with the lock, which it gives up now
// and then.
func (l *Learned) names(c *learnedCrawl) iter.Seq[string] {
	return func(yield func(string) bool) {
		n := 0
		for name := range c.sources {
			if !yield(name) {
				return
			}
			if n++; n%namesAtOnce == 0 {
				l.pause()
			}
		}
	}
}

// removed forgets a URL that was removed.
func (l *Learned) removed(id schedule.ID) {
	if c := l.crawls[id.Crawl]; c != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.forgetRemoved(id, c)
	}
}

// forgetRemoved forgets a URL unless its record is of a learned one: it may have been put again meanwhile.
func (l *Learned) forgetRemoved(id schedule.ID, c *learnedCrawl) {
	if name := sourceName(id); c.crawler.Has(name) {
		if r, err := l.store.Look(id); err == nil && (r == nil || stateOf(r) == nil) {
			c.forget(name)
		}
	}
}

// has reports whether a URL is learned. It forgets one that was removed while the others of its queue still are.
func (l *Learned) has(id schedule.ID, c *learnedCrawl) bool {
	if c.removing > 0 {
		l.forgetRemoved(id, c)
	}
	return c.crawler.Has(sourceName(id))
}

// now returns the time. If the clock was set since the last time, the learners go with it as the store
// does: so no time has passed for them. It is called with the lock, before the learners are looked at.
func (l *Learned) now() time.Time {
	before := l.moment
	l.moment = l.store.Moment()
	if by := l.moment.Set - before.Set; by != 0 {
		l.shift(l.moment.Time, by)
	}
	return l.moment.Time
}

// shift has the learners go with the clock.
func (l *Learned) shift(now time.Time, by time.Duration) {
	for crawl, c := range l.crawls {
		c.crawler.Shift(by)
		c.shift(now, by)
		for _, s := range c.shadows {
			for i := range s.picks {
				s.picks[i] = s.picks[i].Add(by)
			}
		}
		l.save(crawl, c)
		c.saved = now
	}
}

// put schedules a URL or completes it, after the learner has taken up what a fetch found.
// A mistake is one in what the client says of the fetch: it counts as failed.
func (l *Learned) put(id schedule.ID, item *pb.KnownURLItem) (
	due int64, commit *store.Commit, mistake, err error,
) {
	info := item.GetInfo()
	due = seconds(item.GetRefetchableFromDate())
	c := l.crawls[id.Crawl]
	if c == nil {
		commit, err = l.store.Put(id, due, l.store.Moment().Time.UnixMilli(), metadata(info, due, nil))
		return due, commit, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.UnixMilli(l.now().UnixMilli())
	l.has(id, c)
	aim, err := l.aim(id.Crawl, c, now, info)
	if err != nil {
		return due, nil, nil, err
	}
	commit, err = l.store.PutLate(id, now.UnixMilli(), func() (int64, []byte) {
		var known bool
		name := sourceName(id)
		due, known, mistake = c.take(now, name, info, due)
		if due == schedule.Completed {
			c.forget(name)
			known = false
		}
		if !known {
			return due, metadata(info, due, nil)
		}
		return due, metadata(info, due, l.keep(c, name))
	}, aim...)
	if mistake = inPut(id, mistake); mistake != nil {
		mistake = fmt.Errorf("%w; the fetch counts as failed", mistake)
	}
	return due, commit, mistake, err
}

// inPut says of which URL a mistake is, if it is one.
func inPut(id schedule.ID, mistake error) error {
	if mistake != nil {
		mistake = fmt.Errorf("crawl %q, URL %.1000q: %w", id.Crawl, id.URL, mistake)
	}
	return mistake
}

// take takes up what the client says of a fetch, and returns when the URL is due in the
// schedule, and whether it is a learned one.
//
// A URL that was never reported is the client's. Of a learned one, whose client may say what
// it likes to its own schedule, only ephemera.done is the end.
func (c *learnedCrawl) take(
	now time.Time, name string, info *pb.URLInfo, date int64,
) (due int64, known bool, mistake error) {
	said := c.opt.read(info)
	known = c.crawler.Has(name)
	switch {
	case said.done:
		return schedule.Completed, known, nil
	case known:
	case !said.reports():
		return date, false, nil
	default:
		if err := c.crawler.Add(name, c.rules()); err != nil {
			return date, false, err
		}
	}
	crawl := learner.Crawl{Source: name, At: now, Outcome: learner.Failed}
	earliest := date > now.UnixMilli() && !c.opt.Shadow && c.dates() == Earliest
	h := c.sources[name].unpack()
	if h.NotBefore = 0; earliest {
		h.NotBefore, crawl.NotBefore = date, time.UnixMilli(date)
	}
	if said.reports() {
		if mistake = c.learn(&h, crawl, &said); mistake != nil {
			c.mistakes[name] = mistake.Error()
		} else {
			delete(c.mistakes, name)
		}
	}
	c.sources[name] = h.pack()
	if !said.reports() || mistake != nil {
		if err := c.crawler.Update(crawl); err != nil {
			mistake = err
		}
	}
	if c.opt.Shadow {
		return date, true, mistake
	}
	return max(now.Add(max(c.opt.Longest.Duration, anyway)).UnixMilli(), h.NotBefore), true, mistake
}

// aim has the first report of a crawl say what fetches are to bring about, unless that is set. It
// returns what is to be kept with the report, so that a kill does not forget it.
func (l *Learned) aim(crawl string, c *learnedCrawl, now time.Time, info *pb.URLInfo) ([]store.Value, error) {
	if !c.byReport || c.crawler.Len() > 0 {
		return nil, nil
	}
	said := c.opt.read(info)
	if said.done || !said.reports() {
		return nil, nil
	}
	aim := env.Objective{Law: env.LawFreshness}
	if len(said.ours) > 0 {
		aim = env.Delay
	}
	if c.opt.Objective != aim {
		c.opt.Objective = aim
		if err := c.create(now); err != nil {
			return nil, err
		}
	}
	return l.state(crawl, c)
}

// pages reports whether a fetch tells that the page has changed, or has not.
func (c *learnedCrawl) pages() bool { return c.opt.Objective.Law == env.LawFreshness }

func (c *learnedCrawl) dates() Dates {
	usual := Earliest
	if c.pages() {
		usual = Ignore
	}
	return cmp.Or(c.opt.Dates, usual)
}

// learn has the learner take up what a fetch found.
func (c *learnedCrawl) learn(h *history, crawl learner.Crawl, said *said) error {
	now := crawl.At
	found, err := items(said.ours, h.last(), now)
	if err != nil {
		return err
	}
	if len(said.ours[metaItems]) > 0 { // where the client gives a number alone, they are new
		found = h.unseen(found)
	}
	changed := len(found) > 0
	if len(said.ours) == 0 {
		changed = !said.unchanged && h.Signature != 0 && said.signature != h.Signature
		if changed {
			found = evenly(1, h.last(), now)
		}
	}
	crawl.Outcome = learner.Unchanged
	if changed {
		crawl.Outcome = learner.Found
	}
	if crawl.Changed = changed && c.pages(); !c.pages() {
		crawl.Items = found
	}
	if err := c.crawler.Update(crawl); err != nil {
		return err
	}
	c.count(crawl.Source, h.last(), found, changed, now)
	h.add(now, found, changed)
	h.Signature = cmp.Or(said.signature, h.Signature)
	return nil
}

func (c *learnedCrawl) rules() learner.Source {
	return learner.Source{Shortest: c.opt.Shortest.Duration, Longest: c.opt.Longest.Duration}
}

// count adds up what fetches find, and when.
func (c *learnedCrawl) count(name string, last time.Time, found []learner.Item, changed bool, now time.Time) {
	if c.sum.Fetched++; !changed {
		c.sum.Empty++
	}
	if c.began.IsZero() {
		c.began = now
	}
	if last.IsZero() {
		return // what it found was there before
	}
	if !c.pages() {
		c.compare(name, last, found, now)
		return
	}
	b, err := c.crawler.Belief(name)
	if z := b.Changes * now.Sub(last).Hours(); err == nil && changed {
		c.sum.Changes++
		c.sum.Missed += unseen(z)
	}
}

// compare counts when the client finds the items and, in the shadow, when the learner would.
func (c *learnedCrawl) compare(name string, last time.Time, found []learner.Item, now time.Time) {
	var s *shadow
	if c.opt.Shadow {
		s = c.shadow(name)
		defer func() { s.picks = s.picks[:0] }()
	}
	for _, it := range found {
		if it.Published.Before(last) {
			continue // it was there before the two began
		}
		c.sum.Items++
		c.client += now.Sub(it.Published).Hours()
		if s == nil {
			continue
		}
		i := slices.IndexFunc(s.picks, func(at time.Time) bool { return !at.Before(it.Published) })
		if i < 0 {
			s.late = append(s.late, it.Published)
			continue
		}
		c.sum.Found++
		c.learner += s.picks[i].Sub(it.Published).Hours()
	}
}

// ping takes up that something else than a fetch says that a URL has changed, and reports
// whether that is news: that a sitemap says so again is none, nor that it says so of a time
// before the last fetch.
func (l *Learned) ping(id schedule.ID, values []string) (
	news bool, commit *store.Commit, mistake, err error,
) {
	c := l.crawls[id.Crawl]
	if c == nil {
		return false, nil, nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.UnixMilli(l.now().UnixMilli())
	name, at := sourceName(id), now
	if !l.has(id, c) {
		return false, nil, nil, nil // it will be fetched for the first time anyway
	}
	if len(values) > 0 && values[0] != "" {
		if at, mistake = readTime(metaPing, values[0], now); mistake != nil {
			return false, nil, inPut(id, mistake), nil
		}
	}
	h := c.sources[name].unpack()
	if !at.After(h.last()) || at.Unix() <= h.Ping {
		return false, nil, nil, nil
	}
	if mistake = c.crawler.Ping(name, now); mistake != nil {
		return false, nil, inPut(id, mistake), nil
	}
	h.Ping = at.Unix()
	c.sources[name] = h.pack()
	c.sum.Pings++
	commit, err = l.store.ChangeData(id, func(r *store.Record) ([]byte, error) {
		info, err := infoOf(r)
		return metadata(info, r.Due, l.keep(c, name)), err
	})
	return true, commit, nil, err
}

// Advance makes the URLs due that the learners ask for now, and keeps what was learned now
// and then. While the disk is nearly full the learners go on as soon as there is room: nothing is handed out
// before that either.
func (l *Learned) Advance() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.store.Full() {
		return
	}
	for crawl, c := range l.crawls {
		names := c.crawler.Select(now, c.crawler.Len())
		ids := make([]schedule.ID, len(names))
		for i, name := range names {
			ids[i] = idOf(crawl, name)
			if c.opt.Shadow && !c.pages() {
				s := c.shadow(name)
				s.picks = append(s.picks, now)
				for _, published := range s.late {
					c.sum.Found++
					c.learner += now.Sub(published).Hours()
				}
				s.late = s.late[:0]
			}
		}
		c.sum.Asked += len(names)
		if !c.opt.Shadow {
			gone, err := l.store.Hasten(ids)
			if err != nil {
				l.log.Error("URLs that are to be fetched are not made due", "crawl", crawl, "error", err)
			}
			for _, i := range gone {
				c.forget(names[i]) // it was put as done by a version that did not forget it
			}
		}
		if since := now.Sub(c.saved); since >= saveEvery || since < 0 { // the clock was set back
			l.save(crawl, c)
			c.saved = now
		}
	}
}

// Save keeps what the URLs of each crawl have in common. It logs errors, too.
func (l *Learned) Save() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now()
	for crawl, c := range l.crawls {
		err = errors.Join(err, l.save(crawl, c))
	}
	return err
}

// recall has the learner of a crawl take up what the records of its URLs have, as a start does.
func (l *Learned) recall(crawl string) error {
	c := l.crawls[crawl]
	if c == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	anew := newLearnedCrawl(c.opt, now)
	anew.share, anew.byReport, anew.removing = c.share, c.byReport, c.removing
	if c.crawler.Len() > 0 {
		l.save(crawl, c)
	} else if err := l.store.SetValue(stateName(crawl), nil); err != nil { // it has seen nothing yet
		return err
	}
	if err := l.open(crawl, anew, now); err != nil {
		return err
	}
	anew.sum, anew.began, anew.client, anew.learner = c.sum, c.began, c.client, c.learner
	*c = *anew
	return nil
}

// explain adds to the metadata of a URL what the learner thinks of it.
func (l *Learned) explain(id schedule.ID, info *pb.URLInfo) {
	c := l.crawls[id.Crawl]
	if c == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now()
	l.has(id, c)
	name := sourceName(id)
	b, err := c.crawler.Belief(name)
	if err != nil {
		return // it is not learned
	}
	if info.Metadata == nil {
		info.Metadata = map[string]*pb.StringList{}
	}
	rate := fmt.Sprintf("items per hour %.3g", b.Items)
	if c.pages() {
		rate = fmt.Sprintf("changes per hour %.3g, fresh with probability %.2g", b.Changes, b.Fresh)
	}
	due := "never"
	if !b.Due.IsZero() {
		due = b.Due.UTC().Format(time.RFC3339)
	}
	info.Metadata[metaWhy] = &pb.StringList{Values: []string{
		rate, "objective " + c.opt.Objective.String(), fmt.Sprintf("price %.3g", b.Price), "due " + due,
	}}
	if mistake := c.mistakes[name]; mistake != "" {
		why := info.Metadata[metaWhy]
		why.Values = append(why.Values, "the last fetch counts as failed: "+mistake)
	}
}
