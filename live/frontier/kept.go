package frontier

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"ephemera/env"
	"ephemera/learner"
	"ephemera/live/clock"
	pb "ephemera/live/frontier/urlfrontier"
	"ephemera/live/schedule"
	"ephemera/live/store"
)

// What is learned is kept in two parts.
//
//  1. What the learner knows of a URL is in the URL's record, among its metadata, and is
//     written with it. So are the last items that it published, which any learner can begin
//     from.
//  2. What the URLs of a crawl have in common is a value of the store, which is written
//     every few minutes.

// kept is what the record of a learned URL has of it.
type kept struct {
	history
	State json.RawMessage `json:"state,omitempty"` // the learner's
}

// history is what fetches of a URL have found, whoever learns from it.
type history struct {
	Since     int64 `json:"since,omitempty"`      // from when on its items are known; ms
	Last      int64 `json:"last,omitempty"`       // last fetch whose finds the client put; ms, 0 before the first
	NotBefore int64 `json:"not_before,omitempty"` // when the client allows the next one; ms
	// The last ones: when each was published, Unix time, and its worth.
	Items [][2]float64 `json:"items,omitempty"`
	// Of a page the last fetches, Unix time; negative where it had changed since the one before.
	Checks    []int64 `json:"checks,omitempty"`
	Signature uint64  `json:"signature,omitempty"` // hash of the last one
	Ping      int64   `json:"ping,omitempty"`      // of which change the last one was, Unix time
}

// noWorth is what a worth of 0 is kept as: learners take it for 0. A 0 stands for 1 there, as earlier versions
// wrote it of items of which nothing else was said.
const noWorth = math.SmallestNonzeroFloat64

// mostKept is how many items, or fetches, of a URL are kept for another learner: enough to know
// how often it publishes within a quarter.
const mostKept = 20

// unseen returns the items that were not reported before. They are known by the times at which
// they were published: as many as were reported of one second are sent again, and those that
// are older than all that are kept.
func (h *history) unseen(items []learner.Item) (unseen []learner.Item) {
	reported := map[int64]int{}
	for _, it := range h.Items {
		reported[int64(it[0])]++
	}
	for _, it := range items {
		switch at := it.Published.Unix(); {
		case reported[at] > 0:
			reported[at]--
		case len(h.Items) == mostKept && at < int64(h.Items[0][0]):
		default:
			unseen = append(unseen, it)
		}
	}
	return unseen
}

// add takes up what a fetch has found.
func (h *history) add(at time.Time, items []learner.Item, changed bool) {
	if h.Last == 0 {
		h.Since = at.UnixMilli()
	}
	h.Last = at.UnixMilli()
	check := at.Unix()
	if changed {
		check = -check
	}
	if h.Checks = append(h.Checks, check); len(h.Checks) > mostKept {
		h.Checks = slices.Delete(h.Checks, 0, len(h.Checks)-mostKept)
	}
	for _, it := range items {
		worth := 1.
		if it.Worth != nil {
			worth = max(*it.Worth, noWorth)
		}
		h.Items = append(h.Items, [2]float64{float64(it.Published.Unix()), worth})
	}
	slices.SortStableFunc(h.Items, func(a, b [2]float64) int { return int(max(-1, min(1, a[0]-b[0]))) })
	if beyond := len(h.Items) - mostKept; beyond > 0 {
		h.Since = max(h.Since, int64(h.Items[beyond-1][0])*1000)
		h.Items = slices.Clone(h.Items[beyond:])
	}
}

// shift has the times of fetches go with a clock that was set by so much. The last fetch, and the change that a ping
// told of, were not later than now: the clock may have been set in a way that nobody saw, or before that was kept.
func (h *history) shift(now time.Time, by time.Duration) {
	if h.Last != 0 {
		h.Since, h.Last = h.Since+by.Milliseconds(), h.Last+by.Milliseconds()
	}
	for i, at := range h.Checks {
		if h.Checks[i] = at + int64(by.Seconds()); at < 0 {
			h.Checks[i] = at - int64(by.Seconds())
		}
	}
	h.Last, h.Ping = min(h.Last, now.UnixMilli()), min(h.Ping, now.Unix())
}

// last returns the time of the last fetch, zero before the first.
func (h *history) last() time.Time {
	if h.Last == 0 {
		return time.Time{}
	}
	return time.UnixMilli(h.Last)
}

// packed is a history in less space: numbers by how much each differs from the one before, in varints.
type packed string

func (h *history) pack() packed {
	b := make([]byte, 0, 256)
	for _, n := range []int64{h.Since, h.Last - h.Since, h.NotBefore, h.Ping, int64(h.Signature)} {
		b = binary.AppendVarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(h.Items)))
	var last int64
	for _, it := range h.Items {
		b = binary.AppendVarint(b, int64(it[0])-last)
		b = binary.AppendUvarint(b, bits.ReverseBytes64(math.Float64bits(it[1]))) // of few digits
		last = int64(it[0])
	}
	last = 0
	for _, check := range h.Checks {
		at := max(check, -check)
		b = binary.AppendVarint(b, at-last)
		if last = at; check < 0 {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return packed(b)
}

func (p packed) unpack() (h history) {
	if p == "" {
		return h
	}
	b := []byte(p)
	signed := func() int64 {
		n, size := binary.Varint(b)
		b = b[size:]
		return n
	}
	unsigned := func() uint64 {
		n, size := binary.Uvarint(b)
		b = b[size:]
		return n
	}
	h.Since = signed()
	h.Last = h.Since + signed()
	h.NotBefore, h.Ping, h.Signature = signed(), signed(), uint64(signed())
	var last int64
	for range unsigned() {
		last += signed()
		h.Items = append(h.Items, [2]float64{float64(last), math.Float64frombits(bits.ReverseBytes64(unsigned()))})
	}
	for last = 0; len(b) > 0; {
		last += signed()
		check := last
		if unsigned() > 0 {
			check = -check
		}
		h.Checks = append(h.Checks, check)
	}
	return h
}

// shift has the times of fetches go with a clock that was set.
func (c *learnedCrawl) shift(now time.Time, by time.Duration) {
	if !c.began.IsZero() {
		c.began = c.began.Add(by)
	}
	for name, p := range c.sources {
		h := p.unpack()
		h.shift(now, by)
		c.sources[name] = h.pack()
	}
}

// keep returns what the record of a learned URL is to have of it.
func (l *Learned) keep(c *learnedCrawl, name string) []byte {
	k := kept{history: c.sources[name].unpack()}
	var err error
	if k.State, err = c.crawler.SourceState(name); err != nil {
		l.log.Error("what was learned of a URL is not kept", "url", name, "error", err)
	}
	data, err := json.Marshal(k)
	if err != nil {
		panic("frontier: " + err.Error()) // its items are finite, and its state is JSON
	}
	return data
}

// stateOf returns what a record has of a learned URL, or nil if it is not of one.
func stateOf(r *store.Record) *pb.StringList {
	info := &pb.URLInfo{}
	if proto.Unmarshal(r.Data, info) != nil || r.Due == schedule.Completed {
		return nil
	}
	return info.Metadata[metaState]
}

// recalled returns a learned URL as it was kept, before the clock was set by so much, or false if the record is not
// of one.
func (c *learnedCrawl) recalled(r *store.Record, now time.Time, set time.Duration) (s learner.Recalled, ok bool) {
	s.Name = sourceName(r.ID)
	state := stateOf(r)
	if state == nil {
		return s, false
	}
	var k kept
	for _, text := range state.Values {
		if json.Unmarshal([]byte(text), &k) != nil {
			k = kept{} // nothing is known of it
		}
	}
	k.shift(now, set)
	s = learner.Recalled{
		Name: s.Name, Rules: c.rules(), State: k.State, Last: k.last(), Since: time.UnixMilli(k.Since),
	}
	for _, it := range k.Items {
		s.Items = append(s.Items, learner.Item{Published: time.Unix(int64(it[0]), 0), Worth: new(cmp.Or(it[1], 1))})
	}
	for _, at := range k.Checks {
		s.Checks = append(s.Checks, learner.Check{At: time.Unix(max(at, -at), 0), Changed: at < 0})
	}
	if k.NotBefore > 0 {
		s.NotBefore = time.UnixMilli(k.NotBefore)
	}
	c.sources[s.Name] = k.pack()
	return s, true
}

// open takes up what was kept of a crawl.
func (l *Learned) open(crawl string, c *learnedCrawl, now time.Time) error {
	value, err := l.store.Value(stateName(crawl))
	if err != nil {
		return err
	}
	step, err := l.stepSince(crawl)
	if err != nil {
		return err
	}
	if value != nil {
		if c.crawler, err = c.resume(value); err != nil {
			if err := l.setAside(crawl, value, err, now); err != nil {
				return err
			}
		} else {
			c.crawler.Shift(step)
		}
	}
	if c.crawler == nil {
		if err := l.begin(crawl, c, now, step); err != nil {
			return err
		}
	}
	var failed error
	anew, err := c.crawler.Recall(now, func(yield func(learner.Recalled) bool) {
		failed = l.store.URLs(crawl, "", func(r *store.Record) bool {
			s, ok := c.recalled(r, now, step)
			switch known := c.crawler.Has(s.Name); {
			case ok && !known:
				s.Asked = !c.opt.Shadow && l.store.Held(r.ID)
				return yield(s)
			case !ok && known:
				failed = l.adopt(c, r)
			}
			return failed == nil
		})
	})
	if anew > 0 {
		l.log.Warn("what was learned of URLs is of another version or length of epochs; "+
			"they begin anew with their last items",
			"crawl", crawl, "urls", anew)
	}
	if err == nil {
		err = failed
	}
	if err == nil {
		l.save(crawl, c)
	}
	return err
}

// stepSince returns by how much the clock was set since a crawl was saved, as far as that is
// known.
func (l *Learned) stepSince(crawl string) (time.Duration, error) {
	var read clock.Reading
	value, err := l.store.Value(clockName(crawl))
	if err == nil && value != nil {
		err = json.Unmarshal(value, &read)
	}
	_, now, step := clock.Follow(read, l.moment.Read)
	if step != 0 {
		l.log.Warn("the clock was set; the learned crawl goes on from there",
			"crawl", crawl, "now", now.UTC(), "by", step)
	}
	return step, err
}

// resume takes up what the URLs of a crawl have in common.
func (c *learnedCrawl) resume(value []byte) (*learner.Crawler, error) {
	saved, err := learner.Decode(value)
	if err != nil {
		return nil, err
	}
	if c.byReport && saved.Objective.Law != "" {
		c.opt.Objective = saved.Objective
	}
	if saved.Objective != c.opt.Objective {
		return nil, fmt.Errorf("objective was %q and is %v", saved.Objective, c.opt.Objective)
	}
	resumed, err := saved.Crawler()
	if err == nil {
		err = resumed.SetBudget(c.perHour() * saved.Length / 3600)
	}
	if err != nil {
		return nil, err
	}
	if least := 3600 / saved.Length; c.perHour() < least*(1-1e-9) {
		return nil, fmt.Errorf("an epoch of %v s has less than one fetch of %v an hour", saved.Length, c.perHour())
	}
	c.carry(resumed)
	return resumed, nil
}

// setAside keeps a state that cannot be taken up under another name.
func (l *Learned) setAside(crawl string, value []byte, why error, now time.Time) error {
	name := stateName(crawl) + " until " + now.UTC().Format(time.RFC3339)
	l.log.Warn("what was learned is kept under another name, and the crawl begins anew with the last items of each URL",
		"crawl", crawl, "name", name, "why", why)
	return l.store.SetValue(name, value)
}

// begin begins the learner of a crawl, at the first fetch that is known of. Unless the objective is
// set it is freshness if of most URLs signatures were put.
func (l *Learned) begin(crawl string, c *learnedCrawl, now time.Time, set time.Duration) error {
	start, pages, all := now, 0, 0
	err := l.store.URLs(crawl, "", func(r *store.Record) bool {
		if s, ok := c.recalled(r, now, set); ok && !s.Last.IsZero() {
			if s.Last.Before(start) {
				start = s.Last
			}
			if all++; c.sources[s.Name].unpack().Signature != 0 {
				pages++
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	if c.byReport && 2*pages > all {
		c.opt.Objective = env.Objective{Law: env.LawFreshness}
	}
	return c.create(start)
}

// create creates the learner of a crawl. Some fetches fit into an epoch, which is a minute at
// least and not more than an hour if one fits into that.
func (c *learnedCrawl) create(start time.Time) (err error) {
	perHour := c.opt.PerHour / float64(c.opt.nodes())
	hours := max(min(4/perHour, max(1, 1/perHour)), 1./60)
	if least := 1 / hours; c.share.PerHour < least {
		c.share.PerHour = least // there is less than one fetch in a minute: they are too many nodes
	}
	c.crawler, err = learner.NewCrawler(start.Truncate(time.Second), learner.CrawlerOptions{
		Epoch: time.Duration(hours * float64(time.Hour)), Budget: c.perHour() * hours, Objective: c.opt.Objective,
	})
	if err == nil {
		c.carry(c.crawler)
	}
	return err
}

// carry has shares that are no whole numbers of fetches an epoch be spent.
func (c *learnedCrawl) carry(crawler *learner.Crawler) {
	if c.opt.nodes() > 1 {
		crawler.Carry()
	}
}

// adopt has a URL keep what the learner knows of it that an earlier version kept of all
// URLs in one.
func (l *Learned) adopt(c *learnedCrawl, r *store.Record) error {
	name := sourceName(r.ID)
	b, err := c.crawler.Belief(name)
	if err != nil {
		return err
	}
	var h history
	if !b.Last.IsZero() {
		h.add(b.Last, nil, false)
	}
	c.sources[name] = h.pack()
	info, err := infoOf(r)
	if err == nil {
		_, err = l.store.SetData(r.ID, metadata(info, r.Due, l.keep(c, name)))
	}
	return err
}

// save keeps what the URLs of a crawl have in common. After an error what was kept before
// stays.
func (l *Learned) save(crawl string, c *learnedCrawl) error {
	values, err := l.state(crawl, c)
	if err == nil {
		err = l.store.Set(values...)
	}
	if err != nil {
		l.log.Error("what was learned is not kept; what was kept before stays", "crawl", crawl, "error", err)
	}
	return err
}

// state returns what is kept of all URLs of a crawl in common.
func (l *Learned) state(crawl string, c *learnedCrawl) ([]store.Value, error) {
	var state bytes.Buffer
	if err := c.crawler.SavePooled(&state); err != nil {
		return nil, err
	}
	read, err := json.Marshal(l.moment.Read)
	return []store.Value{{Name: stateName(crawl), Data: state.Bytes()}, {Name: clockName(crawl), Data: read}}, err
}
