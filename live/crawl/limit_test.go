package crawl

import (
	"context"
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

// TestOncePerHour: a round makes no more requests than those of an hour, also a long time
// after the last one, and the next one none before the hour is over.
func TestOncePerHour(t *testing.T) {
	r := newReferee(t, 3)
	var urls []string
	for k := range 12 {
		urls = append(urls, address(k*len(kinds)))
	}
	l := newLife(t, r.Server, 3, urls...)
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 3}, {20 * time.Minute, 0}, {10 * time.Hour, 3}} {
		l.Begin = l.Begin.Add(tt.after)
		s := l.open(io.Discard)
		if n, err := s.Once(context.Background()); n != tt.want || err != nil {
			t.Errorf("%v later: %d requests, %v; want %d", tt.after, n, err, tt.want)
		}
		check(s.Close())
	}
}
