package stats

import (
	"fmt"
	"math"

	"ephemera/env/stream"
)

// Blocks estimates the mean of a series, such as the interest earned on each
// day of a recording. Neighbouring days depend on each other, so whole blocks
// of consecutive days are resampled (the circular block bootstrap of Politis
// and Romano, 1992, in which every day is in as many blocks). It panics unless
// length is from 1 to len(x). N is the number of days; the interval needs at
// least [MinSeeds] blocks.
func (b *Bootstrap) Blocks(x []float64, length int) Estimate {
	one := make([]float64, len(x))
	for i := range one {
		one[i] = 1
	}
	return b.RatioBlocks(x, one, length)
}

// PairedBlocks estimates the mean difference x − ref of two series over the
// same days; both are resampled together.
func (b *Bootstrap) PairedBlocks(x, ref []float64, length int) Estimate {
	return b.Blocks(differences(x, ref), length)
}

// RatioBlocks estimates Σ num / Σ den over the same days, such as what a policy
// earned over what the reference earned; both are resampled together.
func (b *Bootstrap) RatioBlocks(num, den []float64, length int) Estimate {
	n := len(num)
	if len(den) != n {
		panic(fmt.Sprintf("stats: %d days against %d; pairs need as many", n, len(den)))
	}
	if n == 0 {
		e, _ := begin(math.NaN(), 0)
		return e
	}
	if length < 1 || length > n {
		panic(fmt.Sprintf("stats: blocks of %d days; allowed is 1 to %d", length, n))
	}
	var sn, sd float64
	for i := range num {
		sn += num[i]
		sd += den[i]
	}
	e, ok := begin(sn/sd, n)
	if !ok {
		if n < MinSeeds {
			e.Warning = fmt.Sprintf("need at least %d days for an interval", MinSeeds)
		}
		return e
	}
	if blocks := n / length; blocks < MinSeeds {
		e.Warning = fmt.Sprintf("need at least %d blocks for an interval; %d days give %d of %d", MinSeeds, n, blocks, length)
		return e
	}
	rng := stream.New(b.seed, stream.Bootstrap, 3<<32, uint64(n), uint64(length))
	dist := make([]float64, b.resamples)
	for r := range dist {
		sn, sd = 0, 0
		for left := n; left > 0; left -= length {
			at := rng.Intn(n)
			for k := range min(length, left) {
				i := at + k
				if i >= n {
					i -= n
				}
				sn += num[i]
				sd += den[i]
			}
		}
		dist[r] = sn / sd
	}
	b.interval(&e, dist)
	return e
}
