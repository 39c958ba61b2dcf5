package lspe

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"ephemera/env"
	"ephemera/env/envtest"
)

// tunings are the variables of tuning.go.
var tunings = []struct {
	name string
	at   *float64
}{
	{"pseudoWeight", &pseudoWeight},
	{"priorItems", &priorItems},
	{"firstItems", &firstItems},
	{"alikeSlopes", &alikeSlopes},
	{"slopeSpread", &slopeSpread},
	{"slopeInfo", &slopeInfo},
	{"levelSpread", &levelSpread},
	{"levelRounds", &levelRounds},
	{"pooledRounds", &pooledRounds},
	{"farEvidence", &farEvidence},
	{"farRounds", &farRounds},
	{"levelPrior", &levelPrior},
	{"variationPrior", &variationPrior},
	{"longestCycle", &longestCycle},
	{"forgetMost", &forgetMost},
	{"poolRidge", &poolRidge},
	{"poolStart", &poolStart},
	{"absurd", &absurd},
	{"priceFloor", &priceFloor},
	{"evidence", &evidence},
	{"maxThetaStep", &maxThetaStep},
	{"wakeStep", &wakeStep},
	{"mostRounds", &mostRounds},
	{"mostShare", &mostShare},
	{"mostSlope", &mostSlope},
	{"freeSlope", &freeSlope},
	{"signalScale", &signalScale},
	{"leastQuantile", &leastQuantile},
	{"surprise", &surprise},
	{"alarm", &alarm},
	{"modelError", &modelError},
	{"judged", &judged},
	{"dispersions", &dispersions},
	{"rarest", &rarest},
	{"worldShare", &worldShare},
	{"worldMemory", &worldMemory},
	{"sleepRounds", &sleepRounds},
	{"capacityMemory", &capacityMemory},
	{"harvestMemory", &harvestMemory},
	{"failedMemory", &failedMemory},
}

// TestTuning: with -full each tuned number is halved and doubled, and what is lost is
// printed, in 10⁻⁴ of Whittle: as learned and while learning, in the mean of three
// instances on which it was chosen. Else it holds that the list is whole.
func TestTuning(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "tuning.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, v := range tunings {
		listed[v.name] = true
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && !listed[spec.Names[0].Name] {
			t.Errorf("%s is not among tunings", spec.Names[0].Name)
		}
		return true
	})
	if !*full {
		return
	}
	envtest.Alone(t)
	const epochs, seeds = 5000, 3
	worlds := []struct {
		name     string
		instance func(uint64) env.Instance
		change   int
	}{
		{"rates about .1", rare(.1), 0},
		{"mixture", named("lognormal:50:%d:mixture", 10), 0},
		{"reshuffled", named("lognormal:50:%d", 10), epochs / 2},
	}
	var best [3][seeds]shares
	earned := func() (all [3]shares) {
		for j, w := range worlds {
			for k := range seeds {
				seed := uint64(k + 1)
				in := w.instance(seed)
				if best[j][k].frozen == 0 {
					best[j][k] = whittle(in, epochs)
				}
				got := against(t, best[j][k], in, seed, epochs, w.change, nil)
				all[j].frozen += got.frozen / seeds
				all[j].learning += got.learning / seeds
			}
		}
		return all
	}
	base := earned()
	fmt.Println("| number | by | rates about .1 | mixture | reshuffled |")
	for _, v := range tunings {
		was := *v.at
		for _, by := range []float64{.5, 2} {
			*v.at = was * by
			line := fmt.Sprintf("| %s = %v | %v", v.name, was, by)
			for j, got := range earned() {
				line += fmt.Sprintf(" | %.0f, %.0f",
					1e4*(base[j].frozen-got.frozen), 1e4*(base[j].learning-got.learning))
			}
			fmt.Println(line + " |")
		}
		*v.at = was
	}
}
