package experiments_test

import (
	"context"
	"fmt"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
)

// waiting is a policy of one's own: it crawls the sources with the most items
// waiting, whatever their interest.
type waiting struct {
	rates []float64
	key   []float64
	sel   *baselines.Selector
}

// Select implements env.Policy at the level of knowledge "model".
func (p *waiting) Select(dst []int, o *env.Model) []int {
	for i, rate := range p.rates {
		p.key[i] = rate * float64(o.Age(i))
	}
	return p.sel.Top(dst, p.key) // by decreasing key, within the budget
}

func newWaiting(k experiments.Known, _ any) (env.Agent, error) {
	p := &waiting{key: make([]float64, len(k.Instance.Sources)), sel: baselines.NewSelector(k.Terms.Costs, k.Terms.Budget)}
	for _, s := range k.Instance.Sources {
		p.rates = append(p.rates, s.Rate)
	}
	return env.NewAgent[env.Model](p), nil
}

// A policy of one's own is compared like those of the catalogue. It is built
// afresh for every run. The column of shares needs Whittle among the contenders.
func ExampleCompare() {
	whittle, err := experiments.Find("whittle")
	if err != nil {
		fmt.Println(err)
		return
	}
	mine := &experiments.Entry{Name: "waiting", About: "the most items waiting", New: newWaiting}
	scene := experiments.MeanScene(env.Lognormal(50, 10, 1))
	var contenders []experiments.Contender
	for _, e := range []*experiments.Entry{whittle, mine} {
		record, err := scene.Record(context.Background(), experiments.Play{Entry: e, Level: env.LevelModel, Seed: 1, Epochs: 1000})
		if err != nil {
			fmt.Println(err)
			return
		}
		contenders = append(contenders, experiments.Contender{Name: e.Name, Records: []*experiments.Record{record}})
	}
	for _, row := range experiments.Compare(contenders, env.LevelModel, 1, 1).Results {
		fmt.Printf("%s earns %s per epoch, %.1f %% of Whittle\n", row.Policy, result.Figure(row.Reward), 100**row.OfWhittle)
	}
	// Output:
	// whittle earns 3063.62 per epoch, 100.0 % of Whittle
	// waiting earns 2498.07 per epoch, 81.5 % of Whittle
}
