package frontier

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ephemera/learner"
	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// Metadata by which a client tells what a fetch found. A known URL of a learned
// crawl that has one of the first three is fetched again when the learner says.
const (
	metaItems = "ephemera.items" // when the items were published that are new since the last fetch, RFC 3339 or Unix seconds
	metaWorth = "ephemera.worth" // what each of them is worth; 1 without
	metaNew   = "ephemera.new"   // how many are new, where their times are not known
	metaWhy   = "ephemera.why"   // the answer of GetURLStatus says what the learner thinks
)

// LearnOptions say how the URLs of a crawl are fetched again.
type LearnOptions struct {
	PerHour  float64  `toml:"per_hour"` // fetches
	Shadow   bool     `toml:"shadow"`   // nothing is changed: what the learner would do is compared with what the client does
	Shortest Duration `toml:"shortest"`
	Longest  Duration `toml:"longest"`   // as far as the budget goes; 0 leaves it open
	HalfLife Duration `toml:"half_life"` // in which an item loses half of its interest; 0 stands for 4 hours
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
	// saveEvery is how much of what was learned a kill may lose.
	saveEvery = 5 * time.Minute
	// anyway is after which time a URL is fetched again if the learner never says so
	// and no longest interval is set.
	anyway = 30 * 24 * time.Hour
	// mostNew is how many items of a fetch are taken up where only their number is told.
	mostNew = 1000
)

// Learned sets when known URLs are fetched again.
type Learned struct {
	store  *store.Store
	log    *slog.Logger
	mu     sync.Mutex
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

// source is what is kept of a learned URL beside what the learner knows.
type source struct {
	last  time.Time   // fetch that was told
	picks []time.Time // since then, in the shadow: when the learner would have fetched
	late  []time.Time // in the shadow: items that it would have found only after that
}

// Summary is what a learned crawl shows.
type Summary struct {
	Crawl   string
	Shadow  bool
	PerHour float64
	Price   float64
	Sources int
	Asked   int // fetches that the learner asked for
	Fetched int // fetches that were told
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

// NewLearned returns the learners of crawls, which go on from what the store kept.
func NewLearned(s *store.Store, log *slog.Logger, crawls map[string]LearnOptions, now time.Time) (*Learned, error) {
	l := &Learned{store: s, log: log, crawls: map[string]*learnedCrawl{}}
	for name, opt := range crawls {
		opt.HalfLife = cmp.Or(opt.HalfLife, Duration(4*time.Hour))
		c := &learnedCrawl{opt: opt, sources: map[string]*source{}, saved: now}
		kept, err := s.Value(stateName(name))
		if err != nil {
			return nil, err
		}
		if kept != nil {
			saved, err := learner.Decode(kept)
			if err == nil {
				c.crawler, err = saved.Crawler()
			}
			if err == nil {
				err = c.crawler.SetBudget(opt.PerHour * saved.Length / 3600)
			}
			if err != nil {
				return nil, fmt.Errorf("what was learned of crawl %q: %w", name, err)
			}
		} else {
			// Some fetches fit into an epoch, which is a minute at least and not
			// more than an hour if one fits into that.
			hours := max(min(4/opt.PerHour, max(1, 1/opt.PerHour)), 1./60)
			c.crawler, err = learner.NewCrawler(now, learner.CrawlerOptions{
				Epoch: time.Duration(hours * float64(time.Hour)), Budget: opt.PerHour * hours, HalfLife: time.Duration(opt.HalfLife),
			})
			if err != nil {
				return nil, fmt.Errorf("crawl %q: %w", name, err)
			}
		}
		l.crawls[name] = c
	}
	return l, nil
}

func stateName(crawl string) string { return "learned " + crawl }

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
		b, _ := c.crawler.Belief(name) // from before the start, if any
		s = &source{last: b.Last}
		c.sources[name] = s
	}
	return s
}

// items reads what a fetch found since the last one.
func items(info *pb.URLInfo, last, now time.Time) ([]learner.Item, error) {
	var found []learner.Item
	worth := info.Metadata[metaWorth].GetValues()
	for i, text := range info.Metadata[metaItems].GetValues() {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s is %q; allowed is a time as 2026-11-22T10:00:00Z or in Unix seconds", metaItems, text)
			}
			at = time.Unix(n, 0)
		}
		item := learner.Item{Published: at}
		if i < len(worth) {
			if item.Worth, err = strconv.ParseFloat(worth[i], 64); err != nil || item.Worth < 0 {
				return nil, fmt.Errorf("%s is %q; allowed is a number, 0 or more", metaWorth, worth[i])
			}
		}
		found = append(found, item)
	}
	if v := info.Metadata[metaNew].GetValues(); len(v) > 0 && len(found) == 0 {
		n, err := strconv.Atoi(v[0])
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%s is %q; allowed is a number, 0 or more", metaNew, v[0])
		}
		if last.IsZero() {
			return nil, nil // over which time they were published is not known
		}
		n = min(n, mostNew)
		for i := range n { // evenly since the last fetch
			found = append(found, learner.Item{Published: last.Add(now.Sub(last) * time.Duration(2*i+1) / time.Duration(2*n))})
		}
	}
	return found, nil
}

// put takes up what a fetch found, and returns when the URL is due in the schedule.
// It takes the items out of the metadata, as they are those of this fetch.
func (l *Learned) put(ms int64, id schedule.ID, item *pb.KnownURLItem, due int64) int64 {
	c, info := l.crawls[id.Crawl], item.GetInfo()
	told := slices.ContainsFunc([]string{metaItems, metaWorth, metaNew}, func(key string) bool {
		_, ok := info.GetMetadata()[key]
		return ok
	})
	if c == nil || !told {
		return due
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now, name := time.UnixMilli(ms), sourceName(id)
	src := c.source(name)
	found, err := items(info, src.last, now)
	for _, key := range []string{metaItems, metaWorth, metaNew, metaWhy} {
		delete(info.Metadata, key)
	}
	crawl := learner.Crawl{Source: name, At: now, Outcome: learner.Unchanged, Items: found}
	if len(found) > 0 {
		crawl.Outcome = learner.Found
	}
	if due > ms && !c.opt.Shadow {
		crawl.NotBefore = time.UnixMilli(due)
	}
	if _, unknown := c.crawler.Belief(name); err == nil && unknown != nil {
		err = c.crawler.Add(name, learner.Source{Shortest: time.Duration(c.opt.Shortest), Longest: time.Duration(c.opt.Longest)})
	}
	if err == nil {
		err = c.crawler.Update(crawl)
	}
	if err != nil {
		l.log.Warn("a fetch is not learned from", "crawl", id.Crawl, "url", id.URL, "error", err)
		return due
	}
	c.sum.Fetched++
	if len(found) == 0 {
		c.sum.Empty++
	}
	if c.opt.Shadow {
		c.compare(src, found, now)
	}
	src.last = now
	if c.opt.Shadow {
		return due
	}
	return max(due, ms+cmp.Or(time.Duration(c.opt.Longest), anyway).Milliseconds())
}

// compare counts when client and learner find the items.
func (c *learnedCrawl) compare(src *source, found []learner.Item, now time.Time) {
	for _, it := range found {
		if src.last.IsZero() || it.Published.Before(src.last) {
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
		if now.Sub(c.saved) >= saveEvery {
			l.save(crawl, c)
			c.saved = now
		}
	}
}

func (l *Learned) save(crawl string, c *learnedCrawl) {
	var state bytes.Buffer
	err := c.crawler.Save(&state)
	if err == nil {
		err = l.store.SetValue(stateName(crawl), state.Bytes())
	}
	if err != nil {
		l.log.Error("what was learned is not kept", "crawl", crawl, "error", err)
	}
}

// Save keeps what was learned.
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
	b, err := c.crawler.Belief(sourceName(id))
	l.mu.Unlock()
	if err != nil {
		return // it is not learned
	}
	if info.Metadata == nil {
		info.Metadata = map[string]*pb.StringList{}
	}
	info.Metadata[metaWhy] = &pb.StringList{Values: []string{
		fmt.Sprintf("items per hour %.3g", b.Items), fmt.Sprint("half-life ", b.HalfLife.Round(time.Second)),
		fmt.Sprintf("price %.3g", b.Price), "due " + b.Due.UTC().Format(time.RFC3339),
	}}
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
			b.HalfLife = b.HalfLife.Round(time.Second)
			s.Beliefs = append(s.Beliefs, Belief{idOf(crawl, name).URL, b})
		}
		if most > 0 {
			slices.SortFunc(s.Beliefs, func(a, b Belief) int { return cmp.Or(cmp.Compare(b.Items, a.Items), cmp.Compare(a.URL, b.URL)) })
			s.Beliefs = s.Beliefs[:min(most, len(s.Beliefs))]
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Summary) int { return cmp.Compare(a.Crawl, b.Crawl) })
	return all
}
