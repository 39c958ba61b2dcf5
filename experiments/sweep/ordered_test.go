package sweep

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// Pieces come in order and each once, whatever the number of goroutines; the
// first error in the order of the pieces is the one returned, nothing behind it
// is taken, few pieces wait, and no goroutine is at work in the end.
func TestOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "n")
		workers := rapid.IntRange(0, 9).Draw(t, "workers")
		makeFails := rapid.SliceOfN(rapid.IntRange(0, 300), 0, 3).Draw(t, "makeFails")
		takeFails := rapid.IntRange(0, 300).Draw(t, "takeFails")

		want, wantErr := []int{}, ""
		for i := range n {
			if slices.Contains(makeFails, i) {
				wantErr = fmt.Sprint("make ", i)
				break
			}
			if want = append(want, i); i == takeFails {
				wantErr = fmt.Sprint("take ", i)
				break
			}
		}

		var waiting, most, held atomic.Int64
		got := []int{}
		err := ordered(n, workers, func() func(int) (int, error) {
			return func(i int) (int, error) {
				held.Add(1)
				defer held.Add(-1)
				if w := waiting.Add(1); w > most.Load() {
					most.Store(w)
				}
				if slices.Contains(makeFails, i) {
					return 0, fmt.Errorf("make %d", i)
				}
				return i, nil
			}
		}, func(i int) error {
			waiting.Add(-1)
			if got = append(got, i); i == takeFails {
				return fmt.Errorf("take %d", i)
			}
			return nil
		})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !slices.Equal(got, want) || text != wantErr {
			t.Fatalf("took %v, error %q; want %v, %q", got, text, want, wantErr)
		}
		if most.Load() > int64(2*max(workers, 1)) {
			t.Fatalf("%d pieces waited for %d workers", most.Load(), workers)
		}
		if held.Load() != 0 {
			t.Fatalf("%d goroutines are still at work", held.Load())
		}
	})
}
