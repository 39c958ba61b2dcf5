package frontier

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ephemera/env"
	"ephemera/learner"
	"ephemera/live/clock"
	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// Metadata by which a client tells what a fetch found. A known URL of a learned
// crawl that has one of the first three is fetched again when the learner says.
const (
	// When the items were published that are new since the last fetch, RFC 3339 or Unix seconds.
	metaItems = "ephemera.items"
	metaWorth = "ephemera.worth" // what each of them is worth; 1 without
	metaNew   = "ephemera.new"   // how many are new, where their times are not known
	metaWhy   = "ephemera.why"   // the answer of GetURLStatus says what the learner thinks
	metaState = "ephemera.state" // what is kept of the URL in its record; nobody is given it
	metaOurs  = "ephemera."      // begins all of them
)

// LearnOptions say how the URLs of a crawl are fetched again.
type LearnOptions struct {
	PerHour float64 `toml:"per_hour"` // fetches
	// Nothing is changed: what the learner would do is compared with what the client does.
	Shadow   bool     `toml:"shadow"`
	Shortest Duration `toml:"shortest"`
	Longest  Duration `toml:"longest"` // as far as the budget goes; 0 leaves it open

	Objective env.Objective `toml:"objective"` // what fetches are to bring about; none stands for delay
}

// Duration is a time.Duration that a file has as "24h".
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err == nil && v < 0 {
		err = fmt.Errorf("%v is below 0", v)
	}
	*d = Duration(v)
	return err
}

const (
	// saveEvery is how old what all URLs have in common may be after a kill.
	saveEvery = 5 * time.Minute
	// anyway is after which time a URL is fetched again if the learner never says so
	// and no longest interval is set.
	anyway = 30 * 24 * time.Hour
	// mostNew is how many items of a fetch are taken up where only their number is given.
	mostNew = 1000
)

// Learned sets when known URLs are fetched again.
type Learned struct {
	store  *store.Store
	log    *slog.Logger
	uptime func() clock.Uptime
	mu     sync.Mutex
	read   clock.Reading // the last one
	crawls map[string]*learnedCrawl
}

type learnedCrawl struct {
	opt     LearnOptions
	crawler *learner.Crawler
	sources map[string]*source
	saved   time.Time
	sum     Summary
	client  time.Duration // sum over items from publication until the client found them
	learner time.Duration // and until the learner would have
}

// source is what is known of a learned URL apart from what the learner knows.
type source struct {
	history
	mistake string      // in what the last put said of the fetch
	picks   []time.Time // since then, in the shadow: when the learner would have fetched
	late    []time.Time // in the shadow: items that it would have found only after that
}

// Summary is what a learned crawl shows.
type Summary struct {
	Crawl   string
	Shadow  bool
	PerHour float64
	Price   float64
	Sources int
	Asked   int // fetches that the learner asked for
	Fetched int // fetches whose finds a client put
	Empty   int // of these, that found nothing new
	Beliefs []Belief

	// In the shadow.
	Items       int           // that the client found
	Found       int           // of these, that the learner would have found by now
	ClientDelay time.Duration // mean time from publication until the client found an item
	Delay       time.Duration // and until the learner would have, over those Found
}

// Belief is what the learner thinks of a URL.
type Belief struct {
	URL string
	learner.Belief
}

// NewLearned returns the learners of crawls, which go on from what the store kept. The
// uptime tells steps of the clock from time that passes.
func NewLearned(
	s *store.Store, log *slog.Logger, crawls map[string]LearnOptions, now time.Time, uptime func() clock.Uptime,
) (*Learned, error) {
	l := &Learned{store: s, log: log, uptime: uptime, crawls: map[string]*learnedCrawl{}}
	l.read = clock.Reading{Time: now.Round(0), Uptime: uptime()}
	for name, opt := range crawls {
		if opt.Objective.Law == "" {
			opt.Objective = env.Delay
		}
		c := &learnedCrawl{opt: opt, sources: map[string]*source{}, saved: now}
		if err := l.open(name, c, now); err != nil {
			return nil, fmt.Errorf("crawl %q: %w", name, err)
		}
		l.crawls[name] = c
	}
	return l, nil
}

func stateName(crawl string) string { return "learned " + crawl }
func clockName(crawl string) string { return "clock of learned " + crawl }

// sourceName returns the learner's name of a URL: the length of its key, key and URL.
func sourceName(id schedule.ID) string { return fmt.Sprint(len(id.Key), ":", id.Key, id.URL) }

func idOf(crawl, name string) schedule.ID {
	length, rest, _ := strings.Cut(name, ":")
	n, _ := strconv.Atoi(length)
	return schedule.ID{Crawl: crawl, Key: rest[:n], URL: rest[n:]}
}

func (c *learnedCrawl) source(name string) *source {
	s := c.sources[name]
	if s == nil {
		s = &source{}
		c.sources[name] = s
	}
	return s
}

// items reads what a client says that a fetch found since the last one.
func items(said map[string][]string, last, now time.Time) ([]learner.Item, error) {
	for key := range said {
		if !slices.Contains([]string{metaItems, metaWorth, metaNew}, key) {
			return nil, fmt.Errorf("there is metadata %q; allowed are %s, %s and %s",
				key, metaItems, metaWorth, metaNew)
		}
	}
	var found []learner.Item
	worth := said[metaWorth]
	for i, text := range said[metaItems] {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s is %q; allowed is a time as 2026-11-22T10:00:00Z or in Unix seconds",
					metaItems, text)
			}
			at = time.Unix(n, 0)
		}
		item := learner.Item{Published: at}
		if i < len(worth) {
			item.Worth, err = strconv.ParseFloat(worth[i], 64)
			if err != nil || !(item.Worth >= 0 && item.Worth <= learner.MostWorth) {
				return nil, fmt.Errorf("%s is %q; allowed is a number, 0 to %g", metaWorth, worth[i], learner.MostWorth)
			}
		}
		found = append(found, item)
	}
	if v := said[metaNew]; len(v) > 0 && len(found) == 0 {
		n, err := strconv.Atoi(v[0])
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%s is %q; allowed is a number, 0 or more", metaNew, v[0])
		}
		if last.IsZero() {
			return nil, nil // over which time they were published is not known
		}
		n = min(n, mostNew)
		for i := range n { // evenly since the last fetch
			after := now.Sub(last) * time.Duration(2*i+1) / time.Duration(2*n)
			found = append(found, learner.Item{Published: last.Add(after)})
		}
	}
	return found, nil
}

// behind is by how much a clock was set that was set at all.
const behind = time.Minute

// follow has the learners go with the clock if it was set since the last time: so no time has
// passed for them.
func (l *Learned) follow(now time.Time) {
	read := clock.Reading{Time: now.Round(0), Uptime: l.uptime()}
	by := clock.Step(l.read, read)
	l.read = read
	if by.Abs() <= behind {
		return
	}
	l.log.Warn("the clock was set; learned crawls go on from there", "time", now.UTC(), "by", by)
	l.store.Shift(by)
	for crawl, c := range l.crawls {
		c.crawler.Shift(by)
		for _, src := range c.sources {
			src.shift(by)
			for i := range src.picks {
				src.picks[i] = src.picks[i].Add(by)
			}
		}
		l.save(crawl, c)
		c.saved = now
	}
}

// put schedules a URL or completes it, after the learner has taken up what a fetch found.
// A mistake is one in what the client says of the fetch: it counts as failed.
func (l *Learned) put(
	ms int64, id schedule.ID, item *pb.KnownURLItem,
) (due int64, commit *store.Commit, mistake, err error) {
	info := item.GetInfo()
	due = seconds(item.GetRefetchableFromDate())
	c := l.crawls[id.Crawl]
	if c == nil {
		commit, err = l.store.Put(id, due, ms, metadata(info, due, nil))
		return due, commit, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow(time.UnixMilli(ms))
	commit, err = l.store.PutLate(id, ms, func() (int64, []byte) {
		var known bool
		name := sourceName(id)
		due, known, mistake = c.take(time.UnixMilli(ms), name, info, due)
		if !known || due == schedule.Completed {
			return due, metadata(info, due, nil)
		}
		return due, metadata(info, due, l.keep(c, name))
	})
	if mistake != nil {
		mistake = fmt.Errorf("crawl %q, URL %q: %w; the fetch counts as failed", id.Crawl, id.URL, mistake)
	}
	return due, commit, mistake, err
}

// take takes up what the client says of a fetch, and returns when the URL is due in the
// schedule, and whether it is a learned one. It takes what it reads out of the metadata:
// the items are those of this fetch.
func (c *learnedCrawl) take(
	now time.Time, name string, info *pb.URLInfo, due int64,
) (at int64, known bool, mistake error) {
	said := map[string][]string{}
	for key, values := range info.GetMetadata() {
		if strings.HasPrefix(key, metaOurs) {
			said[key] = values.GetValues()
			delete(info.Metadata, key)
		}
	}
	delete(said, metaState)
	delete(said, metaWhy)
	crawl := learner.Crawl{Source: name, At: now, Outcome: learner.Failed}
	if due > now.UnixMilli() && !c.opt.Shadow {
		crawl.NotBefore = time.UnixMilli(due)
	}
	known = c.crawler.Has(name)
	if len(said) == 0 {
		if known && due != schedule.Completed {
			c.source(name).NotBefore = due
			mistake = c.crawler.Update(crawl)
		}
		return due, known, mistake
	}
	if !known {
		if err := c.crawler.Add(name, c.rules()); err != nil {
			return due, false, err
		}
	}
	src := c.source(name)
	src.NotBefore = due
	found, mistake := items(said, src.last(), now)
	if mistake == nil {
		well := crawl
		if well.Outcome, well.Items = learner.Unchanged, found; len(found) > 0 {
			well.Outcome = learner.Found
		}
		mistake = c.crawler.Update(well)
	}
	if mistake != nil {
		src.mistake = mistake.Error()
		if err := c.crawler.Update(crawl); err != nil {
			mistake = err
		}
	} else {
		src.mistake = ""
		c.sum.Fetched++
		if len(found) == 0 {
			c.sum.Empty++
		}
		if c.opt.Shadow {
			c.compare(src, found, now)
		}
		src.add(now, found)
	}
	if !c.opt.Shadow {
		due = max(due, now.UnixMilli()+cmp.Or(time.Duration(c.opt.Longest), anyway).Milliseconds())
	}
	return due, true, mistake
}

func (c *learnedCrawl) rules() learner.Source {
	return learner.Source{Shortest: time.Duration(c.opt.Shortest), Longest: time.Duration(c.opt.Longest)}
}

// compare counts when client and learner find the items.
func (c *learnedCrawl) compare(src *source, found []learner.Item, now time.Time) {
	for _, it := range found {
		if src.last().IsZero() || it.Published.Before(src.last()) {
			continue // it was there before the two began
		}
		c.sum.Items++
		c.client += now.Sub(it.Published)
		i := slices.IndexFunc(src.picks, func(at time.Time) bool { return !at.Before(it.Published) })
		if i < 0 {
			src.late = append(src.late, it.Published)
			continue
		}
		c.sum.Found++
		c.learner += src.picks[i].Sub(it.Published)
	}
	src.picks = src.picks[:0]
}

// Advance makes the URLs due that the learners ask for, and keeps what was learned
// now and then.
func (l *Learned) Advance(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follow(now)
	for crawl, c := range l.crawls {
		names := c.crawler.Select(now, c.crawler.Len())
		ids := make([]schedule.ID, len(names))
		for i, name := range names {
			ids[i] = idOf(crawl, name)
			if src := c.source(name); c.opt.Shadow {
				src.picks = append(src.picks, now)
				for _, published := range src.late {
					c.sum.Found++
					c.learner += now.Sub(published)
				}
				src.late = src.late[:0]
			}
		}
		c.sum.Asked += len(names)
		if !c.opt.Shadow {
			for _, i := range l.store.Hasten(ids, now.UnixMilli()/1000*1000) {
				c.crawler.Remove(names[i]) // it was deleted or completed
				delete(c.sources, names[i])
			}
		}
		if since := now.Sub(c.saved); since >= saveEvery || since < 0 { // the clock was set back
			l.save(crawl, c)
			c.saved = now
		}
	}
}

// Save keeps what the URLs of each crawl have in common.
func (l *Learned) Save() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for crawl, c := range l.crawls {
		l.save(crawl, c)
	}
}

// explain adds to the metadata of a URL what the learner thinks of it.
func (l *Learned) explain(id schedule.ID, info *pb.URLInfo) {
	c := l.crawls[id.Crawl]
	if c == nil {
		return
	}
	l.mu.Lock()
	name := sourceName(id)
	b, err := c.crawler.Belief(name)
	if err != nil {
		l.mu.Unlock()
		return // it is not learned
	}
	mistake := c.source(name).mistake
	l.mu.Unlock()
	if info.Metadata == nil {
		info.Metadata = map[string]*pb.StringList{}
	}
	info.Metadata[metaWhy] = &pb.StringList{Values: []string{
		fmt.Sprintf("items per hour %.3g", b.Items), "objective " + c.opt.Objective.String(),
		fmt.Sprintf("price %.3g", b.Price), "due " + b.Due.UTC().Format(time.RFC3339),
	}}
	if mistake != "" {
		why := info.Metadata[metaWhy]
		why.Values = append(why.Values, "the last fetch counts as failed: "+mistake)
	}
}

// Summaries returns what the crawls show, with so many of the URLs that publish most.
func (l *Learned) Summaries(most int) (all []Summary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for crawl, c := range l.crawls {
		s := c.sum
		s.Crawl, s.Shadow, s.PerHour, s.Sources = crawl, c.opt.Shadow, c.opt.PerHour, c.crawler.Len()
		if s.Items > 0 {
			s.ClientDelay = (c.client / time.Duration(s.Items)).Round(time.Second)
		}
		if s.Found > 0 {
			s.Delay = (c.learner / time.Duration(s.Found)).Round(time.Second)
		}
		for name := range c.sources {
			b, err := c.crawler.Belief(name)
			if err != nil {
				continue
			}
			s.Price = b.Price // the same of all
			if most == 0 {
				break
			}
			s.Beliefs = append(s.Beliefs, Belief{idOf(crawl, name).URL, b})
		}
		if most > 0 {
			slices.SortFunc(s.Beliefs, func(a, b Belief) int {
				return cmp.Or(cmp.Compare(b.Items, a.Items), cmp.Compare(a.URL, b.URL))
			})
			s.Beliefs = s.Beliefs[:min(most, len(s.Beliefs))]
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Summary) int { return cmp.Compare(a.Crawl, b.Crawl) })
	return all
}
