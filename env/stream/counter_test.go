package stream

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// The counter from the key 0 is SplitMix64 from the seed 0, as its authors publish it,
// and another key begins anywhere else.
func TestCounter(t *testing.T) {
	c := NewCounter(0)
	for n, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		if got := c.Uint64(); got != want {
			t.Errorf("draw %d is %#x; want %#x", n, got, want)
		}
	}
	first, second := NewCounter(Key(1, 2, 3)), NewCounter(Key(Key(1, 2), 3))
	if a, b := first.Uint64(), second.Uint64(); a != b {
		t.Errorf("a path begins with %#x, and in two parts with %#x", a, b)
	}
}

// The exponential draws of one stream, and the first of many, which begin at keys in a
// row: moments, and the distribution by Kolmogorov and Smirnov, in the tail too.
func TestCounterExponential(t *testing.T) {
	const n = 2_000_000
	long, many := make([]float64, n), make([]float64, n)
	c := NewCounter(Key(5, Test))
	for k := range long {
		long[k] = c.ExpFloat64()
		one := NewCounter(Key(7, Test, uint64(k)))
		many[k] = one.ExpFloat64()
	}
	for _, tt := range []struct {
		name string
		x    []float64
	}{{"of one stream", long}, {"first of many", many}} {
		t.Run(tt.name, func(t *testing.T) {
			x := tt.x
			mean, variance := stat.MeanVariance(x, nil)
			// Of n draws the mean has variance 1/n, and the variance 8/n.
			if math.Abs(mean-1) > 4/math.Sqrt(n) || math.Abs(variance-1) > 4*math.Sqrt(8./n) {
				t.Errorf("mean %v, variance %v; want 1 and 1", mean, variance)
			}
			if r := stat.Correlation(x[1:], x[:n-1], nil); math.Abs(r) > 4/math.Sqrt(n) {
				t.Errorf("draws in a row have the correlation %v", r)
			}
			slices.Sort(x)
			var apart float64
			for k, v := range x {
				apart = max(apart, math.Abs(-math.Expm1(-v)-(float64(k)+.5)/n))
			}
			if apart > 1.95/math.Sqrt(n) { // one in a thousand is further
				t.Errorf("the distribution is %v from the exponential one", apart)
			}
			above, _ := slices.BinarySearch(x, lastLayer)
			tail, want := float64(n-above), n*math.Exp(-lastLayer)
			if math.Abs(tail-want) > 4*math.Sqrt(want) {
				t.Errorf("%v draws are above %v; want %v", tail, lastLayer, want)
			}
		})
	}
}

// The layers have one area, their corners are on the curve, and the uppermost ends at
// its top.
func TestZiggurat(t *testing.T) {
	for i := 1; i < 256; i++ {
		z := layers[i]
		if area := z.rise * z.width * (1 << 53); math.Abs(area/layerArea-1) > 1e-11 {
			t.Errorf("layer %d has the area %v; want %v", i, area, layerArea)
		}
	}
	if tail := layers[0].width*(1<<53)*math.Exp(-lastLayer) - layerArea; math.Abs(tail) > 1e-15 {
		t.Errorf("layer 0 is off by %v", tail)
	}
}

func BenchmarkExpFloat64(b *testing.B) {
	c := NewCounter(1)
	for b.Loop() {
		c.ExpFloat64()
	}
}
