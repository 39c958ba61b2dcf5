package store

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ephemera/live/schedule"
)

// TestUpgrade: a store that was written in format 1 is served as before. Its URLs u00 to u39 were
// due at 10 s, 11 s and so on, each fifth completed; each third belongs to a queue. At 20 s two
// of k0 and two of k1 were handed out for a minute. A crawl "empty" has a queue without URLs.
func TestUpgrade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "format1")
	if err := os.CopyFS(dir, os.DirFS("testdata/format1")); err != nil {
		t.Fatal(err)
	}
	want := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	for opened := range 2 {
		now := int64(20_500)
		s, err := Open(dir, &Options{Now: showing(&now)})
		if err != nil {
			t.Fatal(err)
		}
		s.View(func(sched *schedule.Schedule) {
			want("crawl", sched.Counts("c"),
				schedule.Counts{Queues: 3, Active: 3, Scheduled: 32, Held: 4, Completed: 8})
			want("queue", sched.Lookup("c", "k1").Counts(),
				schedule.Counts{Queues: 1, Active: 1, Scheduled: 10, Held: 2, Completed: 3})
			want("limits", sched.Lookup("c", "k1").Limits, schedule.Limits{Delay: 7, Last: 20_000, Most: 1000})
			want("blocked", sched.Lookup("c", "k2").Blocked, 77_000)
			want("empty", sched.Counts("empty"), schedule.Counts{Queues: 1})
		})
		if value, err := s.Value("v"); err != nil || string(value) != "value" {
			t.Errorf("the value is %q, %v", value, err)
		}
		if opened == 1 {
			// Of k0 u00 and u03 are held, of k1 u01 and u07, as u04 is completed.
			for _, tt := range []struct {
				now  int64
				want string
			}{
				{21_000, "u06@16000 data 6 u10@20000 data 10"}, // of k0 u09 is completed
				{76_999, "u12@22000 data 12 u15@25000 data 15 u18@28000 data 18 u21@31000 data 21 " +
					"u27@37000 data 27 u30@40000 data 30 u33@43000 data 33 u36@46000 data 36 " +
					"u13@23000 data 13 u16@26000 data 16 u22@32000 data 22 u25@35000 data 25 " +
					"u28@38000 data 28 u31@41000 data 31 u37@47000 data 37"},
			} {
				got := []string{}
				now = tt.now
				taken, err := s.Take(&schedule.Request{Hold: 1000_000}, math.MaxInt)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range taken {
					got = append(got, fmt.Sprintf("%s@%d %s", r.URL, r.Due, r.Data))
				}
				want(fmt.Sprint(tt.now), strings.Join(got, " "), tt.want)
			}
			now = 80_000
			taken, err := s.Take(&schedule.Request{Hold: 1000_000, Key: "k1", Crawl: "c"}, math.MaxInt)
			if err != nil || len(taken) != 2 || taken[0].URL != "u01" || taken[0].Created != 1000 {
				t.Errorf("after the holds: %v, %v", taken, err)
			}
		}
		s.Close()
	}
}

// TestProgram: a store is refused to another program than the one that made it; where stores had no
// names yet, what is in it says which one that was.
func TestProgram(t *testing.T) {
	for _, tt := range []struct{ maker, value, is, other string }{
		{"crawl", "value", "crawl", "frontier"},
		{"", "snapshot", "crawl", "frontier"},
		{"", "value", "frontier", "crawl"},
	} {
		dir := t.TempDir()
		s, err := Open(dir, &Options{Program: tt.maker})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.SetValue(tt.value, []byte("1")), s.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, &Options{Program: tt.other}); !errors.Is(err, ErrOther) {
			t.Fatalf("%+v: it opens: %v", tt, err)
		}
		if s, err = Open(dir, &Options{Program: tt.is}); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}
