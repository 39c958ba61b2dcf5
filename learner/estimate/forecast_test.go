package estimate

import (
	"math"
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// TestForecastRedo: sums taken to another decay rate are nearly those that
// would have been gathered under it.
func TestForecastRedo(t *testing.T) {
	r := stream.New(5, stream.World)
	crawl := env.Crawled{Age: 4}
	for k := 200; k > 0; k-- {
		age := 4 * float64(k) / 201
		crawl.Items = append(crawl.Items, env.Item{Age: age, Interest: math.Exp(-.3*age + .5*r.NormFloat64())})
	}
	set := Settings{Horizon: 2000, Profile: "mixed", Memory: "mixed", Tails: "cut"}
	gather := func(c float64) *series {
		var f Forecast
		f.Init(env.Terms{Costs: []float64{1}, Start: 1704067200, Length: 3600}, set)
		f.Spread = .5
		f.Add(crawl, 10, c, 0)
		return &f.src[0]
	}
	got, want := gather(.2), gather(.3)
	got.redo(.3)
	for _, v := range []struct {
		name      string
		got, want float64
		off       float64
	}{
		{"interest", got.Got[0], want.Got[0], .02}, {"raw interest", got.Raw, want.Raw, .02},
		{"squares", got.Cut2, want.Cut2, .05}, {"Σ ln ξ", got.Log / got.N, want.Log / want.N, .01},
		{"spread", got.Log2/got.N - got.Log/got.N*got.Log/got.N, want.Log2/want.N - want.Log/want.N*want.Log/want.N, .05},
	} {
		if math.Abs(v.got-v.want) > v.off*math.Max(1, math.Abs(v.want)) {
			t.Errorf("%s: %v after the decay rate has changed; under the new rate it is %v", v.name, v.got, v.want)
		}
	}
}

// TestExcess: the variance of profiles beyond chance is found, and is none
// where counts are Poisson.
func TestExcess(t *testing.T) {
	r := stream.New(7, stream.World)
	for _, v := range []float64{0, .04, .25} {
		var x excess
		for range 200 {
			var got, want [hours]float64
			for h := range got {
				want[h] = 50
				mean := 50 * max(0, 1+math.Sqrt(v)*r.NormFloat64())
				got[h] = max(0, mean+math.Sqrt(mean)*r.NormFloat64())
			}
			x.add(got[:], want[:], 1)
		}
		if got := x.value(); math.Abs(got-v) > .003+.1*v {
			t.Errorf("variance %v between bins; found %v", v, got)
		}
	}
	// With what is found, a bin of 50 leans as the best linear estimate does.
	dst, base := []float64{0, 0}, []float64{1, 1}
	lean(dst, base, []float64{60, 40}, []float64{50, 50}, 1, .02)
	if want := 1.1; math.Abs(dst[0]-want) > 1e-9 {
		t.Errorf("60 of 50 with variance .02: profile %v; want %v", dst[0], want)
	}
}
