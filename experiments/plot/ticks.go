package plot

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// mostSteps is how many steps from label to label an axis has at most: so many leave room
// for labels of seven digits.
const mostSteps = 6

// evenTicks returns the multiples of a step from lo to hi, all with a label. The step is the
// least of 1, 2 and 5 times a power of ten that is not too small for that.
func evenTicks(lo, hi float64) (ticks []plot.Tick) {
	least := (hi - lo) / mostSteps
	power := math.Floor(math.Log10(least))
	unit := math.Pow(10, power)
	times := 10.
	for _, t := range []float64{5, 2, 1} {
		if t*unit >= least {
			times = t
		}
	}
	step, digits := times*unit, max(0, -int(power))
	if times == 10 {
		digits = max(0, digits-1)
	}
	// Digits of the greatest of them, down to those in which they differ.
	significant := max(6, 1+int(math.Floor(math.Log10(max(math.Abs(lo), math.Abs(hi)))-power)))
	const rounding = 1e-9 // of a step
	for k := math.Ceil(lo/step - rounding); k <= hi/step+rounding; k++ {
		v := k*step + 0 // not -0
		label := strconv.FormatFloat(v, 'f', digits, 64)
		if math.Abs(v) >= 1e7 || digits > 5 {
			label = strconv.FormatFloat(v, 'g', significant, 64)
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: label})
	}
	return ticks
}

// fewTimes is the factor over which the labels of a logarithmic axis are those of an even
// one: powers of ten alone would leave it with one label or none.
const fewTimes = 5

// logTicks returns ticks from 10^lo to 10^hi as their logarithms: where the axis spans less
// than two powers of ten 1, 2 and 5 times each have labels, else the powers alone.
func logTicks(lo, hi float64) (ticks []plot.Tick) {
	from, to := math.Pow(10, lo), math.Pow(10, hi)
	if to < fewTimes*from {
		ticks = evenTicks(from, to)
	} else {
		ticks = plot.LogTicks{Prec: -1}.Ticks(from, to)
	}
	for i := range ticks {
		t := &ticks[i]
		digit := t.Value / math.Pow(10, math.Floor(math.Log10(t.Value)))
		if hi-lo < 2 && t.Label == "" && (math.Abs(digit-2) < .1 || math.Abs(digit-5) < .1) {
			t.Label = strconv.FormatFloat(t.Value, 'g', 3, 64)
		}
		t.Value = math.Log10(t.Value)
	}
	return ticks
}
