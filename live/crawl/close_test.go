package crawl

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// slowly is a client that has something happen when it gets the first bytes of an answer.
type slowly struct {
	*httptest.ResponseRecorder
	first func()
}

func (w *slowly) Write(p []byte) (int, error) {
	if w.first != nil {
		w.first()
		w.first = nil
	}
	return w.ResponseRecorder.Write(p)
}

// TestCloseMeanwhile: a crawler is closed while it answers, and is asked afterwards. An export that is cut short
// is not taken for whole.
func TestCloseMeanwhile(t *testing.T) {
	r := newReferee(t, 30)
	s := newLife(t, r.Server, 30, address(0), address(1), address(2)).open(t.Output()).pass(24 * time.Hour)
	closed := make(chan error, 1)
	export := &slowly{httptest.NewRecorder(), func() {
		go func() { closed <- s.Close() }()
		time.Sleep(100 * time.Millisecond)
	}}
	answer := func(w http.ResponseWriter, path string) (aborted any) {
		defer func() { aborted = recover() }()
		s.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return nil
	}
	if aborted := answer(export, ExportPath); aborted != http.ErrAbortHandler {
		t.Errorf("the export ends with %v, want %v", aborted, http.ErrAbortHandler)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/", ExportPath, "/items.json", "/metrics", "/opml"} {
		answer(httptest.NewRecorder(), path)
	}
	s.comparisons.Wait()
}
