package plain

import "testing"

// What does not print is written out, and what does stays.
func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"Zürich, 20\u00a0% – ü̈": "Zürich, 20\u00a0% – ü̈", "a\x1b[2Jb": `a\x1b[2Jb`, "x\x07\r\ty": `x\a\r\ty`, "a\u202eb\u009bc": `a\u202eb\u009bc`, "bad\xffend": `bad\xffend`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q is shown as %q; want %q", text, got, want)
		}
	}
}
