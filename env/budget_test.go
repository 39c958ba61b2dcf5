package env

import "testing"

// Costs that add up to the budget fit, whatever their sum's last bits are.
func TestFits(t *testing.T) {
	a, b, c := 0.1, 0.2, 0.3
	if !(a+b+c > 0.6) {
		t.Fatal("the sum is not rounded up; the test needs one that is")
	}
	if !Fits(a+b+c, 0.6) {
		t.Error(".1 + .2 + .3 does not fit into .6")
	}
	if Fits(0.6+1e-6, 0.6) {
		t.Error("a millionth above the budget fits")
	}
}
