package critic

import (
	"math"
	"strings"
	"testing"
)

// Any text gives an error that quotes it, or step sizes that are above 0 and
// read back as they are written.
func FuzzSteps(f *testing.F) {
	for _, text := range []string{"1/(n+1)", "0.5/n^0.6", "c/ceil(n/500)", "2/ceil((n+3)/10)^1/2", "0.25", "1/0", "-1", "1e400"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSteps(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "step ") {
				t.Errorf("error %q", err)
			}
			return
		}
		if again, err := ParseSteps(s.String()); err != nil || again != s {
			t.Errorf("%q is %+v, written %q, which is %+v, %v", text, s, s.String(), again, err)
		}
		for _, n := range []int{1, 2, 1000, 1e9} {
			if v := s.At(n); !(v >= 0) || math.IsInf(v, 0) {
				t.Errorf("%q: a(%d) is %v", text, n, v)
			}
		}
	})
}
