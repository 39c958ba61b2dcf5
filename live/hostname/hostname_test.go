package hostname

import "testing"

// TestOf: databases have queues, blocks and rules of robots.txt under these names.
func TestOf(t *testing.T) {
	for _, tt := range []struct{ host, want string }{
		{"H.com", "h.com"},
		{"H.com.", "h.com."},
		{"MÜNCHEN.example", "xn--mnchen-3ya.example"},
		{"xn--MNCHEN-3ya.example", "xn--mnchen-3ya.example"},
		{"straße.example", "xn--strae-oqa.example"},
		{"A_b.example", "a_b.example"},
		{"R3---sn.example", "r3---sn.example"},
		{"xn--A.example", "xn--a.example"},
		{"2001:DB8::1", "2001:db8::1"},
		{"", ""},
	} {
		if got := Of(tt.host); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.host, got, tt.want)
		}
	}
}
