package critic

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPaperSteps: "An example is: for some c ∈ (0, 1), a(n) = c/⌈n/500⌉,
// b(n) = c/⌈n/1000⌉^(2/3)" (Allerton, section IV).
func TestPaperSteps(t *testing.T) {
	a, err := ParseSteps("0.3/ceil(n/500)")
	if err != nil {
		t.Fatal(err)
	}
	b, err := ParseSteps("0.3/ceil(n/1000)^2/3")
	if err != nil {
		t.Fatal(err)
	}
	h, inOrder := Harmonic(), b.InOrder()
	for _, n := range []int{1, 2, 499, 500, 501, 999, 1000, 1001, 2000, 2001, 9999, 10000, 123457, 400} {
		want := .3 / math.Ceil(float64(n)/500)
		if got := a.At(n); got != want {
			t.Errorf("a(%d) = %v; want %v", n, got, want)
		}
		want = .3 / math.Pow(math.Ceil(float64(n)/1000), 2./3)
		if got := b.At(n); math.Abs(got-want) > 1e-15 {
			t.Errorf("b(%d) = %v; want %v", n, got, want)
		}
		if got := inOrder(n); got != b.At(n) {
			t.Errorf("b(%d) = %v in order; want %v", n, got, b.At(n))
		}
		if got := h.At(n); got != 1/float64(n+1) {
			t.Errorf("1/(n+1) at %d is %v", n, got)
		}
	}
}

func TestStepsText(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Steps
	}{
		{"1/(n+1)", Harmonic()},
		{"0.05 / ceil(n/500)", Steps{Scale: .05, Block: 500, Power: 1}},
		{".5/ceil(n/1000)^2/3", Steps{Scale: .5, Block: 1000, Power: 2. / 3}},
		{"0.5,1000,2/3", Steps{Scale: .5, Block: 1000, Power: 2. / 3}},
		{"1e-3", Constant(1e-3)},
		{"1/n", Steps{Scale: 1, Block: 1, Power: 1}},
		{"2/(n+10)^.75", Steps{Scale: 2, Block: 1, Power: .75, Shift: 10}},
		{"2/ceil((n+10)/20)^0.75", Steps{Scale: 2, Block: 20, Power: .75, Shift: 10}},
		{"1/20", Constant(1. / 20)},
	} {
		t.Run(tt.text, func(t *testing.T) {
			if got, err := ParseSteps(tt.text); err != nil || got != tt.want {
				t.Errorf("%q is %+v, error %v; want %+v", tt.text, got, err, tt.want)
			}
		})
	}
}

func TestStepsTextErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "not understood"},
		{"1/(n+1", "not understood"},
		{"1/(n+1)x", "not understood"},
		{"1/ceil(n)", "not understood"},
		{"1/n+3", "not understood"},
		{"0.5/n^2/3)", "not understood"},
		{"1/(n+-3)", "not understood"},
		{"-1/(n+1)", "scale c is -1"},
		{"NaN", "scale c is NaN"},
		{"1/0", "scale c is +Inf"},
		{"1/ceil(n/0)", "block is 0"},
		{"1/n^-1", "power is -1"},
		{"1/ceil(n/9999999999999)", "block is"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			_, err := ParseSteps(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: error %v; want one line with %q", tt.text, err, tt.want)
			}
		})
	}
}

func TestStepsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Steps{
			Scale: rapid.Float64Range(1e-6, 10).Draw(t, "scale"),
			Block: rapid.IntRange(1, 50).Draw(t, "block"),
			Power: rapid.SampledFrom([]float64{0, .5, 1. / 3, 2. / 3, .75, 1, 1.5, .123}).Draw(t, "power"),
			Shift: rapid.IntRange(0, 70).Draw(t, "shift"),
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Steps
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if back != s {
			t.Fatalf("%+v became %s and %+v", s, text, back)
		}
	})
}
