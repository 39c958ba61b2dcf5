package learner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"ephemera/env"
)

// A program that keeps a record of each source can keep there what the crawler knows of
// it, and the rest, which is small, now and then. What was reported of a source is then kept
// as soon as its record is, and what is shared by all may be older.
//
//  1. [Crawler.SavePooled] writes what all sources have in common.
//  2. [Crawler.SourceState] returns what is known of one source, with its crawls of this
//     epoch, which the learner has not taken up yet.
//  3. [Crawler.Recall] takes the sources up again, and [Crawler.AddAgain] one that was
//     removed while others went on.

// SavePooled writes a state file without sources.
func (c *Crawler) SavePooled(w io.Writer) error {
	parts, ok := c.learner.(bySource)
	if !ok {
		return fmt.Errorf("the learner %q does not keep its sources apart", c.opt.Learner)
	}
	s, err := c.header(parts.Pooled())
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(s)
}

// sourceState is what is known of one source, as data.
type sourceState struct {
	Of        string          `json:"of"` // the crawler whose epochs and learner these are
	Added     int             `json:"added"`
	Tries     int             `json:"tries,omitempty"`
	Feedback  int             `json:"told,omitempty"` // epoch at which NotBefore was set; 0 in older versions
	Last      int             `json:"last"`           // epoch, before that of Crawled
	NotBefore int             `json:"not_before"`     // epoch
	Learned   json.RawMessage `json:"learned"`        // before Crawled
	Epoch     int             `json:"epoch"`          // of Crawled
	Crawled   *env.Crawled    `json:"crawled,omitempty"`
	Pings     int             `json:"pings,omitempty"` // after Crawled
}

// kin names the learner whose states of sources can be taken up.
func (c *Crawler) kin() string {
	return fmt.Sprintf("%s %d, %v", c.kind.Name, c.kind.version(env.LevelOnline), c.opt.Objective)
}

// life names what a state of a source goes with.
func (c *Crawler) life() string {
	if c.lived == "" {
		c.lived = fmt.Sprintf("%s, epochs of %v from %d", c.kin(), c.opt.Epoch, c.origin)
	}
	return c.lived
}

// epochsOf returns the length of the epochs that a state of a source counts, and the Unix time of
// the first one.
func (c *Crawler) epochsOf(life string) (length time.Duration, origin int64, err error) {
	text, same := strings.CutPrefix(life, c.kin()+", epochs of ")
	var duration string
	if same {
		if _, err = fmt.Sscanf(text, "%s from %d", &duration, &origin); err == nil {
			length, err = time.ParseDuration(duration)
		}
	}
	if !same || err != nil || length <= 0 {
		return 0, 0, fmt.Errorf("it is a state of %s", life)
	}
	return length, origin, nil
}

// rebase has a state that another crawler kept count the epochs of this one. What is past stays
// so: times are cut to whole epochs.
func (c *Crawler) rebase(s *sourceState, length time.Duration, origin int64) {
	k, now := length.Seconds()/c.opt.Epoch.Seconds(), max(c.view.Epoch, c.epochOf(c.now))
	at := func(epoch int) float64 {
		return float64(epoch)*k + float64(origin-c.start.Unix())/c.opt.Epoch.Seconds()
	}
	past := func(epoch int) int { return int(max(0, min(at(epoch), float64(now)))) }
	s.Added, s.Epoch = past(s.Added), past(s.Epoch)
	if s.Last >= 0 {
		s.Last = past(s.Last)
	}
	if s.Feedback > 0 {
		s.Feedback = past(s.Feedback)
	}
	s.NotBefore = int(max(0, min(math.Ceil(at(s.NotBefore)), lastEpoch)))
	if s.Crawled != nil && s.Crawled.Age > 0 {
		s.Crawled.Age = int(max(1, min(math.Round(float64(s.Crawled.Age)*k), lastEpoch)))
	}
}

// SourceState returns what is known of a source, as JSON.
func (c *Crawler) SourceState(name string) ([]byte, error) {
	i, err := c.find(name)
	if err != nil {
		return nil, err
	}
	parts, ok := c.learner.(bySource)
	if !ok {
		return nil, fmt.Errorf("the learner %q does not keep its sources apart", c.opt.Learner)
	}
	p := &c.src[i]
	s := sourceState{
		Of: c.life(), Added: p.Added, Tries: p.Tries, Feedback: p.Feedback,
		Last: c.view.Last[i], NotBefore: c.limits.NotBefore[i], Epoch: c.view.Epoch,
	}
	if k := p.Done - 1; k >= 0 {
		s.Crawled, s.Pings = &c.done[k], p.Pings
	}
	if s.Learned, err = json.Marshal(parts.Source(i)); err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// Recalled is a source as a program has kept it.
type Recalled struct {
	Name  string
	Rules Source
	State []byte // what SourceState returned
	Asked bool   // Select returned it, and its crawl is still under way

	// What is taken up where State is that of another learner, or none, or of epochs of another
	// length under an objective other than freshness: what the program itself knows of the source.
	Since, Last time.Time // its first crawl, or since when all items are known, and its last crawl; zero for none
	Items       []Item    // that were published from Since on, as far as they are known
	Checks      []Check   // of a page, under freshness: its last crawls, in the order of time
	NotBefore   time.Time // when it may be crawled again
}

// Check is a crawl of a page, and whether it had changed since the crawl before.
type Check struct {
	At      time.Time
	Changed bool
}

// Recall adds sources as a program has kept them, before the first Select, and goes on now.
// States may be those of another crawler with the same version of the learner. It returns how many
// sources it had to begin anew, from what the program itself knows.
func (c *Crawler) Recall(now time.Time, sources iter.Seq[Recalled]) (anew int, err error) {
	parts, ok := c.learner.(bySource)
	if !ok {
		return 0, fmt.Errorf("the learner %q does not keep its sources apart", c.opt.Learner)
	}
	pending := map[int][]env.Crawled{} // crawls that the learner does not know, by epoch
	c.forward(now)
	epoch := max(c.view.Epoch, c.epochOf(c.now))
	if len(c.done) > 0 {
		pending[c.view.Epoch] = c.done
	}
	var asked []int
	var checked []env.Crawled // of pages whose states are of no use, before now
	for r := range sources {
		if err := c.Add(r.Name, r.Rules); err != nil {
			return anew, err
		}
		i := c.place[r.Name]
		crawled, at, err := c.restoreSource(i, parts.Source(i), r.State)
		switch {
		case err == nil:
		case c.pages():
			anew++
			checked = append(checked, c.rememberChecks(i, &r)...)
		default:
			anew++
			crawled, at = c.remember(i, &r)
		}
		if crawled != nil {
			crawled.Source = i
			pending[at] = append(pending[at], *crawled)
		}
		epoch = max(epoch, at) // the clock may have been ahead
		if r.Asked {
			asked = append(asked, i)
		}
	}
	if len(checked) > 0 {
		c.open.Update(checked, &c.view)
	}
	if err := c.catchUp(parts, pending, epoch); err != nil {
		return anew, err
	}
	c.goOn(asked)
	return anew, nil
}

// AddAgain adds a source that was removed, with what SourceState returned before. What its next
// crawl finds has gathered since the last one before it was removed; of one in the very epoch in
// which it was, only the time counts. If the clock was set back meanwhile, it goes back as the others
// did. With a state of another learner, or of epochs of another length under an objective other than
// freshness, it is a new source, and that is reported.
func (c *Crawler) AddAgain(name string, s Source, state []byte) (anew bool, err error) {
	if err := c.Add(name, s); err != nil {
		return false, err
	}
	parts, ok := c.learner.(bySource)
	if !ok {
		return true, nil
	}
	i := c.place[name]
	crawled, at, err := c.restoreSource(i, parts.Source(i), state)
	if err != nil {
		return true, nil
	}
	if crawled != nil {
		c.view.Last[i], c.src[i].Pings = at, 0
	}
	if now := max(0, c.view.Epoch); at > now {
		c.goBackAt(i, at, now)
	}
	c.resume(i)
	return false, nil
}

// restoreSource takes up the state of source i, of which the learner keeps what known
// points to. It returns the crawls that the learner has not taken up, and their epoch.
func (c *Crawler) restoreSource(i int, known any, state []byte) (*env.Crawled, int, error) {
	var s sourceState
	if err := c.lines.decode(state, &s); err != nil {
		return nil, 0, err
	}
	length, origin, life := c.opt.Epoch, c.origin, c.life()
	var err error
	if s.Of != life {
		length, origin, err = c.epochsOf(s.Of)
	}
	switch {
	case err != nil:
		return nil, 0, err
	case length != c.opt.Epoch && !c.pages():
		return nil, 0, fmt.Errorf("it is of epochs of %v", length)
	case s.Last < -1 || s.Added < 0 || s.Epoch < max(s.Last, 0) || s.Epoch > lastEpoch ||
		max(s.NotBefore, s.Feedback) > lastEpoch || s.Feedback < 0:
		return nil, 0, fmt.Errorf("it was crawled at epoch %d, of %d", s.Last, s.Epoch)
	case s.Crawled != nil:
		if err := c.checkCrawled(s.Crawled); err != nil {
			return nil, 0, err
		}
	}
	if err := c.lines.decode(s.Learned, known); err != nil {
		c.openPlace(i)
		return nil, 0, err
	}
	if s.Of != life {
		c.rebase(&s, length, origin)
	}
	c.learner.(bySource).Restored(i, length.Seconds()/c.opt.Epoch.Seconds())
	p := &c.src[i]
	p.Feedback = cmp.Or(s.Feedback, s.Epoch)
	p.Added, p.Tries, p.Pings = s.Added, s.Tries, s.Pings
	c.view.Last[i], c.limits.NotBefore[i] = s.Last, s.NotBefore
	return s.Crawled, s.Epoch, nil
}

// strictly reads values in JSON that have no unknown names. Many of them share its space.
type strictly struct {
	in bytes.Reader
	d  *json.Decoder
}

func (s *strictly) decode(data []byte, v any) error {
	if s.d == nil {
		s.d = json.NewDecoder(&s.in)
		s.d.DisallowUnknownFields()
	}
	s.in.Reset(data)
	err := s.d.Decode(v)
	if err != nil || s.d.More() {
		s.d = nil // it has some of it left
	}
	return err
}

// rememberChecks returns what the program itself knows of page i, as crawls.
func (c *Crawler) rememberChecks(i int, r *Recalled) (crawls []env.Crawled) {
	if !r.NotBefore.IsZero() {
		c.limits.NotBefore[i] = c.epochFrom(r.NotBefore)
	}
	last, changed := time.Time{}, false
	for _, check := range r.Checks {
		age := 0
		if !last.IsZero() {
			age = int(min(check.At.Sub(last)/c.opt.Epoch, lastEpoch))
			if changed = changed || check.Changed; age < 1 {
				continue // in one epoch, or not in the order of time
			}
		}
		crawls = append(crawls, env.Crawled{Source: i, Age: age, Changed: changed})
		last, changed = check.At, false
	}
	if len(crawls) > 0 {
		c.view.Last[i] = int(max(0, min(last.Sub(c.start)/c.opt.Epoch, lastEpoch)))
	}
	return crawls
}

// remember returns what the program itself knows of source i, as one crawl and its epoch.
func (c *Crawler) remember(i int, r *Recalled) (*env.Crawled, int) {
	if !r.NotBefore.IsZero() {
		c.limits.NotBefore[i] = c.epochFrom(r.NotBefore)
	}
	if r.Last.IsZero() {
		return nil, 0
	}
	crawled := &env.Crawled{Age: int(max(1, min(r.Last.Sub(r.Since)/c.opt.Epoch, lastEpoch)))}
	c.found(crawled, r.Items, r.Last)
	return crawled, int(max(0, min(r.Last.Sub(c.start)/c.opt.Epoch, lastEpoch)))
}

// catchUp has the learner take up the crawls before an epoch that it does not know. What
// is pooled knows those of the epochs before its own: these are taken up for their sources
// alone.
func (c *Crawler) catchUp(parts bySource, pending map[int][]env.Crawled, epoch int) error {
	own := max(0, c.view.Epoch)
	pooled, err := json.Marshal(parts.Pooled())
	if err != nil {
		return err
	}
	learn := func(from, to int) {
		for _, at := range slices.Sorted(maps.Keys(pending)) {
			if at >= from && at < to {
				c.view.Epoch, c.done = at, pending[at]
				c.learn()
			}
		}
	}
	learn(0, own)
	if err := c.learner.SetState(pooled); err != nil {
		return err
	}
	learn(own, epoch)
	c.view.Epoch, c.done = epoch, pending[epoch]
	for k, d := range c.done {
		c.src[d.Source].Done = k + 1
	}
	return nil
}

// goOn takes up the epoch: with a plan of what its budget leaves beyond the crawls that
// are done, and those of the sources that were asked for.
func (c *Crawler) goOn(asked []int) {
	if at := c.at(c.view.Epoch); at.After(c.now) {
		c.now = at
	}
	c.overdue.Due(nil, c.view.Epoch)
	for i := range c.src {
		c.resume(i)
	}
	var spent float64
	for _, i := range asked {
		spent += c.src[i].Rules.Cost
		c.hand(i)
	}
	for _, d := range c.done {
		spent += c.src[d.Source].Rules.Cost
	}
	c.pick()
	c.plan = slices.DeleteFunc(c.plan, func(i int) bool {
		spent += c.src[i].Rules.Cost
		return !env.Fits(spent, c.limits.Budget)
	})
}

// resume has the longest interval of source i go on that began with its last crawl.
func (c *Crawler) resume(i int) {
	p := &c.src[i]
	if p.Name == "" || p.Rules.Longest == 0 {
		return
	}
	last := max(c.view.Last[i], p.Added)
	if p.Done > 0 {
		last = c.view.Epoch
	}
	ends := min(last+int(p.Rules.Longest/c.opt.Epoch), lastEpoch)
	p.Due = max(ends, c.view.Epoch+1, c.limits.NotBefore[i])
	c.overdue.Add(i, p.Due)
}
