package stream

import "math"

// Counter is SplitMix64 (Steele, Lea and Flood, 2014): its nth output is a hash of n
// and a key, so that a stream begins at once, whatever its key. It is for the many
// short streams of a world, each of a few draws; [Rand] is for one that a policy
// draws from for long.
type Counter struct{ next uint64 }

// weyl is the step of the counter, 2⁶⁴ over the golden ratio, odd.
const weyl = 0x9e3779b97f4a7c15

// NewCounter returns the stream of a key.
func NewCounter(key uint64) Counter { return Counter{next: key} }

// Key returns the key of a path below another key.
func Key(key uint64, path ...uint64) uint64 {
	for _, p := range path {
		key = Mix(key ^ p)
	}
	return key
}

// Uint64 returns the next 64 random bits.
func (c *Counter) Uint64() uint64 {
	z := Mix(c.next)
	c.next += weyl
	return z
}

// Float64 returns a uniform draw from (0, 1].
func (c *Counter) Float64() float64 { return float64(c.Uint64()>>11+1) * 0x1p-53 }

// ExpFloat64 returns an exponential draw of mean 1, by the ziggurat of Marsaglia and
// Tsang (Journal of Statistical Software 5(8), 2000): 256 layers of equal area under
// e^(−x), of which a draw falls into the rectangle of its layer 989 times in 1000.
func (c *Counter) ExpFloat64() float64 {
	for {
		u := c.Uint64()
		layer, depth := &layers[u&255], u>>11
		x := float64(depth) * layer.width
		switch {
		case depth < layer.inside:
			return x
		case u&255 == 0: // beyond the last layer the law begins anew
			return lastLayer - math.Log(c.Float64())
		case layer.low+c.Float64()*layer.rise < math.Exp(-x):
			return x
		}
	}
}

// layer is one of the ziggurat. Depths are 53 random bits.
type layer struct {
	inside    uint64  // depths below it are under the curve at any height
	width     float64 // of one depth
	low, rise float64 // e^(−x) at its right end, and by how much that is more at its left
}

const (
	lastLayer = 7.69711747013104972  // x where the layers end, for 256 of them
	layerArea = 3.949659822581572e-3 // of each; that of layer 0 with all beyond lastLayer
)

var layers = func() (z [256]layer) {
	const depths = 1 << 53
	// Layer i lies between x[i+1] and x[i] at its right end: x[1] is the end of all, and
	// (e^(−x[i+1]) − e^(−x[i]))·x[i] is the area.
	base := layerArea / math.Exp(-lastLayer) // width of layer 0
	z[0] = layer{inside: uint64(lastLayer / base * depths), width: base / depths}
	right := lastLayer
	for i := 255; i > 0; i-- {
		left := 0.
		if i > 1 {
			left = -math.Log(layerArea/right + math.Exp(-right))
		}
		low := math.Exp(-right)
		z[i] = layer{
			inside: uint64(left / right * depths),
			width:  right / depths,
			low:    low,
			rise:   math.Exp(-left) - low,
		}
		right = left
	}
	return z
}()
