package plain

import (
	"slices"
	"strings"
	"testing"
)

// What does not print is written out, and what does stays.
func TestText(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"words of other languages", "Zürich, 20\u00a0% – ü̈", "Zürich, 20\u00a0% – ü̈"},
		{"escapes of terminals", "a\x1b[2Jb", `a\x1b[2Jb`},
		{"controls", "x\x07\r\ty", `x\a\r\ty`},
		{"marks of direction", "a\u202eb\u009bc", `a\u202eb\u009bc`},
		{"no UTF-8", "bad\xffend", `bad\xffend`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Text(tt.text); got != tt.want {
				t.Errorf("%q is shown as %q; want %q", tt.text, got, tt.want)
			}
		})
	}
}

// TestNatural: names stand as people order them.
func TestNatural(t *testing.T) {
	want := []string{"1", "Feed 1", "feed 2", "Feed 10", "feed 10b", "Feed 100", "Zebra", "Äther"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(Natural(a), Natural(b)) })
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
