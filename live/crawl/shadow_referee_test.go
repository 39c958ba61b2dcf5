package crawl

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Kinds of feeds of a reader that fetches by its own rule, each a tenth.
const (
	shadowSeldom  = 0 // fails once in 30 times
	shadowFails   = 3 // half of the time
	shadowWaits   = 4 // whose publisher asks for three hours
	shadowLate    = 5 // enabled after a while
	shadowRemoved = 7 // after a while
	shadowUndated = 8
	shadowBursts  = 9 // with more entries than a page has
)

// fetched is when a reader fetched a feed of itself, and how many entries it had found by then.
type fetched struct {
	at      time.Time
	entries int
	fails   bool
	hidden  bool // by the next fetch: nobody who asks each minute could see it
	unsure  bool // it could be seen in the last moment before a kill alone
}

// lone is a Miniflux that fetches its feeds about hourly, and is not to be asked for anything.
type lone struct {
	*fakeMiniflux
	clock   time.Time
	next    map[int64]time.Time
	fetches map[int64][]fetched
	shown   map[int64]int // the answer in which the last fetch was shown first; 0 for none
	unsure  map[int64]bool
	lists   int
	calls   int
	asked   int // what changes something
	moments int // fetches that were shown first in the last moment before a kill
	text    map[int64][]byte
}

func newLone(t *testing.T, n int, begin time.Time) *lone {
	s := &lone{
		fakeMiniflux: newFakeMiniflux(t), clock: begin, next: map[int64]time.Time{}, fetches: map[int64][]fetched{},
		shown: map[int64]int{}, unsure: map[int64]bool{}, text: map[int64][]byte{},
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	for k := range n {
		id := int64(k + 1)
		f := &fakeFeed{url: fmt.Sprintf("http://f%04d.test/feed", k), disabled: k%10 == shadowLate}
		f.every = []time.Duration{20 * time.Minute, 8 * time.Hour, 5 * time.Hour, time.Hour}[k%4]
		switch k % 10 {
		case shadowWaits:
			f.wait = 3 * time.Hour
		case shadowUndated:
			f.every = 100 * time.Hour
		}
		s.feeds[id], s.next[id] = f, begin
	}
	s.pass(begin)
	return s
}

// pass has the reader fetch what it fetches until a time.
func (s *lone) pass(until time.Time) {
	for _, id := range slices.Sorted(maps.Keys(s.feeds)) {
		f := s.feeds[id]
		for k := int(id - 1); !s.next[id].After(until); {
			now := s.next[id]
			chance := draw(k, now.Unix())
			wait := 30*time.Minute + time.Duration(chance%3600)*time.Second
			if *full { // about every ten minutes
				wait /= 6
			}
			if chance%50 == 0 { // somebody has it fetched by hand
				wait = 20 * time.Second
			}
			s.next[id] = now.Add(wait)
			if f.disabled {
				continue
			}
			s.hide(id)
			f.fails = k%10 == shadowFails && chance%2 == 0 || k%10 == shadowSeldom && chance%30 == 7
			s.now = func() time.Time { return now }
			s.fetch(f)
			more := 0
			switch {
			case k%10 == shadowUndated:
				more = int(chance % 3)
			case k%10 == shadowBursts && len(s.fetches[id]) == 5:
				more = pageEntries + int(chance%100)
			}
			for range more {
				s.entries++
				f.entries = append(f.entries, fakeEntry{s.entries, now, now})
			}
			s.fetches[id] = append(s.fetches[id], fetched{at: now, entries: len(f.entries), fails: f.fails})
			delete(s.text, id)
		}
	}
	if until.After(s.clock) {
		s.clock = until
	}
}

// hide notes whether the last fetch of a feed was seen, before there is another or none.
func (s *lone) hide(id int64) {
	if all := s.fetches[id]; len(all) > 0 && s.shown[id] == 0 {
		all[len(all)-1].hidden, all[len(all)-1].unsure = !s.unsure[id], s.unsure[id]
	}
	s.shown[id], s.unsure[id] = 0, false
}

// crashed notes that what the last answer showed first may not have been taken up.
func (s *lone) crashed() {
	s.CloseClientConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moments += s.doubt()
}

// doubt notes that what the last answer showed first may be replaced before it is taken up.
func (s *lone) doubt() (fetches int) {
	for id, list := range s.shown {
		if list == s.lists && list > 0 {
			s.shown[id], s.unsure[id] = 0, true
			fetches++
		}
	}
	return fetches
}

func (s *lone) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	if q.Method != http.MethodGet {
		s.asked++
		s.mu.Unlock()
		return
	}
	if text, is := strings.CutPrefix(q.URL.Path, "/clock/"); is {
		s.pass(time.Unix(must(strconv.ParseInt(text, 10, 64)), 0))
		s.mu.Unlock()
		return
	}
	s.calls++
	if q.URL.Path != "/v1/feeds" || s.broken || q.Header.Get("X-Auth-Token") != "token" {
		s.mu.Unlock()
		s.fakeMiniflux.ServeHTTP(w, q)
		return
	}
	s.lists++
	var list [][]byte
	for _, id := range slices.Sorted(maps.Keys(s.feeds)) {
		if s.text[id] == nil {
			var template []any
			check(json.Unmarshal(s.answers["feeds"].Body, &template))
			s.text[id] = must(json.Marshal(s.feed(template[0], id)))
		}
		if s.shown[id] == 0 && !s.feeds[id].disabled {
			s.shown[id] = s.lists
		}
		list = append(list, s.text[id])
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	for k, text := range list {
		io.WriteString(w, "[,"[min(k, 1):min(k, 1)+1])
		w.Write(text)
	}
	io.WriteString(w, "]")
}

// change has feeds come and go as time passes; part is of all of it.
func (s *lone) change(part float64, removed map[int64]*fakeFeed) {
	for id, f := range s.feeds {
		switch int(id-1) % 10 {
		case shadowLate:
			if part > .6 && f.disabled {
				f.disabled = false
				delete(s.text, id)
			}
		case shadowRemoved:
			if part > .6 && 0 < s.shown[id] && s.shown[id] < s.lists {
				removed[id] = f
				delete(s.feeds, id)
			}
		}
	}
}

// watch is a life in the shadow of a reader, that ends by SIGKILL within ten minutes after its end.
func (l life) watch() {
	s := l.open(io.Discard)
	whole := l.End.Sub(l.Begin)
	first := time.Duration(rand.Float64() * float64(whole)).Truncate(time.Minute)
	s.pass(first)
	s.Ahead += l.Step
	s.pass(whole - first)
	kill := func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	time.AfterFunc(time.Duration(rand.Float64()*float64(50*time.Millisecond)), kill)
	s.pass(10 * time.Minute)
	kill()
}

// TestRefereeShadow: in the shadow of a reader nothing is asked of it that changes anything, each
// fetch that could be seen is counted once, and each entry, however often the crawler is killed,
// whatever its clock is set to, and while the reader is away; and what the page says of the reader
// is what the reader did. Feeds fail, come and go, have no dates, and have more than a page.
func TestRefereeShadow(t *testing.T) {
	const year = 365 * 24 * time.Hour
	n, days, every := 40, 1, time.Hour
	if *full {
		n, days, every = *feeds/5, 2, 20*time.Minute
	}
	l := newLife(t, httptest.NewServer(http.NotFoundHandler()), 60)
	r := newLone(t, n, l.Begin)
	l.Server, l.Miniflux, l.Token, l.Shadow, l.Boot = r.Listener.Addr().String(), r.URL, "token", true, "1"
	steps := []time.Duration{
		time.Second, -time.Second, time.Hour, -time.Hour, year / 12, -year / 12, -year, year,
	}
	begin, end, lives := l.Begin, l.Begin.AddDate(0, 0, days), 0
	removed := map[int64]*fakeFeed{}
	for most := int(end.Sub(begin) / every); l.Begin.Before(end); lives++ {
		if *full && lives%10 == 0 {
			t.Logf("%v: %d lives, %d requests", time.Now().Format(time.TimeOnly), lives, r.calls)
		}
		l.End = l.Begin.Add(every)
		l.set(steps, lives, most*2/5) // before the second half, which is compared
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "EPHEMERA_TEST_LIFE="+string(must(json.Marshal(l))))
		cmd.Stderr = os.Stderr
		done := make(chan error, 1)
		go func() { done <- cmd.Run() }()
		var err error
		for ended := false; !ended; {
			select {
			case err = <-done:
				ended = true
			case <-time.After(time.Millisecond):
				r.mu.Lock()
				r.change(r.clock.Sub(begin).Hours()/end.Sub(begin).Hours(), removed)
				part := r.clock.Sub(l.Begin).Hours() / every.Hours()
				was := r.broken
				r.broken = lives%4 == 2 && .3 < part && part < .6 // no crawler can begin while it is
				if r.broken && !was {
					r.doubt()
				}
				r.mu.Unlock()
			}
		}
		if exit, ok := err.(*exec.ExitError); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatal(err)
		}
		r.crashed()
		l.Ahead += l.Step
		l.Begin = r.clock.Add(time.Minute)
	}
	s := l.open(io.Discard).pass(3 * time.Minute)
	defer s.Close()
	if r.asked > 0 {
		t.Errorf("%d requests change the reader", r.asked)
	}

	looks, items := map[string]int{}, map[string]map[uint64]bool{}
	type when struct {
		feed string
		at   int64
	}
	unseen := map[when]bool{} // looks before which there may have been others
	kept := map[when]bool{}
	check(s.journal(0, func(e *entry) bool {
		looks[e.Feed]++
		kept[when{e.Feed, e.At.UnixNano()}] = true
		if e.Unseen {
			unseen[when{e.Feed, e.At.UnixNano()}] = true
		}
		if items[e.Feed] == nil {
			items[e.Feed] = map[uint64]bool{}
		}
		for _, it := range e.Items {
			if items[e.Feed][it.ID] {
				t.Errorf("%s: entry %d was found twice", e.Feed, it.ID)
			}
			items[e.Feed][it.ID] = true
		}
		return true
	}))
	feeds := maps.Clone(r.feeds)
	maps.Copy(feeds, removed)
	fetches, hidden, unsure, entries := 0, 0, 0, 0
	for id, f := range feeds {
		most, sure := 0, 0
		for _, one := range r.fetches[id] {
			fetches++
			switch {
			case one.hidden:
				hidden++
			case one.unsure:
				unsure++
				most++
			default:
				most++
				sure++
			}
		}
		if got := looks[f.url]; got < sure || got > most {
			t.Errorf("%s: %d looks are counted, of %d to %d", f.url, got, sure, most)
		}
		entries += len(f.entries)
		for _, e := range f.entries {
			if !items[f.url][uint64(e.id)] {
				t.Errorf("%s: entry %d of %v was lost", f.url, e.id, e.published)
			}
		}
		if got := len(items[f.url]); got != len(f.entries) {
			t.Errorf("%s: %d entries, of %d", f.url, got, len(f.entries))
		}
	}
	t.Logf("%d kills, %d fetches seen at those moments; %d requests, %d of them for lists; %d fetches of %d feeds, "+
		"of which %d could not be seen and %d perhaps not; %d entries",
		lives, r.moments, r.calls, r.lists, fetches, len(feeds), hidden, unsure, entries)
	if len(removed) != n/10 || hidden == 0 {
		t.Errorf("%d feeds were removed, of %d", len(removed), n/10)
	}

	s.recompare(s.now)
	s.comparisons.Wait()
	got := s.compared
	if got.Why != "" {
		t.Fatal(got.Why)
	}
	requests, perhaps, waits, sum, lost := 0, 0, 0, 0., 0
	in := func(at time.Time) bool { return !at.Before(got.From) && at.Before(got.To) }
	for id, f := range r.feeds {
		measured := slices.Contains(got.feeds, f.url)
		from, last, seen := 0, time.Time{}, time.Time{}
		known := &observed{}
		for _, one := range r.fetches[id] {
			if one.hidden || one.unsure && !kept[when{f.url, one.at.UnixNano()}] {
				continue
			}
			if one.unsure {
				perhaps++
			}
			if measured && unseen[when{f.url, one.at.UnixNano()}] {
				known.unseen = append(known.unseen, gap{seen, one.at})
			}
			if in(one.at) && measured && !known.hidden(one.at) {
				requests++
			}
			for _, e := range f.entries[from:one.entries] {
				at := e.published
				if !at.Before(one.at) && !last.IsZero() {
					at = last.Add(one.at.Sub(last) / 2)
				}
				switch {
				case in(at) && known.hidden(at):
					lost++
				case in(at):
					waits++
					sum += one.at.Sub(at).Minutes()
				}
			}
			seen = one.at
			if from = one.entries; !one.fails {
				last = one.at
			}
		}
	}
	who := got.Rivals[0]
	counted, all := got.Items, float64(got.Items)*who.Mean.Minutes()
	left := map[string]int{}
	for _, l := range got.Left {
		if left[l.Why] = l.Items; l.Why == whileUnseen {
			continue
		}
		counted += l.Items
		all += float64(l.Items) * l.Mean.Minutes()
	}
	t.Logf("from %v to %v: %d requests, %d entries found in %.2f minutes in the mean; the page says %d, %d and %.2f, "+
		"with %v that are left out", got.From, got.To, requests, waits, sum/float64(waits),
		who.Requests, counted, all/float64(counted), left)
	if math.Abs(float64(who.Requests-requests)) > float64(perhaps) ||
		math.Abs(float64(counted-waits)) > .002*float64(waits) || math.Abs(all-sum) > .01*sum {
		t.Errorf("the page says of the reader what it did not do: %+v, left out %+v", who, got.Left)
	}
	if left[whileUnseen] != lost || lost == 0 {
		t.Errorf("%d entries are left out as fetches were not seen, of %d", left[whileUnseen], lost)
	}
	if left[ofFailing] == 0 || left[whileFailed] == 0 || left[ofNew] == 0 || got.LeftItems() > waits/4 {
		t.Errorf("of %d entries are left out: %v", waits, left)
	}
	// With -full the reader fetches more often than any feed is asked for here.
	most := float64(len(got.feeds)) * got.To.Sub(got.From).Hours() / shortest.Hours()
	for _, one := range got.Rivals[1:] {
		t.Logf("%-40s %5d requests, mean %.2f minutes", one.Name, one.Requests, one.Mean.Minutes())
		if want := min(float64(who.Requests), most); math.Abs(float64(one.Requests)-want) > .1*want {
			t.Errorf("%s made %d requests, the reader %d; allowed are %.0f",
				one.Name, one.Requests, who.Requests, most)
		}
	}
}
