package store

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ephemera/live/schedule"
)

// TestClose: reads that are under way end before the files are closed, and each call says afterwards that the
// store is closed.
func TestClose(t *testing.T) {
	id := schedule.ID{Crawl: "c", Key: "k", URL: "u0"}
	filled := func(t *testing.T) *Store {
		s, err := Open(filepath.Join(t.TempDir(), "s"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 100 {
			id := schedule.ID{Crawl: "c", Key: "k", URL: fmt.Sprint("u", k)}
			if _, err := s.Put(id, 1000, 1000, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.SetValue("name", []byte("1")); err != nil {
			t.Fatal(err)
		}
		return s
	}

	t.Run("after", func(t *testing.T) {
		s := filled(t)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		calls := map[string]func() error{
			"Backup":   func() error { return s.Backup(filepath.Join(t.TempDir(), "copy")) },
			"Change":   func() error { _, _, err := s.Change("c", "k", func(*schedule.Limits) {}); return err },
			"Discover": func() error { _, _, err := s.Discover(id, 1, 1, nil); return err },
			"Find":     func() error { _, err := s.Find(id); return err },
			"Hasten":   func() error { _, err := s.Hasten([]schedule.ID{id}); return err },
			"Put":      func() error { _, err := s.Put(id, 1, 1, nil); return err },
			"Queues":   func() error { return s.Queues("c", func(string, bool) bool { return true }) },
			"Remove":   func() error { _, err := s.Remove("c", nil); return err },
			"RemoveBefore": func() error {
				_, err := s.RemoveBefore("c", "", math.MaxInt64, func(schedule.ID) {})
				return err
			},
			"SetData":  func() error { _, err := s.SetData(id, nil); return err },
			"SetValue": func() error { return s.SetValue("name", nil) },
			"Settle":   s.Settle,
			"Shift":    func() error { return s.Shift(time.Hour, nil) },
			"Take":     func() error { _, err := s.Take(&schedule.Request{Hold: 1}, 10); return err },
			"URLs":     func() error { return s.URLs("", "", func(*Record) bool { return true }) },
			"Value":    func() error { _, err := s.Value("name"); return err },
			"Values":   func() error { return s.Values("", "", func(string, []byte) bool { return true }) },
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, errClosed) {
				t.Errorf("%s: the error is %v, want %v", name, err, errClosed)
			}
		}
		s.View(func(*schedule.Schedule) {})
		s.Moment()
	})

	t.Run("during a read", func(t *testing.T) {
		s := filled(t)
		closed := make(chan error)
		n := 0
		var within error
		err := s.URLs("", "", func(*Record) bool {
			if n++; n > 1 {
				return true
			}
			go func() { closed <- s.Close() }()
			for within == nil { // until it waits
				_, within = s.Find(id)
			}
			select {
			case err := <-closed:
				t.Errorf("it is closed while a record is read: %v", err)
			case <-time.After(50 * time.Millisecond):
			}
			return true
		})
		if n != 1 || !errors.Is(err, errClosed) || !errors.Is(within, errClosed) {
			t.Errorf("the read goes on for %d records and ends with %v, one within it with %v; want 1, %v",
				n, err, within, errClosed)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})

	t.Run("during all calls", func(t *testing.T) {
		for seed := range uint64(10) {
			s := filled(t)
			var wg sync.WaitGroup
			for caller := range uint64(8) {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(seed, caller))
					var err error
					for err == nil {
						if caller == 0 {
							err = s.Backup(filepath.Join(t.TempDir(), "copy"))
						} else if err = call(s, r, 1e12); err == nil {
							err = s.URLs("", "", func(*Record) bool { return true })
						}
					}
					if !errors.Is(err, errClosed) {
						t.Errorf("a call ends with %v, want %v", err, errClosed)
					}
				})
			}
			time.Sleep(20 * time.Millisecond)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
		}
	})
}
