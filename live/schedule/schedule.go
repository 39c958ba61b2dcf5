// Package schedule decides which URLs may be fetched now. It is a state machine
// without clock or files; live/store keeps its state on disk.
//
//  1. A URL belongs to a queue, commonly the host, and a queue to a crawl. A URL
//     is scheduled, with a due time, or completed.
//  2. [Schedule.Take] hands out URLs that are due, by due time and then by name,
//     from queues in turn. What was handed out is held: it is not handed out again
//     before it is put back or its hold ends.
//  3. A queue is passed over while it is blocked, for its delay after the last
//     hand-out, while as many of its URLs are held as the caller allows, and once
//     as many are completed as its limit says.
//  4. Queues wait in a heap by the time at which they may be served next, and then
//     in one by turn, for each number of held URLs. Each call costs the logarithm
//     of the number of queues and URLs for each URL that it moves.
//
// Times and durations are milliseconds, times since 1970. A time that lies before
// that of an earlier call by a minute or less counts as the later one. By more, the
// clock was set back, and what happened later than now happened just now
// ([Schedule.Advance]).
package schedule

import (
	"cmp"
	"container/heap"
	"maps"
	"math"
	"slices"
)

// Completed is the due time of a URL that is not to be fetched again.
const Completed = 0

// never is when a queue wakes that has nothing to hand out.
const never = math.MaxInt64

// ID names a URL.
type ID struct{ Crawl, Key, URL string }

// Limits are what a queue is held to, and when it was served. They are all that
// is to be kept of a queue in addition to its URLs.
type Limits struct {
	Delay   int64  // between two hand-outs; −1 stands for the schedule's default
	Blocked int64  // no hand-out before this time
	Last    int64  // time of the last hand-out; 0 before
	Most    uint32 // completed URLs after which nothing is handed out; 0 is no limit
}

// URL is a URL of a queue.
type URL struct {
	Name    string
	Due     int64  // or Completed
	created uint32 // seconds
	at      int32  // place among the due ones; or held or completed
}

// Created is when the URL became known.
func (u *URL) Created() int64 { return int64(u.created) * 1000 }

// Places of URLs that are not in the heap of their queue.
const (
	completed = -1
	held      = -2
)

// Queue is the URLs of one key of a crawl.
type Queue struct {
	Limits
	Key   string
	crawl *crawl

	urls      map[string]*URL
	due       indexed[*URL] // the scheduled ones that are not held
	held      int32
	completed int32

	turn uint64
	wake int64               // when it may be served next
	in   [2]*indexed[*Queue] // heaps that it is in: of its crawl, of all
	at   [2]int32            // places there
}

// Crawl returns the name of the queue's crawl.
func (q *Queue) Crawl() string { return q.crawl.name }

// crawl is the queues of one name.
type crawl struct {
	name   string
	queues map[string]*Queue
	line   line
	Counts
}

// line is queues waiting for their time and, by how many of their URLs are held,
// those that are ready.
type line struct {
	waiting indexed[*Queue]
	ready   map[int32]*indexed[*Queue]
}

// newLine returns the line of a crawl, which is number 0 of a queue's, or of all, 1.
func newLine(k int) line {
	return line{waiting: indexed[*Queue]{order: &byWake[k]}, ready: map[int32]*indexed[*Queue]{}}
}

// hold is a URL that was handed out.
type hold struct {
	queue *Queue
	url   *URL
	until int64
	at    int
}

// Counts are totals of a queue or a crawl.
type Counts struct {
	Queues    int
	Active    int // queues with a scheduled URL
	Scheduled int // URLs, held ones included
	Held      int
	Completed int
}

// Schedule is the state of all crawls. It is not safe for concurrent use.
type Schedule struct {
	now    int64
	newest int64 // when the last URL became known
	delay  int64 // of queues without one of their own
	crawls map[string]*crawl
	all    line
	holds  indexed[*hold]
	holdOf map[*URL]*hold
	turns  uint64
	urls   int // of all queues
}

var (
	byDue = order[*URL]{
		func(a, b *URL) bool { return a.Due < b.Due || a.Due == b.Due && a.Name < b.Name },
		func(u *URL, to int) { u.at = int32(to) },
	}
	byEnd = order[*hold]{
		func(a, b *hold) bool { return a.until < b.until },
		func(h *hold, to int) { h.at = to },
	}
	byWake, byTurn [2]order[*Queue] // for a crawl, for all
)

func init() {
	for k := range byWake {
		moved := func(q *Queue, to int) { q.at[k] = int32(to) }
		byWake[k] = order[*Queue]{func(a, b *Queue) bool { return a.wake < b.wake }, moved}
		byTurn[k] = order[*Queue]{func(a, b *Queue) bool { return a.turn < b.turn }, moved}
	}
}

// New returns an empty schedule whose queues have that delay unless they have one
// of their own.
func New(delay int64) *Schedule {
	return &Schedule{
		delay: delay, crawls: map[string]*crawl{}, holdOf: map[*URL]*hold{}, all: newLine(1),
		holds: indexed[*hold]{order: &byEnd},
	}
}

// behind is by how much a time lies before the latest one when the clock was set back.
const behind = 60_000

// Advance brings the schedule to a time: holds end, and queues become ready. It returns
// the URLs whose holds ended, and whether the clock was set back, so that the ends of
// holds and the limits of queues are others now.
//
// Then each hold lasts for as long as was left of it, and queues that were served later
// than now, and URLs that were discovered later, were so just now. It looks at each.
// When a URL is due stays as it was said.
func (s *Schedule) Advance(now int64) (ended []Taken, back bool) {
	if back = max(s.now, s.newest)-now > behind; back {
		ended = s.end(ended)
		s.setBack(now)
	}
	s.now = max(s.now, now)
	ended = s.end(ended)
	for s.all.waiting.Len() > 0 && s.all.waiting.items[0].wake <= s.now {
		s.place(s.all.waiting.items[0])
	}
	return ended, back
}

// Shift says that the clock was set forward by so much, or back, and no time has passed: each
// hold and each delay lasts for as long as was left of it. It looks at each. When a URL is due
// stays as it was said.
func (s *Schedule) Shift(by int64) {
	s.now += by
	for _, h := range s.holds.items {
		h.until += by // all of them, so that they stay in order
	}
	for _, c := range s.crawls {
		for _, q := range c.queues {
			if q.Last > 0 {
				q.Last = max(1, q.Last+by)
			}
			s.place(q)
		}
	}
}

// end releases the URLs whose holds have ended.
func (s *Schedule) end(ended []Taken) []Taken {
	for s.holds.Len() > 0 && s.holds.items[0].until <= s.now {
		h := s.holds.items[0]
		s.release(h)
		heap.Push(&h.queue.due, h.url)
		s.place(h.queue)
		ended = append(ended, Taken{h.queue, h.url})
	}
	return ended
}

// setBack goes back to a time.
func (s *Schedule) setBack(now int64) {
	back := max(0, s.now-now)
	for _, h := range s.holds.items {
		h.until -= back // all of them, so that they stay in order
	}
	s.now, s.newest = now, now
	for _, c := range s.crawls {
		for _, q := range c.queues {
			if q.Last > now {
				q.Last = max(1, q.Last-back)
			}
			for _, u := range q.urls {
				if created := u.Created(); created > now {
					u.created = uint32(now / 1000)
					if u.Due == created { // nobody has fetched it yet
						u.Due = u.Created()
					}
				}
			}
			heap.Init(&q.due)
			s.place(q)
		}
	}
}

// release ends a hold.
func (s *Schedule) release(h *hold) {
	heap.Remove(&s.holds, h.at)
	delete(s.holdOf, h.url)
	h.queue.held--
	h.queue.crawl.Held--
}

// place puts a queue where its state says: among the ready, the waiting, or
// neither.
func (s *Schedule) place(q *Queue) {
	s.displace(q)
	q.wake = s.opens(q)
	if q.wake == never {
		return
	}
	for k, l := range [2]*line{&q.crawl.line, &s.all} {
		h := &l.waiting
		if q.wake <= s.now {
			if h = l.ready[q.held]; h == nil {
				h = &indexed[*Queue]{order: &byTurn[k]}
				l.ready[q.held] = h
			}
		}
		heap.Push(h, q)
		q.in[k] = h
	}
}

// displace takes a queue out of its heaps.
func (s *Schedule) displace(q *Queue) {
	for k, h := range q.in {
		if h != nil {
			heap.Remove(h, int(q.at[k]))
			q.in[k] = nil
		}
	}
}

// opens returns when a queue may be served next, but for the number held.
func (s *Schedule) opens(q *Queue) int64 {
	if q.due.Len() == 0 || q.Most > 0 && q.completed >= int32(min(q.Most, math.MaxInt32)) {
		return never
	}
	at := max(q.due.items[0].Due, q.Blocked)
	if q.Last > 0 {
		delay := q.Delay
		if delay < 0 {
			delay = s.delay
		}
		at = max(at, q.Last+delay)
	}
	return at
}

// Lookup returns a queue, or nil.
func (s *Schedule) Lookup(crawl, key string) *Queue {
	if c := s.crawls[crawl]; c != nil {
		return c.queues[key]
	}
	return nil
}

// Ensure returns a queue and creates it where it is missing, with limits that
// were kept or with none.
func (s *Schedule) Ensure(crawlName, key string, kept *Limits) (q *Queue, created bool) {
	c := s.crawls[crawlName]
	if c == nil {
		c = &crawl{name: crawlName, queues: map[string]*Queue{}, line: newLine(0)}
		s.crawls[crawlName] = c
	}
	if q := c.queues[key]; q != nil {
		return q, false
	}
	q = &Queue{
		Limits: Limits{Delay: -1}, Key: key, crawl: c,
		urls: map[string]*URL{}, due: indexed[*URL]{order: &byDue},
	}
	if kept != nil {
		q.Limits = *kept
	}
	s.turns++
	q.turn = s.turns
	c.queues[key] = q
	c.Queues++
	return q, true
}

// Find returns a URL of the queue, or nil, as if there is no queue.
func (q *Queue) Find(url string) *URL {
	if q == nil {
		return nil
	}
	return q.urls[url]
}

// Until returns when the hold of a URL ends, or 0 if it has none.
func (s *Schedule) Until(u *URL) int64 {
	if h := s.holdOf[u]; h != nil {
		return h.until
	}
	return 0
}

// Held calls yield with the URLs that are held, and when their holds end, in no order.
func (s *Schedule) Held(yield func(url Taken, until int64) bool) {
	for _, h := range s.holds.items {
		if !yield(Taken{h.queue, h.url}, h.until) {
			return
		}
	}
}

// Put schedules a URL of the queue anew, or completes it, and ends its hold. One
// that is not known yet becomes known at the time created.
func (s *Schedule) Put(q *Queue, url string, due, created int64) *URL {
	u := s.put(q, url, due, created)
	s.place(q)
	return u
}

func (s *Schedule) put(q *Queue, url string, due, created int64) *URL {
	u := q.urls[url]
	if u == nil {
		u = &URL{Name: url, created: uint32(created / 1000)}
		q.urls[url] = u
		s.urls++
		s.newest = max(s.newest, created)
	} else {
		s.detach(q, u)
	}
	u.Due = due
	if due == Completed {
		u.at = completed
		q.completed++
		q.crawl.Completed++
	} else {
		heap.Push(&q.due, u)
		s.count(q, 1)
	}
	return u
}

// count adds n scheduled URLs to the totals, after they were added to the queue
// or taken out of it.
func (s *Schedule) count(q *Queue, n int) {
	q.crawl.Scheduled += n
	scheduled := q.due.Len() + int(q.held)
	if n > 0 && scheduled == n {
		q.crawl.Active++
	}
	if n < 0 && scheduled == 0 {
		q.crawl.Active--
	}
}

// detach takes a URL out of where it is.
func (s *Schedule) detach(q *Queue, u *URL) {
	switch u.at {
	case completed:
		q.completed--
		q.crawl.Completed--
		return
	case held:
		s.release(s.holdOf[u])
	default:
		heap.Remove(&q.due, int(u.at))
	}
	s.count(q, -1)
}

// hold holds a scheduled URL of the queue.
func (s *Schedule) hold(q *Queue, u *URL, until int64) {
	heap.Remove(&q.due, int(u.at))
	u.at = held
	h := &hold{queue: q, url: u, until: until}
	s.holdOf[u] = h
	heap.Push(&s.holds, h)
	q.held++
	q.crawl.Held++
}

// Request says what is wanted of [Schedule.Take].
type Request struct {
	Now      int64
	Crawl    string // "" is all
	Key      string // "" is all; otherwise Crawl is given
	Queues   int    // at most; 0 is no limit
	PerQueue int    // URLs of a queue in process at most; 0 is no limit
	Hold     int64  // for how long
	Enough   int    // URLs after which no further queue is served; 0 is no limit
}

// Taken is a URL that was handed out.
type Taken struct {
	Queue *Queue
	URL   *URL
}

// Take hands out URLs that are due.
func (s *Schedule) Take(dst []Taken, r Request) []Taken {
	s.Advance(r.Now)
	had := len(dst)
	for n := 0; (r.Queues == 0 || n < r.Queues) && (r.Enough == 0 || len(dst)-had < r.Enough); n++ {
		q := s.next(&r)
		if q == nil {
			break
		}
		for q.due.Len() > 0 && q.due.items[0].Due <= s.now && (r.PerQueue == 0 || int(q.held) < r.PerQueue) {
			dst = append(dst, Taken{q, q.due.items[0]})
			s.hold(q, q.due.items[0], s.now+r.Hold)
		}
		s.displace(q) // before its turn changes, which orders a heap
		s.turns++
		q.turn, q.Last = s.turns, s.now
		s.place(q)
	}
	return dst
}

// next returns the queue whose turn it is, or nil.
func (s *Schedule) next(r *Request) *Queue {
	open := func(held int32) bool { return r.PerQueue == 0 || int(held) < r.PerQueue }
	if r.Key != "" {
		q := s.Lookup(r.Crawl, r.Key)
		if q == nil || q.wake > s.now || !open(q.held) {
			return nil
		}
		return q
	}
	l := s.lineOf(r.Crawl)
	var first *Queue
	for held, h := range l.ready {
		switch {
		case h.Len() == 0:
			delete(l.ready, held)
		case open(held) && (first == nil || h.items[0].turn < first.turn):
			first = h.items[0]
		}
	}
	return first
}

// SetLimits changes what a queue is held to.
func (s *Schedule) SetLimits(q *Queue, to Limits) {
	q.Limits = to
	s.place(q)
}

// Delay returns the delay of queues without one of their own.
func (s *Schedule) Delay() int64 { return s.delay }

// SetDelay changes the delay of all queues without one of their own. It looks at
// each.
func (s *Schedule) SetDelay(delay int64) {
	s.delay = delay
	for _, c := range s.crawls {
		for _, q := range c.queues {
			if q.Delay < 0 {
				s.place(q)
			}
		}
	}
}

// RemoveQueue forgets a queue and returns how many URLs it had.
func (s *Schedule) RemoveQueue(q *Queue) int {
	n := len(q.urls)
	s.urls -= n
	for _, u := range q.urls {
		s.detach(q, u)
	}
	s.displace(q)
	delete(q.crawl.queues, q.Key)
	q.crawl.Queues--
	if q.crawl.Queues == 0 {
		delete(s.crawls, q.crawl.name)
	}
	return n
}

// RemoveBefore forgets the URLs of the queue that became known before a time and
// returns their names.
func (s *Schedule) RemoveBefore(q *Queue, created int64) []string {
	var gone []string
	for name, u := range q.urls {
		if u.Created() < created {
			gone = append(gone, name)
			s.detach(q, u)
			delete(q.urls, name)
			s.urls--
		}
	}
	s.place(q)
	return gone
}

// Counts returns the totals of the queue.
func (q *Queue) Counts() Counts {
	n := Counts{Queues: 1, Scheduled: q.due.Len() + int(q.held), Held: int(q.held), Completed: int(q.completed)}
	if n.Scheduled > 0 {
		n.Active = 1
	}
	return n
}

// Counts returns the totals of a crawl.
func (s *Schedule) Counts(crawl string) Counts {
	if c := s.crawls[crawl]; c != nil {
		return c.Counts
	}
	return Counts{}
}

// lineOf returns the queues of a crawl, or of all if crawl is "", by when they are
// served.
func (s *Schedule) lineOf(crawl string) *line {
	if crawl == "" {
		return &s.all
	}
	if c := s.crawls[crawl]; c != nil {
		return &c.line
	}
	return &line{}
}

// Ready returns how many queues of a crawl, or of all if crawl is "", could be
// served now but for the number held.
func (s *Schedule) Ready(crawl string) int {
	n := 0
	for _, h := range s.lineOf(crawl).ready {
		n += h.Len()
	}
	return n
}

// Size returns how many crawls and URLs there are.
func (s *Schedule) Size() (crawls, urls int) { return len(s.crawls), s.urls }

// Crawls returns the names of the crawls, in no order.
func (s *Schedule) Crawls() []string { return slices.Collect(maps.Keys(s.crawls)) }

// QueuesOf returns the queues of a crawl in no order.
func (s *Schedule) QueuesOf(crawl string) []*Queue {
	if c := s.crawls[crawl]; c != nil {
		return slices.Collect(maps.Values(c.queues))
	}
	return nil
}

// Restore takes up a URL as it was kept. After the last URL and the last hold,
// [Schedule.Restored] is called.
func (s *Schedule) Restore(q *Queue, url string, due, created int64) { s.put(q, url, due, created) }

// RestoreHold takes up when the hold of a URL ends.
func (s *Schedule) RestoreHold(q *Queue, url string, until int64) {
	if u := q.urls[url]; u != nil && u.at >= 0 {
		s.hold(q, u, until)
	}
}

// Restored puts the queues in the order in which they were served last. The latest of
// these times is that of the schedule.
func (s *Schedule) Restored() {
	var queues []*Queue
	for _, c := range s.crawls {
		for _, q := range c.queues {
			s.displace(q)
			queues = append(queues, q)
			s.now = max(s.now, q.Last)
		}
	}
	slices.SortFunc(queues, func(a, b *Queue) int {
		return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.crawl.name, b.crawl.name), cmp.Compare(a.Key, b.Key))
	})
	for _, q := range queues {
		s.turns++
		q.turn = s.turns
		s.place(q)
	}
}
