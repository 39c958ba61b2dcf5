package plain

import "testing"

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
