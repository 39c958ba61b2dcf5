package crawl

import (
	"io"
	"math/rand/v2"
	"testing"
	"time"
)

// TestPerHour: in no hour are there more requests than allowed, at whatever times the
// crawler gets to run, and however often it is killed; and nearly as many as allowed.
func TestPerHour(t *testing.T) {
	for _, perHour := range []float64{60, 7} {
		r := newReferee(t, perHour)
		var urls []string
		for k := range 100 {
			urls = append(urls, address(k*len(kinds)))
		}
		l := newLife(t, r.Server, perHour, urls...)
		rng := rand.New(rand.NewPCG(3, 1))
		const hours = 36
		s := l.open(io.Discard)
		end := s.now.Add(hours * time.Hour)
		for next := s.now; s.now.Before(end); s.now = s.now.Add(time.Duration(1+rng.IntN(400)) * time.Second) {
			if s.now.After(next) {
				next = s.now.Add(2 * time.Hour)
				s.Wait()
				check(s.store.Close()) // what was learned is not saved
				s.Begin = s.now
				s = s.life.open(io.Discard)
			}
			for s.round() > 0 {
			}
		}
		check(s.Close())
		for rule, breaches := range r.wrong {
			t.Errorf("%v an hour: %s: %d times, such as %s", perHour, rule, len(breaches), breaches[0])
		}
		if float64(r.looks) < .9*hours*perHour {
			t.Errorf("%v an hour: %d requests in %d hours", perHour, r.looks, hours)
		}
	}
}
