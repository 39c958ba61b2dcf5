package crawl

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"ephemera/live/feed"
	"ephemera/live/store"
	"ephemera/live/store/storetest"
)

// receiver is a program to which items are posted.
type receiver struct {
	*httptest.Server
	ids    []string
	items  []jsonItem
	wrong  []string
	status func(notice) int
}

func newReceiver(t *testing.T, secret string) *receiver {
	r := &receiver{status: func(notice) int { return http.StatusNoContent }}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body := must(io.ReadAll(q.Body))
		var says notice
		signature, delivery := q.Header.Get("X-Hub-Signature-256"), q.Header.Get("X-Ephemera-Delivery")
		if err := json.Unmarshal(body, &says); err != nil || q.Method != "POST" ||
			!signed(body, signature, secret) || signed(body, signature, secret+"x") ||
			says.ID != delivery || says.ID != says.Item.ID ||
			says.Feed.URL != address(0) || says.Feed.Title == "" || says.Event != "item" {
			r.wrong = append(r.wrong, string(body))
		}
		status := r.status(says)
		if w.WriteHeader(status); status/100 == 2 {
			r.ids, r.items = append(r.ids, says.ID), append(r.items, says.Item)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// hooked is a crawler of feed 0 that posts to a program.
func (l life) hooked(r *receiver, secret string) *sim {
	s := l.open(io.Discard)
	s.hook.url, s.hook.secret, s.hook.wait = r.URL, []byte(secret), time.Millisecond
	return s
}

// show has the feed show items that are new.
func (s *sim) show(ids ...uint64) {
	r := s.feeds[address(0)]
	e := entry{Outcome: feed.Found, Previous: s.now}
	for _, id := range ids {
		e.Items = append(e.Items, feed.Item{ID: id, Title: "news", Link: "http://news.test/"})
	}
	s.mu.Lock()
	commit := must(s.note(r, &e))
	s.mu.Unlock()
	commit.Wait()
}

// TestHook: each new item is posted, signed; those of a first look are not new.
func TestHook(t *testing.T) {
	p := newReceiver(t, "s3cret")
	s := newLife(t, newReferee(t, 30).Server, 30, address(0)).hooked(p, "s3cret").pass(10 * time.Minute)
	defer s.Close()
	if s.stats.Items == 0 || len(s.hook.waiting) > 0 {
		t.Fatalf("%d items, of which %d are to be posted", s.stats.Items, len(s.hook.waiting))
	}
	s.show(1, 2, 3)
	s.postWaiting(t.Context())
	if len(p.ids) != 3 || len(s.hook.waiting) > 0 || len(p.wrong) > 0 || p.items[0].URL != "http://news.test/" {
		t.Errorf("%v were taken, %v wait; %v", p.ids, s.hook.waiting, p.wrong)
	}
	if was, _ := s.postNext(t.Context(), s.hook.next); was {
		t.Error("more is posted than there is")
	}
}

// TestHookOnFullDisk: an item that was posted while the disk is full is not posted again.
func TestHookOnFullDisk(t *testing.T) {
	p := newReceiver(t, "s3cret")
	l := newLife(t, newReferee(t, 30).Server, 30, address(0))
	disk := &storetest.Disk{FS: vfs.NewMem()}
	l.disk = disk
	s := l.hooked(p, "s3cret").pass(10 * time.Minute)
	defer s.Close()
	s.show(1, 2, 3)
	disk.Full.Store(true)
	time.Sleep(100 * time.Millisecond) // the store looks again after 50
	for range 3 {
		s.postWaiting(t.Context())
		s.now = s.now.Add(2 * longestWait)
	}
	if len(p.ids) != 3 {
		t.Errorf("%d items were taken; want 3", len(p.ids))
	}
}

// TestHookRefuses: items that the program refuses hold up no other, and are posted again after longer
// and longer waits, also after a restart. Where it does not answer, all wait.
func TestHookRefuses(t *testing.T) {
	p := newReceiver(t, "s3cret")
	l := newLife(t, newReferee(t, 30).Server, 30, address(0))
	s := l.hooked(p, "s3cret").pass(10 * time.Minute)
	defer func() { s.Close() }()
	bad, posted := map[string]bool{}, 0
	p.status = func(says notice) int {
		if posted++; len(bad) < 3 || bad[says.ID] {
			bad[says.ID] = true
			return http.StatusBadGateway
		}
		return http.StatusOK
	}
	s.show(1, 2, 3)
	var last time.Duration
	for range 8 {
		posted = 0
		for was := true; was; {
			var wait time.Duration
			if was, wait = s.postNext(t.Context(), s.hook.next); wait > time.Second {
				t.Fatalf("after a refusal others wait for %v", wait)
			}
		}
		wait := s.hook.waiting[0].Again.Sub(s.now)
		if posted != 3 || wait <= last {
			t.Fatalf("%d were posted, and the first waits for %v after %v; want 3 and more", posted, wait, last)
		}
		s.now, last = s.now.Add(3*wait/2), wait // each has up to half of it more
	}
	if page := s.get("/").Body.String(); !strings.Contains(page, "has not taken 3 of the 3 items that wait") ||
		!strings.Contains(page, "it answers 502 Bad Gateway. Each") {
		t.Errorf("the page does not say it: %.1000s", page)
	}
	for range 8 {
		s.now = s.now.Add(2 * longestWait)
		s.postNext(t.Context(), s.hook.next)
	}
	check(s.Close())
	l.Begin, posted = s.now, 0
	s = l.hooked(p, "s3cret")
	s.now = s.now.Add(2 * longestWait)
	s.show(4)
	if s.postNext(t.Context(), s.hook.next); len(p.ids) != 1 || posted != 1 {
		t.Errorf("%d were posted and %v taken; want the new one before those that were refused", posted, p.ids)
	}
	if first := s.hook.waiting[0]; first.Failures < 8 || first.Error == "" {
		t.Errorf("after a restart: %+v", first)
	}
	s.now = s.now.Add(-10 * time.Hour) // as its clock was set
	s.clock()
	if s.hook.next(s.now) == nil {
		t.Error("after the clock was set back none is posted again")
	}
	p.status = func(notice) int { panic(http.ErrAbortHandler) }
	s.hook.wait, last = time.Second, 0
	for range 5 {
		_, wait := s.postNext(t.Context(), s.hook.next)
		if wait <= last {
			t.Errorf("while there is no answer it waits for %v after %v", wait, last)
		}
		s.now, last = s.now.Add(2*longestWait), wait
	}
}

// TestHookOrder: items are posted in their order, and those that have failed after them, by their waits.
func TestHookOrder(t *testing.T) {
	const n = 100
	now, h := time.Now(), new(hook)
	for k := range n {
		name, data := hookPrefix+place{1, k}.String(), []byte("{}")
		if k < n/2 {
			data = must(json.Marshal(posting{Failures: 1, Again: now.Add(-time.Duration(k) * time.Second)}))
		}
		h.take([]store.Value{{Name: name, Data: data}})
	}
	for i := range n {
		p, want := h.next(now), n/2+i
		if i >= n/2 {
			want = n - 1 - i
		}
		if p == nil || p.place.k != want || h.failing != min(n/2, n-i) {
			t.Fatalf("after %d items of which %d failed comes %+v; want item %d", i, h.failing, p, want)
		}
		h.drop(p)
	}
	if h.next(now) != nil {
		t.Error("more wait than there are")
	}
}

// TestHookAfterClockSetBack: an item that is to wait longer than any does, as the clock was set back, is
// not held up by one that is refused again and again.
func TestHookAfterClockSetBack(t *testing.T) {
	now, h := time.Now(), new(hook)
	for k, wait := range []time.Duration{time.Minute, 30 * time.Hour} {
		data := must(json.Marshal(posting{Failures: 1, Again: now.Add(wait)}))
		h.take([]store.Value{{Name: hookPrefix + place{1, k}.String(), Data: data}})
	}
	p := h.next(now)
	if p == nil || p.place.k != 1 {
		t.Fatalf("%+v is next; want item 1", p)
	}
	h.drop(p)
	if p := h.next(now); p != nil {
		t.Errorf("%+v is next, which still waits", p)
	}
}

// TestHookOfRound: a round posts each item that waits once, those that failed before last, whichever the
// program does not take, and says so. Where it does not answer at all, the others are left for later.
func TestHookOfRound(t *testing.T) {
	p := newReceiver(t, "s3cret")
	l := newLife(t, newReferee(t, 30).Server, 30, address(0))
	const taken, refused, away = http.StatusNoContent, http.StatusUnprocessableEntity, 0
	s := l.hooked(p, "s3cret").pass(10 * time.Minute)
	for _, tt := range []struct {
		name                   string
		show                   int   // new items
		answers                []int // and to others that they are taken
		wait                   time.Duration
		posts, waits, failures int
	}{
		{"one is refused", 5, []int{taken, taken, refused}, 1, 5, 1, 1},
		{"it is refused again", 2, []int{taken, taken, refused}, 1, 3, 1, 2},
		{"it is taken", 1, nil, 1, 2, 0, 0},
		{"two are refused", 4, []int{refused, taken, refused}, 1, 4, 2, 2},
		{"they are taken", 0, nil, 1, 2, 0, 0},
		{"one gets no answer", 5, []int{taken, away}, time.Hour, 5, 1, 1},
		{"its wait is not over", 1, nil, 1, 1, 1, 1},
		{"none gets an answer", 4, []int{away, away, away, away}, 1, 2, 5, 3},
	} {
		var count atomic.Int32 // a post without an answer ends before its handler does
		p.status = func(notice) int {
			k := int(count.Add(1))
			if k > len(tt.answers) {
				return taken
			}
			if tt.answers[k-1] == away {
				panic(http.ErrAbortHandler)
			}
			return tt.answers[k-1]
		}
		var log bytes.Buffer
		s.opt.Log, s.hook.wait = slog.New(slog.NewTextHandler(&log, nil)), tt.wait
		for k := range tt.show {
			s.show(uint64(s.now.UnixMilli()) + uint64(k))
		}
		must(s.Once())
		posted, failures := int(count.Load()), 0
		for _, p := range s.hook.waiting {
			failures += p.Failures
		}
		said := strings.Count(log.String(), "does not take an item")
		if posted != tt.posts || len(s.hook.waiting) != tt.waits || failures != tt.failures ||
			said != min(1, len(tt.answers)) {
			t.Errorf("%s: %d were posted, %d wait after %d failures, and the log says it %d times; want %d, %d and %d",
				tt.name, posted, len(s.hook.waiting), failures, said, tt.posts, tt.waits, tt.failures)
		}
		l.Begin = s.now.Add(time.Minute)
		check(s.Close())
		s = l.hooked(p, "s3cret")
	}
	check(s.Close())
}

// TestHookKilled: what was not posted is posted after a kill; what was posted and not noted is posted
// again, with the same id.
func TestHookKilled(t *testing.T) {
	p := newReceiver(t, "s3cret")
	l := newLife(t, newReferee(t, 30).Server, 30, address(0))
	s := l.hooked(p, "s3cret").pass(10 * time.Minute)
	s.show(1, 2, 3)
	s.postWaiting(t.Context())
	s.show(4, 5)
	_, body, id, err := s.nextNotice(s.hook.next)
	check(err)
	must(s.hook.post(t.Context(), s.opt.Agent, body, id)) // and then it is killed
	if len(p.ids) != 4 {
		t.Fatal(p.ids)
	}
	l.Begin = s.now
	check(s.store.Close())
	again := l.hooked(p, "s3cret")
	ctx, cancel := context.WithCancel(t.Context())
	var posting sync.WaitGroup
	posting.Go(func() { again.postAll(ctx) })
	for waits := 1; waits > 0; time.Sleep(time.Millisecond) {
		again.mu.Lock()
		waits = len(again.hook.waiting)
		again.mu.Unlock()
	}
	cancel()
	posting.Wait()
	distinct := slices.Compact(slices.Sorted(slices.Values(p.ids)))
	if len(p.ids) != 6 || len(distinct) != 5 || p.ids[3] != p.ids[4] ||
		len(again.hook.waiting) > 0 || len(p.wrong) > 0 {
		t.Errorf("%q were posted; %d wait; %v", p.ids, len(again.hook.waiting), p.wrong)
	}
	// What is too old to be kept is not posted.
	again.show(6)
	again.now = again.now.Add(itemsAge + time.Hour)
	check(again.save(again.clock(), true))
	if again.postWaiting(t.Context()); len(p.ids) != 6 || len(again.hook.waiting) > 0 {
		t.Errorf("%d were posted, %d wait", len(p.ids), len(again.hook.waiting))
	}
	check(again.Close())
}

// TestRecordingOfRunning: a recording has titles and links, also of a crawler that runs. One
// that breaks off is not taken for whole.
func TestRecordingOfRunning(t *testing.T) {
	s := foldered(t, newReferee(t, 30)).pass(10 * time.Hour)
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	var got bytes.Buffer
	n, err := ExportFrom(t.Context(), &got, strings.TrimPrefix(server.URL, "http://"))
	path := filepath.Join(t.TempDir(), "log.csv")
	rows, _ := csv.NewReader(bytes.NewReader(got.Bytes())).ReadAll()
	if err != nil || n != must(s.Export(path)) || n < 30 || len(rows) != n+1 {
		t.Fatal(n, len(rows), err)
	}
	head, row := strings.Join(rows[0], ","), rows[len(rows)-1]
	if head != "source,published_unix,utility,title,link" || row[3] != "item" ||
		!strings.HasPrefix(row[4], "http://f") {
		t.Errorf("%s\n%q", head, row)
	}
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/csv")
		w.Write(got.Bytes()[:got.Len()/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer broken.Close()
	if _, err := ExportFrom(t.Context(), io.Discard, broken.URL); err == nil {
		t.Error("half of it was taken for whole")
	}
}

// impatient is a client whose connection counts writes that may take for ever, or no longer than all before.
type impatient struct {
	*httptest.ResponseRecorder
	until   time.Time
	writes  int
	forEver int
}

func (w *impatient) SetWriteDeadline(t time.Time) error {
	w.until = t
	return nil
}

func (w *impatient) Write(p []byte) (int, error) {
	if w.writes++; w.until.IsZero() {
		w.forEver++
	}
	w.until = time.Time{}
	return w.ResponseRecorder.Write(p)
}

// TestStalledExport: each part of a recording has a time of its own to reach a client, however many there
// are, so that one that takes nothing more is cut off.
func TestStalledExport(t *testing.T) {
	s := foldered(t, newReferee(t, 30)).pass(40 * time.Hour)
	w := &impatient{ResponseRecorder: httptest.NewRecorder()}
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, ExportPath, nil))
	if w.writes < 2 || w.forEver > 0 {
		t.Errorf("%d of %d writes have no time in which they are to end", w.forEver, w.writes)
	}
}

// TestHookSilent: of a program that does not answer in time it says so.
func TestHookSilent(t *testing.T) {
	silent := must(net.Listen("tcp", "127.0.0.1:0"))
	defer silent.Close()
	h := &hook{url: "http://" + silent.Addr().String()}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if answers, err := h.post(ctx, "me", nil, "1"); answers || fmt.Sprint(err) != "no answer within 10s" {
		t.Errorf("it answers %v, %v", answers, err)
	}
}
