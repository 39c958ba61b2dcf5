package experiments

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/stat"

	"ephemera/baselines"
	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/env/envtest"
	"ephemera/experiments/plot"
)

var updatePicture = flag.Bool("update-picture", false, "write docs/asymptotic.svg anew")

// TCNS, section I: the Whittle policy, "while suboptimal in general, is provably
// optimal in an asymptotic sense" (Weber and Weiss, 1990; Verloop, 2016). With a
// fixed share of the sources crawled at an epoch, what it earns over the relaxed
// bound tends to 1 as N grows. The sources have to differ, or to be moved by
// chance: N/4 copies of each source of Table I go round in step from their
// common start, and earn .99917 of the bound at any N for a share of a half.
//
//	go test ./experiments -run TestPaperAsymptoticOptimality -update-picture
func TestPaperAsymptoticOptimality(t *testing.T) {
	shares := []float64{0.05, 0.25, 0.5}
	sizes := []int{4, 20, 100, 1000}
	if *updatePicture {
		sizes = []int{4, 8, 20, 40, 100, 400, 1000, 4000, 10_000, 100_000}
	}
	f := plot.New("asymptotic", "Exact Whittle over the relaxed bound, lognormal", "N, sources", "reward / bound")
	f.X.Log = true
	for _, share := range shares {
		line := f.Of(fmt.Sprintf("%.0f %% crawled", 100*share))
		for _, n := range sizes {
			if share*float64(n) < 1 {
				continue
			}
			ratio := longRunOverBound(t, env.Lognormal(n, math.Floor(share*float64(n)), 3))
			if ratio > 1+1e-4 { // in a run that ends within a cycle
				t.Errorf("N = %d, share %v: Whittle earns %v of a bound", n, share, ratio)
			}
			if n >= 1000 && ratio < 1-2e-3 {
				t.Errorf("N = %d, share %v: Whittle earns %v of the bound; want it within 0.002 of 1", n, share, ratio)
			}
			t.Logf("share %v, N = %6d: %.6f", share, n, ratio)
			line.Add(float64(n), ratio)
		}
	}
	if !*updatePicture {
		return
	}
	svg, err := f.SVG()
	if err == nil {
		err = os.WriteFile(filepath.Join("..", "docs", f.Name+".svg"), svg, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// longRunOverBound plays Whittle until what it starts with is forgotten.
func longRunOverBound(t *testing.T, in env.Instance) float64 {
	w, err := env.NewMean(in, false)
	if err != nil {
		t.Fatal(err)
	}
	const burn, epochs = 300, 420
	earned := envtest.Play(t, w, env.NewAgent(baselines.NewWhittle(in)), burn+epochs)
	bound, _ := index.Bound(in)
	return stat.Mean(earned[burn:], nil) / bound
}
