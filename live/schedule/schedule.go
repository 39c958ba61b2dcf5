// Package schedule decides which URLs may be fetched now. It is a state machine
// without clock or files; live/store keeps its state on disk and reads it from there.
//
//  1. A URL belongs to a queue, commonly the host, and a queue to a crawl. A URL
//     is scheduled, with a due time, or completed.
//  2. [Schedule.Take] hands out URLs that are due, by due time and then by name,
//     from queues in turn. What was handed out is held: it is not handed out again
//     before it is put back, or its hold is over and [Schedule.Advance] has ended it, which
//     ends so many at once that no call is long.
//  3. A queue is passed over while it is blocked, for its delay after the last
//     hand-out, while as many of its URLs are held as the caller allows, and once
//     as many are completed as its limit says. A hand-out may come in several calls, so that
//     none of them is long.
//  4. Queues wait in a heap by the time at which they may be served next, and then
//     in one by turn, for each number of held URLs. Those that wait for the delay of all are
//     in one by when they were served, so that another delay leaves their order as it is. Each
//     call costs the logarithm of the number of queues for each URL that it moves, and moves
//     so many at most.
//  5. Memory has the URLs that are held, and of each queue the few that are due
//     first, its window. The others are on disk, in the order in which they are due;
//     the schedule asks for more of them ([Disk]) when a window is empty. Whoever
//     puts a URL says what was known of it. So memory goes with the number of queues.
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

	"ephemera/live/clock"
)

// Completed is the due time of a URL that is not to be fetched again.
const Completed = 0

// never is when a queue wakes that has nothing to hand out.
const never = math.MaxInt64

// ID names a URL.
type ID struct{ Crawl, Key, URL string }

// Limits are what a queue is held to, and when it was served.
type Limits struct {
	Delay   int64  // between two hand-outs; −1 stands for the schedule's default
	Blocked int64  // no hand-out before this time
	Last    int64  // time of the last hand-out; 0 before
	Most    uint32 // completed URLs after which nothing is handed out; 0 is no limit
}

// URL is a URL of a queue. Of one queue they are ordered by when they are due, then by name.
type URL struct {
	Name    string
	Due     int64 // or Completed
	Created int64 // when it became known, in whole seconds
}

func compare(a, b *URL) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Name, b.Name))
}

// Disk has the URLs that wait: those that are scheduled and not held.
type Disk interface {
	// After returns at most n URLs of a queue that wait behind a place in its order, the first
	// ones of them, in order.
	After(q *Queue, place URL, n int) ([]URL, error)
}

// mostAtOnce is how many URLs are read at once for one hand-out.
const mostAtOnce = 512

// mostMoved is how many queues a call moves at most, but for those that it serves.
const mostMoved = 1000

// Queue is the URLs of one key of a crawl.
type Queue struct {
	Limits
	Key   string
	New   bool // made since the start, not restored
	crawl *crawl

	window    []URL // those that wait and are due first
	rest      int   // how many wait behind them,
	edge      URL   // and behind this place
	held      map[string]*hold
	completed int

	turn    uint64
	wake    int64               // of one that is waiting, when it may be served next, or before that
	in      [2]*indexed[*Queue] // heaps that it is in: of its crawl, if it is ready, of all
	at      [2]int32            // places there
	changed bool                // since Changed
}

// Crawl returns the name of the queue's crawl.
func (q *Queue) Crawl() string { return q.crawl.name }

// crawl is the queues of one name.
type crawl struct {
	name   string
	queues map[string]*Queue
	ready  ready
	gone   bool // it was removed; its queues and holds may still be in heaps of all
	Counts
}

// ready is the queues that may be served, by how many of their URLs are held, each by turn.
type ready map[int]*indexed[*Queue]

// hold is a URL that was handed out.
type hold struct {
	Taken
	until int64
	turn  uint64 // of two that end at one time the lower one ends first
	at    int
}

// Counts are totals of a queue or a crawl.
type Counts struct {
	Queues    int
	Active    int // queues with a scheduled URL
	Scheduled int // URLs, held ones included
	Held      int // URLs, those whose hold is over and was not ended yet included
	Completed int
}

// Schedule is the state of all crawls. It is not safe for concurrent use.
type Schedule struct {
	now    int64
	newest int64 // when the last URL became known
	disk   Disk
	window int   // how many URLs one has after it was filled or cut; at most twice as many
	delay  int64 // of queues without one of their own
	crawls map[string]*crawl
	ready  ready
	// waiting are the queues that are not ready, but for resting, those that wait for the delay of all.
	waiting, resting indexed[*Queue]
	holds            indexed[*hold]
	turns            uint64 // of queues and holds
	urls             int    // of all queues
	dirty            []*Queue
}

var (
	byEnd = order[*hold]{
		func(a, b *hold) bool { return a.until < b.until || a.until == b.until && a.turn < b.turn },
		func(h *hold, to int) { h.at = to },
	}
	byTurn         [2]order[*Queue] // for a crawl, for all
	byWake, byLast order[*Queue]    // for all
)

func init() {
	for k := range byTurn {
		moved := func(q *Queue, to int) { q.at[k] = int32(to) }
		byTurn[k] = order[*Queue]{func(a, b *Queue) bool { return a.turn < b.turn }, moved}
	}
	byWake = order[*Queue]{func(a, b *Queue) bool { return a.wake < b.wake }, byTurn[1].moved}
	byLast = order[*Queue]{func(a, b *Queue) bool { return a.Last < b.Last }, byTurn[1].moved}
}

// New returns an empty schedule whose queues have that delay unless they have one
// of their own, and windows of so many URLs.
func New(delay int64, disk Disk, window int) *Schedule {
	return &Schedule{
		delay: delay, disk: disk, window: window, crawls: map[string]*crawl{}, ready: ready{},
		waiting: indexed[*Queue]{order: &byWake}, resting: indexed[*Queue]{order: &byLast},
		holds: indexed[*hold]{order: &byEnd},
	}
}

// Advance brings the schedule to a time: n holds at most end, and a thousand queues at most
// become ready, those first whose time came first. It returns the URLs whose holds ended,
// whether there are more such holds and queues, for the next calls, and whether the clock was
// set back, so that the ends of holds and the limits of queues are others now. Holds end in the
// order of their times, and those of one time in the order of the hand-outs, after a start in
// that in which they were restored.
//
// Then each hold lasts for as long as was left of it, and queues that were served later
// than now, and URLs that were discovered later, were so just now. It looks at each.
// When a URL is due stays as it was said.
func (s *Schedule) Advance(now int64, n int) (ended []Taken, more, back bool) {
	if back = max(s.now, s.newest)-now > clock.Behind.Milliseconds(); back {
		s.setBack(now)
	}
	s.now = max(s.now, now)
	for ; n > 0 && s.over(); n-- {
		h := s.holds.items[0]
		if s.release(h); !h.Queue.crawl.gone {
			s.wait(h.Queue, h.URL)
			s.place(h.Queue)
			ended = append(ended, h.Taken)
		}
	}
	for left := mostMoved; left > 0 && s.rested() != nil; left-- {
		s.place(s.rested())
	}
	return ended, s.over() || s.rested() != nil, back
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
				s.change(q)
			}
			s.place(q)
		}
	}
}

// over reports whether the time of a hold has come.
func (s *Schedule) over() bool { return s.holds.Len() > 0 && s.holds.items[0].until <= s.now }

// rested returns a queue that waits though its time has come, or nil.
func (s *Schedule) rested() *Queue {
	if s.waiting.Len() > 0 && s.waiting.items[0].wake <= s.now {
		return s.waiting.items[0]
	}
	if s.resting.Len() > 0 && s.delayed(s.resting.items[0]) <= s.now {
		return s.resting.items[0]
	}
	return nil
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
				s.change(q)
			}
			s.place(q)
		}
	}
}

// release ends a hold.
func (s *Schedule) release(h *hold) {
	q := h.Queue
	heap.Remove(&s.holds, h.at)
	if delete(q.held, h.URL.Name); len(q.held) == 0 {
		q.held = nil
	}
	q.crawl.Held--
}

// wait has a URL wait in its queue.
func (s *Schedule) wait(q *Queue, u URL) {
	s.change(q)
	if q.rest > 0 && compare(&u, &q.edge) > 0 {
		q.rest++
		return
	}
	i, _ := q.find(&u)
	q.window = slices.Insert(q.window, i, u)
	s.cut(q)
}

// find returns the place of a URL in the window.
func (q *Queue) find(u *URL) (at int, there bool) {
	return slices.BinarySearchFunc(q.window, u, func(a URL, b *URL) int { return compare(&a, b) })
}

// cut leaves the last ones of a long window to the disk.
func (s *Schedule) cut(q *Queue) {
	if len(q.window) > 2*s.window {
		q.rest += len(q.window) - s.window
		q.window = slices.Clone(q.window[:s.window])
		q.edge = q.window[s.window-1]
	}
}

// unwait takes a URL that waits out of its queue.
func (s *Schedule) unwait(q *Queue, u URL) {
	s.change(q)
	if q.rest > 0 && compare(&u, &q.edge) > 0 {
		q.rest--
	} else if i, there := q.find(&u); there {
		q.window = slices.Delete(q.window, i, i+1)
	}
}

// fill reads n URLs into an empty window, if there are more on disk.
func (s *Schedule) fill(q *Queue, n int) error {
	if len(q.window) > 0 || q.rest == 0 {
		return nil
	}
	more, err := s.disk.After(q, q.edge, n)
	if err != nil {
		return err
	}
	q.window = more
	if q.rest -= len(more); len(more) < n {
		q.rest = 0
	} else {
		q.edge = more[n-1]
	}
	return nil
}

// change notes that what is to be kept of a queue is otherwise.
func (s *Schedule) change(q *Queue) {
	if !q.changed {
		q.changed = true
		s.dirty = append(s.dirty, q)
	}
}

// IsChanged reports whether what is to be kept of a queue changed since [Schedule.Changed].
func (s *Schedule) IsChanged() bool { return len(s.dirty) > 0 }

// Changed calls yield with the queues of which what is to be kept changed since the last time.
func (s *Schedule) Changed(yield func(*Queue)) {
	for _, q := range s.dirty {
		if q.changed = false; !q.crawl.gone {
			yield(q)
		}
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
}

// place puts a queue where its state says: among the ready, those that wait, or
// neither.
func (s *Schedule) place(q *Queue) {
	s.displace(q)
	within, delayed := q.opensWithin(), s.delayed(q)
	q.wake = max(within, delayed)
	switch {
	case within == never:
	case q.wake <= s.now:
		for k, r := range [2]ready{q.crawl.ready, s.ready} {
			h := r[len(q.held)]
			if h == nil {
				h = &indexed[*Queue]{order: &byTurn[k]}
				r[len(q.held)] = h
			}
			q.push(k, h)
		}
	case q.Delay < 0 && delayed > within:
		q.push(1, &s.resting)
	default:
		q.push(1, &s.waiting)
	}
}

// push puts the queue into a heap.
func (q *Queue) push(k int, h *indexed[*Queue]) {
	heap.Push(h, q)
	q.in[k] = h
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

// opens returns when a queue may be served next, but for the number held; or an earlier
// time, if its window is empty.
func (s *Schedule) opens(q *Queue) int64 { return max(q.opensWithin(), s.delayed(q)) }

// delayed returns until when a queue waits for its delay.
func (s *Schedule) delayed(q *Queue) int64 {
	switch {
	case q.Last == 0:
		return 0
	case q.Delay < 0:
		return q.Last + s.delay
	}
	return q.Last + q.Delay
}

// opensWithin is opens for a hand-out that has begun, which the delay does not keep waiting.
func (q *Queue) opensWithin() int64 {
	if q.waiting() == 0 || q.Most > 0 && q.completed >= int(q.Most) || q.crawl.gone {
		return never
	}
	return max(q.first(), q.Blocked)
}

// waiting returns how many URLs are scheduled and not held.
func (q *Queue) waiting() int { return len(q.window) + q.rest }

// first returns when the first of them is due, or an earlier time.
func (q *Queue) first() int64 {
	if len(q.window) > 0 {
		return q.window[0].Due
	}
	return q.edge.Due
}

// Kept is what is to be kept of a queue apart from its URLs.
type Kept struct {
	Limits
	Waiting   int   // URLs that are scheduled and not held
	First     int64 // none of them is due before
	Completed int   // URLs
}

// Kept returns what is to be kept of the queue.
func (q *Queue) Kept() Kept { return Kept{q.Limits, q.waiting(), q.first(), q.completed} }

// Lookup returns a queue, or nil.
func (s *Schedule) Lookup(crawl, key string) *Queue {
	if c := s.crawls[crawl]; c != nil {
		return c.queues[key]
	}
	return nil
}

// Ensure returns a queue and creates it where it is missing.
func (s *Schedule) Ensure(crawlName, key string) *Queue {
	if q := s.Lookup(crawlName, key); q != nil {
		return q
	}
	q := s.Restore(crawlName, key, Kept{Limits: Limits{Delay: -1}})
	q.New = true
	s.change(q)
	return q
}

// Hold is a URL that was handed out.
type Hold struct {
	URL
	Until int64
}

// Held returns what is held of that name, or nil, as if there is no queue.
func (q *Queue) Held(url string) *Hold {
	if q == nil || q.held[url] == nil {
		return nil
	}
	h := q.held[url]
	return &Hold{h.URL, h.until}
}

// Held calls yield with the URLs that are held, and when their holds end, in no order.
func (s *Schedule) Held(yield func(url Taken, until int64) bool) {
	for _, h := range s.holds.items {
		if !h.Queue.crawl.gone && !yield(h.Taken, h.until) {
			return
		}
	}
}

// Put schedules a URL of the queue anew, or completes it, and ends its hold. What was known
// of it, of that name, is nil if nothing was.
func (s *Schedule) Put(q *Queue, was *URL, u URL) {
	if was != nil {
		s.detach(q, was)
	} else {
		s.urls++
		s.newest = max(s.newest, u.Created)
	}
	if u.Due == Completed {
		q.completed++
		q.crawl.Completed++
		s.change(q)
	} else {
		s.wait(q, u)
		s.count(q, 1)
	}
	s.place(q)
}

// Amend replaces what is known of a URL, and leaves it held if it is.
func (s *Schedule) Amend(q *Queue, was *URL, u URL) {
	if h := q.held[was.Name]; h != nil {
		h.URL = u
		return
	}
	s.Put(q, was, u)
}

// Drop forgets a URL of the queue.
func (s *Schedule) Drop(q *Queue, was *URL) {
	s.detach(q, was)
	s.urls--
	s.place(q)
}

// count adds n scheduled URLs to the totals, after they were added to the queue
// or taken out of it.
func (s *Schedule) count(q *Queue, n int) {
	q.crawl.Scheduled += n
	scheduled := q.scheduled()
	if n > 0 && scheduled == n {
		q.crawl.Active++
	}
	if n < 0 && scheduled == 0 {
		q.crawl.Active--
	}
}

func (q *Queue) scheduled() int { return q.waiting() + len(q.held) }

// detach takes a URL out of where it is.
func (s *Schedule) detach(q *Queue, u *URL) {
	if h := q.held[u.Name]; h != nil {
		s.release(h)
	} else if u.Due == Completed {
		q.completed--
		q.crawl.Completed--
		s.change(q)
		return
	} else {
		s.unwait(q, *u)
	}
	s.count(q, -1)
}

// hold holds a URL that is no longer among those that wait.
func (s *Schedule) hold(t Taken, until int64) {
	s.turns++
	h := &hold{Taken: t, until: until, turn: s.turns}
	if t.Queue.held == nil {
		t.Queue.held = map[string]*hold{}
	}
	t.Queue.held[t.URL.Name] = h
	heap.Push(&s.holds, h)
	t.Queue.crawl.Held++
}

// Request says what is wanted of [Schedule.Take], and how much of it was taken.
type Request struct {
	Crawl    string // "" is all
	Key      string // "" is all; otherwise Crawl is given
	Queues   int    // at most; 0 is no limit
	PerQueue int    // URLs of a queue in process at most; 0 is no limit
	Hold     int64  // for how long, above 0

	begun int    // queues
	queue *Queue // the last of them
	turn  uint64 // of that queue, unless it was removed or served to another request meanwhile
	left  int    // URLs that may still be taken of it
}

// WantsQueue reports whether the request is for more queues than it has found.
func (r *Request) WantsQueue() bool { return r.Queues == 0 || r.begun < r.Queues }

// Taken is a URL that was handed out.
type Taken struct {
	Queue *Queue
	URL   URL
}

// Take hands out n URLs at most that are due now: it calls keep with each, before it looks at the disk
// again. It returns whether there may be more: it takes no more than n, and passes over no more than a
// thousand queues that turn out to have nothing for it. With the same request it goes on where it
// stopped, also within a queue: the delay of that does not keep it from this request, which takes no
// more of it than waited there at first. After an error of the disk another queue is next.
func (s *Schedule) Take(r *Request, n int, keep func(t Taken, until int64)) (more bool, err error) {
	for taken, passed := 0, 0; taken < n && passed < mostMoved && err == nil; {
		q := s.current(r)
		if q == nil {
			if q = s.next(r); q == nil {
				return false, nil
			}
			if !s.begin(r, q) {
				s.place(q)
				passed++
				continue
			}
		}
		s.displace(q) // before what heaps are ordered by changes
		for ahead := s.window; taken < n && r.left > 0; taken++ {
			if err = s.fill(q, ahead); len(q.window) == 0 || q.window[0].Due > s.now {
				r.left = 0
				break
			}
			ahead = min(2*ahead, mostAtOnce)
			t := Taken{q, q.window[0]}
			q.window = q.window[1:]
			r.left--
			s.change(q) // the disk asks what changed when it is read
			s.hold(t, s.now+r.Hold)
			keep(t, s.now+r.Hold)
		}
		s.cut(q)
		q.window = slices.Clone(q.window) // without the space of those that were handed out
		s.turns++
		q.turn, q.Last = s.turns, s.now
		r.turn = q.turn
		s.change(q)
		s.place(q)
	}
	return true, err
}

// current returns the queue in which a request stopped, if there is more for it, or nil.
func (s *Schedule) current(r *Request) *Queue {
	if q := r.queue; r.left > 0 && q.turn == r.turn && q.opensWithin() <= s.now {
		if err := s.fill(q, s.window); err != nil || q.opensWithin() <= s.now {
			return q
		}
	}
	r.left = 0
	return nil
}

// begin has a request go on with a queue, and reports whether that has a URL that is due, or cannot be
// read.
func (s *Schedule) begin(r *Request, q *Queue) bool {
	if s.opens(q) > s.now {
		return false
	}
	if err := s.fill(q, s.window); err == nil && s.opens(q) > s.now {
		return false
	}
	r.begun++
	r.queue, r.left = q, q.waiting()
	if r.PerQueue > 0 {
		r.left = min(r.left, r.PerQueue-len(q.held))
	}
	return true
}

// next returns the queue whose turn it is as far as memory knows, or nil.
func (s *Schedule) next(r *Request) *Queue {
	if !r.WantsQueue() {
		return nil
	}
	open := func(held int) bool { return r.PerQueue == 0 || held < r.PerQueue }
	if r.Key != "" {
		q := s.Lookup(r.Crawl, r.Key)
		if q == nil || s.opens(q) > s.now || !open(len(q.held)) {
			return nil
		}
		return q
	}
	l := s.readyOf(r.Crawl)
	var first *Queue
	for held, h := range l {
		switch {
		case h.Len() == 0:
			delete(l, held)
		case open(held) && (first == nil || h.items[0].turn < first.turn):
			first = h.items[0]
		}
	}
	return first
}

// SetLimits changes what a queue is held to.
func (s *Schedule) SetLimits(q *Queue, to Limits) {
	q.Limits = to
	s.change(q)
	s.place(q)
}

// Delay returns the delay of queues without one of their own.
func (s *Schedule) Delay() int64 { return s.delay }

// SetDelay changes the delay of all queues without one of their own.
func (s *Schedule) SetDelay(delay int64) { s.delay = delay }

// Remove forgets a queue, or a crawl if key is nil, and returns how many URLs it had. They take up memory
// until sweep was called, which calls pause after each thousand of them: the schedule can be used meanwhile.
func (s *Schedule) Remove(crawlName string, key *string) (n int, sweep func(pause func())) {
	c := s.crawls[crawlName]
	if c != nil && key != nil {
		c = s.split(c, *key)
	} else if c != nil {
		delete(s.crawls, crawlName)
	}
	if c == nil {
		return 0, func(func()) {}
	}
	c.gone = true
	n = c.Scheduled + c.Completed
	s.urls -= n
	return n, func(pause func()) { s.sweep(c, pause) }
}

// split has a queue of a crawl be in one of its own, which it returns, or nil if there is no such queue.
func (s *Schedule) split(c *crawl, key string) *crawl {
	q := c.queues[key]
	if q == nil {
		return nil
	}
	s.displace(q)
	own := &crawl{name: c.name, queues: map[string]*Queue{key: q}, ready: ready{}, Counts: q.Counts()}
	q.crawl = own
	c.Queues--
	c.Active -= own.Active
	c.Scheduled -= own.Scheduled
	c.Held -= own.Held
	c.Completed -= own.Completed
	if delete(c.queues, key); c.Queues == 0 {
		delete(s.crawls, c.name)
	}
	return own
}

// sweep takes what is left of a removed crawl out of the heaps of all.
func (s *Schedule) sweep(c *crawl, pause func()) {
	n := 0
	moved := func() {
		if n++; n%mostMoved == 0 {
			pause()
		}
	}
	for _, q := range c.queues {
		for _, h := range q.held {
			s.release(h)
			moved()
		}
		s.displace(q)
		moved()
	}
}

// Counts returns the totals of the queue.
func (q *Queue) Counts() Counts {
	n := Counts{Queues: 1, Scheduled: q.scheduled(), Held: len(q.held), Completed: q.completed}
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

// readyOf returns the queues of a crawl, or of all if crawl is "", that are ready.
func (s *Schedule) readyOf(crawl string) ready {
	if crawl == "" {
		return s.ready
	}
	if c := s.crawls[crawl]; c != nil {
		return c.ready
	}
	return nil
}

// Ready returns how many queues of a crawl, or of all if crawl is "", could be
// served now but for the number held. Some may turn out to have nothing that is due, of those
// whose next URLs are on disk, or to wait, after the delay of all has become longer.
func (s *Schedule) Ready(crawl string) int {
	n := 0
	for _, h := range s.readyOf(crawl) {
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

// Restore takes up a queue as it was kept, without the URLs that are held. After the last
// queue and the last hold, [Schedule.Restored] is called.
func (s *Schedule) Restore(crawlName, key string, k Kept) *Queue {
	c := s.crawls[crawlName]
	if c == nil {
		c = &crawl{name: crawlName, queues: map[string]*Queue{}, ready: ready{}}
		s.crawls[crawlName] = c
	}
	q := &Queue{
		Limits: k.Limits, Key: key, crawl: c, rest: k.Waiting, edge: URL{Due: k.First}, completed: k.Completed,
	}
	s.turns++
	q.turn = s.turns
	c.queues[key] = q
	c.Queues++
	c.Completed += k.Completed
	s.urls += k.Waiting + k.Completed
	if k.Waiting > 0 {
		s.count(q, k.Waiting)
	}
	return q
}

// RestoreHold takes up a URL that is held.
func (s *Schedule) RestoreHold(t Taken, until int64) {
	s.hold(t, until)
	s.count(t.Queue, 1)
	s.urls++
}

// Now returns the time of the schedule, which is that of the last decision.
func (s *Schedule) Now() int64 { return s.now }

// Newest returns when the last URL became known.
func (s *Schedule) Newest() int64 { return s.newest }

// Restored puts the queues in the order in which they were served last. The latest of
// these times is that of the schedule. The last URL became known at the time newest.
func (s *Schedule) Restored(newest int64) {
	s.newest = newest
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
