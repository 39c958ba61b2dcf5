package papers

import (
	"fmt"
	"slices"

	"ephemera/baselines/index"
	"ephemera/env"
	"ephemera/experiments/stats"
)

// figure is a figure that a document prints.
type figure struct {
	id, document, place string
	quantity, unit      string
	printed             string // as the document has it
	published           float64
	relation            Relation
	tolerance           float64 // of the published figure, in its unit; by default half a unit of its last digit
	open                string  // what the document does not say; empty if it says all
	note                string  // further facts, as a sentence
	readings            []reading
}

// reading is one way to measure a figure: the key of its samples.
type reading struct {
	key, text string
	barred    string // why it may not stand for the figure though it agrees; empty if it may
}

// Documents.
const (
	tcns          = "TCNS 2018"
	cdc           = "CDC 2015"
	slides        = "MAS 2016 slides"
	allertonPaper = "Allerton 2019"
)

const (
	perEpoch = "interest per epoch"
	crawls   = "crawls per epoch"
	epochs   = "epochs"
)

// equal returns a figure that has to be met to within its rounding.
func equal(id, document, place, quantity, unit, printed, open string, readings ...reading) figure {
	return figure{id: id, document: document, place: place, quantity: quantity, unit: unit, printed: printed,
		published: mustNumber(printed), relation: Equal, tolerance: half(printed), open: open, readings: readings}
}

// claim returns a figure that stands for words: the printed words, and the
// relation in which the measured figure has to stand to a number.
func claim(id, document, place, quantity, unit, printed string, relation Relation, published float64, readings ...reading) figure {
	return figure{id: id, document: document, place: place, quantity: quantity, unit: unit, printed: printed,
		published: published, relation: relation, readings: readings}
}

// whittleReadings are the readings of the index policy in the stochastic model
// under the laws: those of the first law and policy, as printed, come first.
// barred may say why a policy may not stand for the figure.
func whittleReadings(keys []string, barred func(policy string) string) []reading {
	var all []reading
	for _, p := range policies {
		if p.key == "greedy" || p.key == "round-robin" {
			continue
		}
		for _, key := range keys {
			l := lawOf(key)
			if p.chief || l.all {
				all = append(all, reading{l.key + "/" + p.key, p.text + ", " + l.text, barred(p.key)})
			}
		}
	}
	return all
}

func lawOf(key string) law {
	return laws[slices.IndexFunc(laws, func(l law) bool { return l.key == key })]
}

// under returns the readings of a policy under laws.
func under(policy string, keys ...string) []reading {
	var all []reading
	for _, key := range keys {
		all = append(all, reading{key: key + "/" + policy, text: lawOf(key).text})
	}
	return all
}

var (
	constantLaws    = []string{"constant", "counts", "at-end", "at-beginning"}
	exponentialLaws = []string{"per-item", "per-epoch", "per-epoch-counts", "per-epoch-at-end", "per-epoch-at-beginning", "shared", "lasting", "rate"}
)

// catalogue returns all published figures. Figures that depend on others that
// are measured, such as the reward of the second best source, take them from s.
func catalogue(s samples) []figure {
	var all []figure
	add := func(f ...figure) { all = append(all, f...) }
	mean := func(key, text string) reading { return reading{key: key, text: text} }
	// For M = 1 Whittle earns the bound in the long run.
	bound, _ := index.Bound(env.Paper(1))
	const ix = "section IX"
	whittle1 := mean("mean-1/whittle", "exact Whittle, mean dynamics, 1000 epochs from x = u")

	const openStochastic = "how the index is evaluated off the states of the mean dynamics"

	// Patterns that TCNS and CDC describe in the same words.
	patterns := func(p, doc, place string) {
		const text = "exact Whittle, mean dynamics, epochs 100 to 1000"
		add(
			claim(p+"period-source-1", doc, place, "period of the crawls of source 1, M = 1", epochs, "period two", Equal, 2, mean("mean-1/source-1/period", text)),
			claim(p+"period-source-2", doc, place, "period of the crawls of source 2, M = 1", epochs, "period two", Equal, 2, mean("mean-1/source-2/period", text)),
			claim(p+"never-source-3", doc, place, "crawls of source 3, M = 1", crawls, "never", Equal, 0, mean("mean-1/source-3/crawls", "exact Whittle, mean dynamics, 1000 epochs")),
			claim(p+"never-source-4", doc, place, "crawls of source 4, M = 1", crawls, "never", Equal, 0, mean("mean-1/source-4/crawls", "exact Whittle, mean dynamics, 1000 epochs")),
			claim(p+"always-source-1", doc, place, "crawls of source 1, M = 2", crawls, "always", Equal, 1, mean("mean-2/source-1/crawls", "exact Whittle, mean dynamics, 1000 epochs")),
			claim(p+"irregular-source-2", doc, place, "different gaps between crawls of source 2, M = 2", "gaps", "a non-trivial periodic way", Above, 1, mean("mean-2/source-2/gaps", text)),
			claim(p+"irregular-source-3", doc, place, "different gaps between crawls of source 3, M = 2", "gaps", "a non-trivial periodic way", Above, 1, mean("mean-2/source-3/gaps", text)),
			claim(p+"period-source-4", doc, place, "period of the crawls of source 4, M = 2", epochs, "a rather long period", Above, 2, mean("mean-2/source-4/period", text)),
		)
	}
	// Source 1 with M = 2 in the stochastic model: always crawled no more.
	timeToTime := func(prefix, doc, place string) figure {
		f := claim(prefix+"/stochastic-source-1", doc, place, "crawls of source 1, M = 2, stochastic", crawls, "from time to time", Below, 1)
		f.open = openStochastic
		for _, key := range []string{"theorem", "theorem-extended", "slides", "slides-real"} {
			p := policies[slices.IndexFunc(policies, func(p policy) bool { return p.key == key })]
			f.readings = append(f.readings, reading{key: "constant/" + key + "/source-1", text: p.text + ", Poisson arrivals"})
		}
		return f
	}

	// TCNS.
	const openRelaxed = "with which price and steps the relaxed control begins, nor in which state"
	var reward, over []reading
	for _, r := range relaxedReadings {
		reward = append(reward, reading{"relaxed/" + r.key, r.text, r.barred})
		over = append(over, reading{"relaxed/" + r.key + "/over", r.text, r.barred})
	}
	add(equal("tcns/whittle-1", tcns, ix, "Whittle, M = 1", perEpoch, "260.30", "", whittle1))
	f := equal("tcns/relaxed", tcns, ix, "relaxed control, M = 1", perEpoch, "260.96", openRelaxed, reward...)
	f.note = fmt.Sprintf("Above the bound of %s only crawls beyond the budget can earn.", number(bound))
	add(f)
	f = claim("tcns/relaxed-violations", tcns, ix, "epochs in which the relaxed control crawls more than the budget", shares, "less than 1 %", Below, 0.01, over...)
	f.open = openRelaxed
	f.note = "From x = u sources 1 and 2 fall into step and are crawled in the same epochs; nothing in (22) moves them apart."
	add(f)
	add(equal("tcns/source-1-only", tcns, ix, "always source 1", perEpoch, "179.8", "", mean("mean-1/only-1", "mean dynamics, 1000 epochs")))
	patterns("tcns/", tcns, ix)
	f = equal("tcns/poisson-whittle", tcns, ix, "deterministic Whittle index, M = 1, Poisson arrivals", perEpoch, "253.1", openStochastic, whittleReadings(constantLaws, func(string) string { return "" })...)
	poisson := f
	f.note = fmt.Sprintf("Theorem 1 earns %s here and greedy %s. The form that the slides print as the theorem jumps at the states of the mean dynamics, and noise takes every other state to the wrong side.", number(s.mean("constant/theorem")), number(s.mean("constant/greedy")))
	add(f)
	add(equal("tcns/poisson-greedy", tcns, ix, "greedy by age, M = 1, Poisson arrivals", perEpoch, "260.2", "", under("greedy", constantLaws...)...))
	add(equal("tcns/poisson-round-robin", tcns, ix, "round robin, M = 1, Poisson arrivals", perEpoch, "208.4", "", under("round-robin", constantLaws...)...))
	// The simulation that gave 253.1 is the one that gave 283.8 and 285.
	same := func(policy string) string {
		if key := "constant/" + policy; poisson.assess(reading{key: key}, s[key], nil).Agrees {
			return ""
		}
		return "the policy does not give the 253.1 of Poisson arrivals"
	}
	const openExponential = "whether an exponential draw belongs to an item or to a source and epoch, and how the index is evaluated off the states of the mean dynamics"
	add(equal("tcns/exponential-whittle", tcns, ix, "deterministic Whittle index, M = 1, exponential interest", perEpoch, "283.8", openExponential, whittleReadings(exponentialLaws, same)...))
	add(equal("tcns/exponential-greedy", tcns, ix, "greedy by age, M = 1, exponential interest", perEpoch, "259.3", "whether an exponential draw belongs to an item or to a source and epoch", under("greedy", exponentialLaws...)...))
	add(equal("tcns/exponential-round-robin", tcns, ix, "round robin, M = 1, exponential interest", perEpoch, "207.3", "whether an exponential draw belongs to an item or to a source and epoch", under("round-robin", exponentialLaws...)...))
	add(timeToTime("tcns", tcns, ix+", Fig. 4"))

	// CDC.
	const vii = "section VII"
	const openHorizon = "over how many epochs it averages and from which state"
	horizons := []reading{
		whittle1,
		mean("mean-1/whittle-empty", "1000 epochs from empty sources"),
		mean("mean-1/whittle-100", "100 epochs from x = u"),
		mean("mean-1/whittle-60", "60 epochs from x = u"),
		mean("mean-1/slides", "the slides' form of the index, 1000 epochs from x = u"),
		mean("mean-1/slides-exceeding", "the slides' form with ⌈·⌉ as the least integer exceeding, 1000 epochs from x = u"),
		{"mean-1/whittle-empty-61", "61 epochs from empty sources", sought},
	}
	corrected := fmt.Sprintf("TCNS corrects it to 260.30; the long run is %s, which is the bound.", number(bound))
	add(equal("cdc/source-1-only", cdc, vii, "always source 1", perEpoch, "179.79", "", mean("mean-1/only-1", "mean dynamics, 1000 epochs")))
	f = equal("cdc/whittle-1", cdc, vii, "Whittle, M = 1", perEpoch, "254.66", openHorizon, horizons...)
	f.note = corrected
	add(f)
	patterns("cdc/", cdc, vii)
	add(timeToTime("cdc", cdc, vii+", Fig. 4"))

	// Slides.
	const example, stochastic = "numerical example", "numerical example (stochastic setting)"
	const openSetting = "which of the stochastic models it is"
	both := append([]string{"constant"}, exponentialLaws...)
	add(equal("slides/source-1-only", slides, example, "always source 1", perEpoch, "179.79", "", mean("mean-1/only-1", "mean dynamics, 1000 epochs")))
	f = equal("slides/whittle-1", slides, example, "Whittle, M = 1", perEpoch, "254.66", openHorizon, horizons...)
	f.note = corrected
	add(f)
	add(claim("slides/irregular-source-2", slides, example, "different gaps between crawls of source 2, M = 2", "gaps", "much less regular", Above, 1, mean("mean-2/source-2/gaps", "exact Whittle, mean dynamics, epochs 100 to 1000")))
	add(equal("slides/round-robin", slides, stochastic, "round robin, M = 1", perEpoch, "208", openSetting, under("round-robin", both...)...))
	add(equal("slides/greedy", slides, stochastic, "greedy by age, M = 1", perEpoch, "260", openSetting, under("greedy", both...)...))
	add(equal("slides/whittle-stochastic", slides, stochastic, "deterministic Whittle index, M = 1", perEpoch, "285", openSetting+", and how the index is evaluated off the states of the mean dynamics", whittleReadings(both, same)...))
	add(timeToTime("slides", slides, stochastic))

	// Allerton.
	const v = "section V"
	const openLearner = "the c of its steps, δ, and where thresholds and weights begin"
	var learned, engaged []reading
	for _, x := range learners {
		learned = append(learned, reading{key: "allerton/" + x.key, text: x.text})
		engaged = append(engaged, reading{key: "allerton/" + x.key + "/crawls", text: x.text})
	}
	f = claim("allerton/reward", allertonPaper, v, "learned policy, κ = 2, γ = 0.05, 10 000 epochs", perEpoch, "around 160", Equal, 160, learned...)
	f.tolerance, f.open = 5, openLearner // "around", to the nearest ten
	add(f)
	f = claim("allerton/crawls", allertonPaper, v, "crawls of the learned policy", crawls, "on average one", Equal, 1, engaged...)
	f.tolerance, f.open = 0.1, openLearner
	add(f)
	const between = "between … the best or the second best arm"
	add(claim("allerton/second-source", allertonPaper, v, "always source 2, which 160 is said to exceed", perEpoch, between, Below, 160, mean("mean-1/only-2", "mean dynamics, 1000 epochs")))
	add(claim("allerton/best-source", allertonPaper, v, "always source 1, which 160 is said to fall short of", perEpoch, between, Above, 160, mean("mean-1/only-1", "mean dynamics, 1000 epochs")))
	lo, hi := s.mean("mean-1/only-2"), s.mean("mean-1/only-1")
	f = claim("allerton/between", allertonPaper, v, "learned policy, between always source 2 and always source 1", perEpoch, between, Equal, (lo+hi)/2, learned...)
	f.tolerance, f.open = (hi-lo)/2, openLearner
	add(f)
	f = equal("allerton/whittle", allertonPaper, v, "Whittle with one crawl per epoch", perEpoch, "283", openExponential,
		append([]reading{whittle1}, whittleReadings(exponentialLaws, same)...)...)
	f.note = fmt.Sprintf("The figure is TCNS's for the stochastic model with the state observed. In the mean dynamics that the learner sees, exact Whittle earns %s in the long run.", number(bound))
	f.tolerance = 1 // 283.8, cut off
	add(f)
	return all
}

// mean returns the mean of a sample.
func (s samples) mean(key string) float64 { return stats.Mean(s[key].Values) }
