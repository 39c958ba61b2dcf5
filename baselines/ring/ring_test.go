package ring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAgainstMap plays random calls on a ring and on a map of wake epochs.
func TestAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, wake := New(rapid.IntRange(0, 8).Draw(t, "sources"), rapid.IntRange(1, 20).Draw(t, "turn")), map[int]int{}
		next := 0
		for range rapid.IntRange(1, 80).Draw(t, "calls") {
			i, epoch := rapid.IntRange(0, 12).Draw(t, "source"), next+rapid.IntRange(-3, 50).Draw(t, "sleep")
			switch op := rapid.IntRange(0, 4).Draw(t, "call"); {
			case op < 2:
				r.Add(i, epoch)
				wake[i] = max(epoch, next)
			case op == 2:
				r.Remove(i)
				delete(wake, i)
			case op == 3:
				var want []int32
				for i, w := range wake {
					if w <= epoch {
						want = append(want, int32(i))
						delete(wake, i)
					}
				}
				slices.Sort(want)
				if got := r.Due(nil, epoch); !slices.Equal(got, want) {
					t.Fatalf("due at %d: %v, want %v", epoch, got, want)
				}
				next = max(next, epoch+1)
			case op == 4:
				var want []int32
				for i, w := range wake {
					if w == epoch {
						want = append(want, int32(i))
					}
				}
				slices.Sort(want)
				if got := r.At(nil, epoch); !slices.Equal(got, want) {
					t.Fatalf("at %d: %v, want %v", epoch, got, want)
				}
			}
			if w, ok := r.Wake(i); ok != hasKey(wake, i) || w != wake[i] {
				t.Fatalf("source %d wakes at %d, %v; want %d", i, w, ok, wake[i])
			}
			if r.Next() != next {
				t.Fatalf("next epoch %d; want %d", r.Next(), next)
			}
		}
	})
}

func hasKey(m map[int]int, i int) bool { _, ok := m[i]; return ok }

// BenchmarkDue wakes a thousandth of the sources at every epoch and has them
// sleep again.
func BenchmarkDue(b *testing.B) {
	for _, n := range []int{1e3, 1e5, 1e6} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r, rnd := New(n, 2048), rand.New(rand.NewPCG(1, 2))
			for i := range n {
				r.Add(i, rnd.IntN(2000))
			}
			var ids []int32
			woken := 0
			b.ReportAllocs()
			for epoch := 0; b.Loop(); epoch++ {
				ids = r.Due(ids[:0], epoch)
				for _, i := range ids {
					r.Add(int(i), epoch+500+rnd.IntN(1000))
				}
				woken += len(ids)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(max(1, woken)), "ns/source")
		})
	}
}
