package stream

import (
	"math"
	"testing"
)

// The first outputs of SplitMix64 from the seed 0, as its authors publish them.
func TestMixIsSplitMix64(t *testing.T) {
	const weyl = 0x9e3779b97f4a7c15
	var state uint64
	for _, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := Mix(state); got != want {
			t.Errorf("Mix(%#x) is %#x, want %#x", state, got, want)
		}
		state += weyl
	}
}

// Streams never change: results that were published can be had again.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		path []uint64
		want uint64
	}{
		{1, []uint64{World}, 0xd5b1cf07007790e9},
		{1, []uint64{Policy}, 0x76a7aa2ff9cd9d58},
		{2, []uint64{World, 3, 4}, 0x316f8e0b0c3c37c2},
	} {
		if got := New(c.seed, c.path...).Uint64(); got != c.want {
			t.Errorf("New(%d, %v) begins with %#x, want %#x", c.seed, c.path, got, c.want)
		}
	}
}

func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64][]uint64{}
	for seed := range uint64(20) {
		for role := range uint64(5) {
			for i := range uint64(20) {
				path := []uint64{seed, role, i}
				v := New(seed, role, i).Uint64()
				if other, ok := seen[v]; ok {
					t.Fatalf("%v and %v begin alike", path, other)
				}
				seen[v] = path
			}
		}
	}
}

// Near seeds give unrelated streams: the first draws of a thousand seeds in a
// row look like independent ones.
func TestNearSeeds(t *testing.T) {
	const n = 1000
	var sum, cross, last float64
	for seed := range uint64(n) {
		v := New(seed, World).Float64() - 0.5
		sum += v
		cross += v * last
		last = v
	}
	// Standard errors: √(1/12n) of the mean, 1/(12√n) of the product.
	if m := sum / n; math.Abs(m) > 4*math.Sqrt(1./12/n) {
		t.Errorf("mean of the first draws is off by %v", m)
	}
	if c := cross / n; math.Abs(c) > 4./12/math.Sqrt(n) {
		t.Errorf("first draws of neighbouring seeds have covariance %v", c)
	}
}

func TestState(t *testing.T) {
	a := New(7, Test)
	a.Uint64()
	b := New(8, Test)
	if err := b.SetState(a.State()); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if x, y := a.Float64(), b.Float64(); x != y {
			t.Fatalf("streams of one state drew %v and %v", x, y)
		}
	}
	if err := b.SetState([]byte("short")); err == nil {
		t.Error("a state of five bytes was taken")
	}
	a.Reset(7, Test)
	if got, want := a.Uint64(), New(7, Test).Uint64(); got != want {
		t.Errorf("after Reset %#x, want %#x", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { a.Reset(3, 1, 2) }); n != 0 {
		t.Errorf("Reset allocates %v times", n)
	}
}
