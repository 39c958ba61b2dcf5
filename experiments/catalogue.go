package experiments

import (
	"fmt"
	"strings"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/env/stream"
)

// Known is what the constructor of a policy may use.
type Known struct {
	Instance env.Instance // parameters of the sources: the true ones, or fitted ones
	Terms    env.Terms    // what every crawler knows; all that an online policy is given
	Level    env.Level    // what the policy will see of the world
	Marks    env.Marks    // law of the items' initial interest; empty where the model has none
	Sigma    float64      // σ of log-normal marks
	Seen     []bool       // sources whose state is seen at the level that shows states; nil for all
	Rand     *stream.Rand // the policy's own stream
}

// Baseline is a policy of the catalogue.
type Baseline struct {
	Name    string
	About   string // one line
	Overrun bool   // may crawl more than the budget
	Items   bool   // needs to see the items that crawls bring back
	State   bool   // needs to see the true state
	Marks   bool   // needs to know the law of the items' initial interest
	Small   bool   // exact and dear: for instances of a few sources without noise
	New     func(k Known) (env.Agent, error)
}

// Applies reports whether the policy can run in that scene when the worlds
// show what that level gives.
func (b Baseline) Applies(s Scene, level env.Level) bool { return b.WhyNot(s, level) == "" }

// WhyNot says what the policy lacks to run in that scene when the worlds show
// what that level gives; it is empty if nothing is missing.
func (b Baseline) WhyNot(s Scene, level env.Level) string {
	var lacks []string
	if b.State && level != env.LevelObserved {
		lacks = append(lacks, "it needs to see the true state, with knowledge observed")
	}
	if b.Items && !(s.Items && level == env.LevelOnline) {
		lacks = append(lacks, "it needs to see the items that crawls bring back, with knowledge online")
	}
	if b.Marks && s.Marks == "" {
		lacks = append(lacks, "it needs to know the law by which single items are drawn, in world poisson")
	}
	n := 0 // sources that can be crawled at all
	for _, x := range s.Instance.Sources {
		if env.Fits(x.Cost, s.Instance.Budget) {
			n++
		}
	}
	if b.Small && n > smallest {
		lacks = append(lacks, fmt.Sprintf("it is for at most %d sources, not %d", smallest, n))
	}
	if b.Small && (!s.Mean || s.Seeded) {
		lacks = append(lacks, "it is for the mean dynamics")
	}
	return strings.Join(lacks, "; ")
}

// smallest is the number of sources up to which the exact optimum is tried
// unasked.
const smallest = 4

// model makes a constructor of one for policies that know the model.
func model(f func(in env.Instance) env.Policy[env.Model]) func(Known) (env.Agent, error) {
	return func(k Known) (env.Agent, error) { return env.NewAgent(f(k.Instance)), nil }
}

// online makes a constructor of one for policies that know the terms only.
func online(f func(t env.Terms, r *stream.Rand) env.Policy[env.Online]) func(Known) (env.Agent, error) {
	return func(k Known) (env.Agent, error) { return env.NewAgent(f(k.Terms, k.Rand)), nil }
}

// seen makes a constructor of one for policies that see the true state.
func seen(f func(k Known) env.Policy[env.Observed]) func(Known) (env.Agent, error) {
	return func(k Known) (env.Agent, error) { return env.NewAgent(f(k)), nil }
}

// agent makes an agent of a policy whose construction may fail.
func agent[O env.Knowledge](p env.Policy[O], err error) (env.Agent, error) {
	if err != nil {
		return env.Agent{}, err
	}
	return env.NewAgent(p), nil
}

// byLevel chooses a constructor by what the world shows.
func byLevel(model, observed func(Known) (env.Agent, error)) func(Known) (env.Agent, error) {
	return func(k Known) (env.Agent, error) {
		if k.Level == env.LevelObserved {
			return observed(k)
		}
		return model(k)
	}
}

// practice is a scheduler of today under the budget. What is due is crawled by
// hours overdue, or, relative, by multiples of the interval.
func practice(name string, relative bool, f func(t env.Terms, relative bool) env.Policy[env.Online]) Baseline {
	b := Baseline{Name: name, About: "intervals as " + name + " sets them, the most hours overdue first", Items: true}
	if relative {
		b.Name += "-relative"
		b.About = "intervals as " + name + " sets them, the most intervals overdue first"
	}
	b.New = online(func(t env.Terms, _ *stream.Rand) env.Policy[env.Online] { return f(t, relative) })
	return b
}

func newMiniflux(t env.Terms, relative bool) env.Policy[env.Online] {
	return baselines.NewEntryFrequency(t, baselines.EntryFrequency{Relative: relative})
}

func newNutch(t env.Terms, relative bool) env.Policy[env.Online] {
	return baselines.NewNutch(t, baselines.Adaptive{Relative: relative})
}

func newStormCrawler(t env.Terms, relative bool) env.Policy[env.Online] {
	return baselines.NewStormCrawler(t, baselines.Adaptive{Relative: relative})
}

// Baselines is the catalogue, in the order in which tables show it.
var Baselines = []Baseline{
	{Name: "whittle", About: "exact Whittle index, on the true state where it is seen, otherwise at the age", New: byLevel(
		model(baselines.NewWhittle),
		seen(func(k Known) env.Policy[env.Observed] { return baselines.NewWhittleObserved(k.Instance, false) }))},
	{Name: "whittle-literal", About: "Theorem 1 as printed, with index 0 above the ceiling", State: true, New: seen(func(k Known) env.Policy[env.Observed] {
		return baselines.NewWhittleObserved(k.Instance, true)
	})},
	{Name: "stochastic", About: "Whittle index of the stochastic model on the true state", State: true, Marks: true, New: func(k Known) (env.Agent, error) {
		p, err := baselines.NewStochasticWhittle(k.Instance, baselines.StochasticOptions{Marks: k.Marks, Sigma: k.Sigma, Observed: k.Seen})
		return agent(p, err)
	}},
	{Name: "stochastic-learned", About: "the same, learned by the two-time-scale scheme", State: true, Marks: true, New: func(k Known) (env.Agent, error) {
		var o baselines.LearnOptions
		o.Marks, o.Sigma, o.Observed = k.Marks, k.Sigma, k.Seen
		p, err := baselines.NewLearnedStochasticWhittle(k.Instance, o, k.Rand)
		return agent(p, err)
	}},
	{Name: "optimum", About: "exact optimum by dynamic programming over joint ages, for small instances", Small: true, New: func(k Known) (env.Agent, error) {
		o, err := baselines.SolveOptimum(k.Instance, baselines.OptimumOptions{})
		return agent[env.Model](o, err)
	}},
	{Name: "lagrangian", About: "Lagrangian index at the optimal price", New: model(baselines.NewLagrangian)},
	{Name: "relaxed", About: "relaxed control by dual descent, which keeps the budget on average only", Overrun: true, New: model(func(in env.Instance) env.Policy[env.Model] {
		return baselines.NewRelaxedControl(in, baselines.RelaxedOptions{})
	})},
	{Name: "greedy", About: "the most mean interest gathered since the last crawl", New: model(baselines.NewGreedy)},
	{Name: "myopic", About: "the greatest state that is seen", New: byLevel(
		model(baselines.NewMyopic),
		seen(func(k Known) env.Policy[env.Observed] { return baselines.NewMyopicObserved(k.Instance) }))},
	{Name: "static-even", About: "optimal crawl frequencies, evenly spread", New: model(func(in env.Instance) env.Policy[env.Model] {
		return baselines.NewEvenSchedule(in.Terms(), baselines.Allocate(in, baselines.EvenSpread).Frequency)
	})},
	{Name: "static-random", About: "optimal crawl frequencies, drawn at random", New: func(k Known) (env.Agent, error) {
		f := baselines.Allocate(k.Instance, baselines.RandomSpread).Frequency
		return env.NewAgent(baselines.NewRandomSchedule(k.Terms, f, k.Rand)), nil
	}},
	{Name: "certainty", About: "Whittle with parameters estimated from what crawls bring back", New: online(func(t env.Terms, _ *stream.Rand) env.Policy[env.Online] {
		return baselines.NewCertainty(t, baselines.Certainty{})
	})},
	{Name: "q-whittle", About: "Whittle-index Q-learning on the ages", New: online(func(t env.Terms, r *stream.Rand) env.Policy[env.Online] {
		return baselines.NewQWhittle(t, baselines.QWhittle{}, r)
	})},
	{Name: "salmut", About: "structure-aware learning of thresholds", New: online(func(t env.Terms, r *stream.Rand) env.Policy[env.Online] {
		return baselines.NewSalmut(t, baselines.Salmut{}, r)
	})},
	practice("miniflux", false, newMiniflux),
	practice("miniflux", true, newMiniflux),
	practice("nutch", false, newNutch),
	practice("nutch", true, newNutch),
	practice("stormcrawler", false, newStormCrawler),
	practice("stormcrawler", true, newStormCrawler),
	{Name: "round-robin", About: "the source that has waited longest", New: online(func(t env.Terms, _ *stream.Rand) env.Policy[env.Online] {
		return baselines.NewRoundRobin(t)
	})},
	{Name: "best-source", About: "always the sources with the greatest gain per epoch", New: model(baselines.NewBestSource)},
}

// FindBaseline returns the policy of that name.
func FindBaseline(name string) (Baseline, error) {
	names := make([]string, len(Baselines))
	for i, b := range Baselines {
		if b.Name == name {
			return b, nil
		}
		names[i] = b.Name
	}
	return Baseline{}, fmt.Errorf("unknown policy %q; allowed are %s", name, strings.Join(names, ", "))
}
