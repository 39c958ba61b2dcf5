package experiments

import (
	"fmt"
	"slices"
	"strings"

	"ephemera/baselines"
	"ephemera/env"
	"ephemera/learner"
	"ephemera/learner/forecast"
)

// Entry is a learner or a policy of the catalogue.
type Entry struct {
	Name  string
	About string // one line
	Page  string // of the docs, which lists the settings of a learner; empty for none
	// Levels are the levels of knowledge at which it differs; the first is the
	// one that a sweep gives it. A policy with the model among them runs at any
	// level, and does not look at what else is shown; a learner runs at its own
	// only. None are for a policy that Sees what all levels show, and runs at any.
	Levels            []env.Level
	Marks             bool // needs to know the law of the items' initial interest
	Small             bool // exact and dear: for instances of a few sources without noise
	NeedsBelief       bool // it is the reference with other parameters, and needs some
	NeedsUnequalCosts bool // another policy does the same where all crawls cost the same
	Pages             bool // for world pages

	// Sees is what it looks at where that is less than its level shows; see Track. It is needed
	// where there are no Levels: those of the model see all parameters.
	Sees Track

	// Settings returns a pointer to the settings at that level, filled with
	// the defaults. Its toml tags name the keys. nil where there are none.
	Settings func(level env.Level) any
	// Overruns reports whether settings let crawls cost more than the budget;
	// nil if none do.
	Overruns func(settings any) bool
	// Version rises where it would go on otherwise than before, so that no run that is kept of
	// another version is taken for one of this; nil is always 0.
	Version func(level env.Level) int
	// New builds it from settings that Configure returned.
	New Constructor
	// Learns says that it is a learner, and FromItems that what it learns are the rates and
	// interest of items, which an objective that it is given turns into an index.
	Learns, FromItems bool
}

// Constructor builds an agent, and the learner whose agent it is; nil where nothing
// learns.
type Constructor func(k Inputs, settings any) (env.Agent, learner.Learner, error)

// Inputs is what the constructor of a learner or a policy may use.
type Inputs = learner.Inputs

// FirstLevel returns the level of knowledge that it has where none is named.
func (e *Entry) FirstLevel() env.Level {
	if len(e.Levels) == 0 {
		return env.LevelModel
	}
	return e.Levels[0]
}

// Track is what policies see of the world. Those of one track can be compared fairly.
type Track string

// The tracks, from the one that sees most. In the last four nothing is known beforehand
// but names, costs and the budget, and of pages their importance.
const (
	TrackParameters Track = "parameters" // rates, decay and interest of the sources
	TrackState      Track = "state"      // what waits at each source before a crawl, in addition
	TrackItems      Track = "items"      // the items that crawls bring back, each with its age and interest
	TrackHarvest    Track = "harvest"    // what each crawl brings in all, and the age of its source
	TrackBit        Track = "bit"        // whether a crawl brought anything
	TrackChange     Track = "change"     // in world pages whether a page has changed; pings, and the pages' importance
	TrackAge        Track = "age"        // how long ago each source was crawled
)

// Track returns what it sees at a level of knowledge.
func (e *Entry) Track(level env.Level) Track {
	switch {
	case e.Sees != "":
		return e.Sees
	case level == env.LevelObserved && slices.Contains(e.Levels, level):
		return TrackState
	case level == env.LevelOnline && slices.Contains(e.Levels, level) && e.Learns && !e.FromItems:
		return TrackHarvest
	case level == env.LevelOnline && slices.Contains(e.Levels, level):
		return TrackItems
	}
	return TrackParameters
}

// valid says what an entry lacks: whether it sees the parameters has to be said, as policies are
// compared by that.
func (e *Entry) valid() error {
	if len(e.Levels) == 0 && e.Sees == "" {
		return fmt.Errorf("%q has neither Levels nor Sees; needed are levels of knowledge, or what it sees", e.Name)
	}
	return nil
}

// WhyNot says what the entry lacks to run in that scene when the worlds show
// what that level gives; it is empty if nothing is missing.
func (e *Entry) WhyNot(s Scene, level env.Level) string {
	sources := s.Instance.Sources
	switch fits := slices.Contains(e.Levels, level) || !e.Learns && e.FirstLevel() == env.LevelModel; {
	case !fits && e.Learns:
		levels := make([]string, len(e.Levels))
		for k, l := range e.Levels {
			levels[k] = string(l)
		}
		return fmt.Sprintf("it works with knowledge %s only", strings.Join(levels, " and "))
	case !fits && e.FirstLevel() == env.LevelObserved:
		return "it needs to see the true state, with knowledge observed"
	case !fits:
		return "it needs to see what crawls bring back, with knowledge online"
	case e.Pages && !s.Bits:
		return "it is for pages, in world pages"
	case e.FirstLevel() == env.LevelOnline && !e.ofPages(level) && s.Bits:
		return "it needs more than one bit of a crawl, whether a page has changed"
	case e.FirstLevel() == env.LevelOnline && e.Track(level) != TrackAge && !s.Bits &&
		slices.ContainsFunc(sources, changing):
		return "it needs to see whether a page has changed, which world pages shows, and crawls here bring interest"
	case e.harvests(level) && slices.ContainsFunc(sources, unseen):
		return "it learns what a crawl is worth from what it brings, " +
			"which no crawl shows under the objectives delay and freshness"
	case e.FromItems && s.Instance.Objective.Law == "" && slices.ContainsFunc(sources, byAge):
		return "it has to be given the objective, delay or deadline, " +
			"which -objective does, and not a law of the instance"
	case e.Marks && s.Marks == "":
		return "it needs to know the law by which single items are drawn, in world poisson"
	case e.Small && len(sources) > smallest:
		return fmt.Sprintf("it is for at most %d sources, not %d", smallest, len(sources))
	case e.Small && slices.ContainsFunc(sources, env.Source.Unbounded):
		return "it is for harvests with a limit, and under the objective delay they have none"
	case e.Small && (!s.Mean || s.Seeded):
		return "it is for the mean dynamics"
	case e.NeedsBelief && s.Believed == nil:
		return "it needs parameters other than the true ones, of an instance that -believe names"
	case e.NeedsUnequalCosts &&
		!slices.ContainsFunc(sources, func(x env.Source) bool { return x.Cost != sources[0].Cost }):
		return "it packs crawls of unequal cost, and here all cost the same"
	}
	return ""
}

// ofPages reports whether what it needs to see of a crawl is whether a page has changed, or
// less.
func (e *Entry) ofPages(level env.Level) bool {
	track := e.Track(level)
	return e.FromItems || track == TrackBit || track == TrackChange || track == TrackAge
}

// harvests reports whether it learns from what crawls bring what they are worth.
func (e *Entry) harvests(level env.Level) bool {
	return e.Learns && !e.FromItems || e.Track(level) == TrackHarvest
}

// unseen reports whether a crawl does not show what it was worth.
func unseen(s env.Source) bool { return env.Objective{Law: s.Law}.Unseen() }

func changing(s env.Source) bool { return s.Law == env.LawFreshness }

// byAge reports whether what an item costs follows from its age, as an objective has it.
func byAge(s env.Source) bool { return s.Law == env.LawDelay || s.Law == env.LawDeadline }

// smallest is the number of sources up to which the exact optimum is tried
// unasked.
const smallest = 4

// policy makes the constructor of an entry without settings.
func policy[O env.Knowledge](f func(k Inputs) env.Policy[O]) Constructor {
	return func(k Inputs, _ any) (env.Agent, learner.Learner, error) { return env.NewAgent(f(k)), nil, nil }
}

// model makes one of a policy that knows the model and nothing else.
func model(f func(in env.Instance) env.Policy[env.Model]) Constructor {
	return policy(func(k Inputs) env.Policy[env.Model] { return f(k.Instance) })
}

// agent makes an agent of a policy whose construction may fail.
func agent[O env.Knowledge](p env.Policy[O], err error) (env.Agent, learner.Learner, error) {
	if err != nil {
		return env.Agent{}, nil, err
	}
	return env.NewAgent(p), nil, nil
}

// tuned is an entry of a policy with settings.
func tuned[S any, O env.Knowledge](e Entry, defaults S, build func(k Inputs, s *S) (env.Policy[O], error)) Entry {
	e.Settings = func(env.Level) any { s := defaults; return &s }
	e.New = func(k Inputs, s any) (env.Agent, learner.Learner, error) { return agent(build(k, s.(*S))) }
	return e
}

// byLevel chooses a constructor by what the world shows.
func byLevel(model, observed Constructor) Constructor {
	return func(k Inputs, s any) (env.Agent, learner.Learner, error) {
		if k.Level == env.LevelObserved {
			return observed(k, s)
		}
		return model(k, s)
	}
}

// practice are the two entries of a scheduler of today under the budget. What
// is due is crawled by hours overdue, or, relative, by multiples of the
// interval.
func practice(
	name, about string, sees Track, build func(t env.Terms, how baselines.Practice) env.Learner[env.Online],
) (both []Entry) {
	for i, suffix := range []string{"", "-relative"} {
		e := Entry{Name: name + suffix, About: about, Levels: onlyOnline, Sees: sees}
		how := baselines.Practice{Relative: i == 1}
		both = append(both, tuned(e, how, func(k Inputs, s *baselines.Practice) (env.Policy[env.Online], error) {
			return build(k.Terms, *s), nil
		}))
	}
	return both
}

var (
	onlyModel    = []env.Level{env.LevelModel}
	modelOrState = []env.Level{env.LevelModel, env.LevelObserved}
	onlyState    = []env.Level{env.LevelObserved}
	onlyOnline   = []env.Level{env.LevelOnline}
)

// Catalogue returns all learners and policies: the learners of package learner, of
// which the first is the default, then the policies in the order in which tables
// show them.
func Catalogue() []*Entry {
	all := Learners()
	for i := range policies {
		all = append(all, &policies[i])
	}
	return all
}

// Learners returns the learners of package learner as entries.
func Learners() (all []*Entry) {
	for _, k := range learner.Kinds {
		all = append(all, &Entry{
			Name: k.Name, About: k.About, Page: k.Page, Levels: k.Levels, Settings: k.Settings, Overruns: k.Overruns,
			Version: k.Version, Learns: true, FromItems: k.FromItems,
			New: func(g Inputs, s any) (env.Agent, learner.Learner, error) {
				l, err := k.New(g, s)
				if err != nil {
					return env.Agent{}, nil, err
				}
				return l.Agent(), l, nil
			},
		})
	}
	return all
}

// Register adds a policy of one's own to the catalogue, and so to all commands, or
// panics if there is one of that name, or if it has neither Levels nor Sees. It is called
// before anything is run. A learner is added by [learner.Register].
func Register(e Entry) {
	if lookUp(e.Name) != nil {
		panic(fmt.Sprintf("experiments: %q is there already", e.Name))
	}
	if err := e.valid(); err != nil {
		panic("experiments: " + err.Error())
	}
	policies = append(policies, e)
}

// ofPages is an entry of a policy that estimates how often pages change.
func ofPages[S any](
	name, about string, defaults S, build func(t env.Terms, s S) (env.Policy[env.Online], error),
) Entry {
	return tuned(Entry{Name: name, About: about, Sees: TrackChange, Levels: onlyOnline, Pages: true}, defaults,
		func(k Inputs, s *S) (env.Policy[env.Online], error) { return build(k.Terms, *s) })
}

// estimatedWhittle are the entries of Whittle's index with an estimator of rates of change
// plugged in, one for each.
func estimatedWhittle() (all []Entry) {
	for _, c := range baselines.ChangeEstimators() {
		all = append(all, Entry{
			Name:   "whittle-" + c.Estimator,
			About:  "Whittle index of pages at rates of change estimated as " + c.Estimator,
			Levels: onlyOnline, Sees: TrackChange, Pages: true,
			New: func(k Inputs, _ any) (env.Agent, learner.Learner, error) {
				return agent(baselines.NewEstimatedWhittle(k.Terms, c))
			},
		})
	}
	return all
}

var policies = slices.Concat([]Entry{
	{Name: "whittle", About: "exact Whittle index, on the true state where it is seen, otherwise at the age",
		Levels: modelOrState, New: byLevel(
			model(baselines.NewWhittle),
			policy(func(k Inputs) env.Policy[env.Observed] {
				return baselines.NewWhittleObserved(k.Instance, false)
			}))},
	{Name: "whittle-believed", About: "exact Whittle index of the parameters that are believed",
		Levels: onlyModel, NeedsBelief: true, New: model(baselines.NewWhittle)},
	{Name: "whittle-packed", About: "exact Whittle index, with crawls of unequal cost packed into the budget",
		Levels: modelOrState, NeedsUnequalCosts: true, New: byLevel(
			model(baselines.NewWhittlePacked),
			policy(func(k Inputs) env.Policy[env.Observed] { return baselines.NewWhittlePackedObserved(k.Instance) }))},
	{Name: "whittle-literal", About: "Theorem 1 as printed, with index 0 above the ceiling", Levels: onlyState,
		New: policy(func(k Inputs) env.Policy[env.Observed] { return baselines.NewWhittleObserved(k.Instance, true) })},
	{Name: "stochastic", About: "Whittle index of the stochastic model on the true state",
		Levels: onlyState, Marks: true, New: policy(func(k Inputs) env.Policy[env.Observed] {
			return baselines.NewStochasticWhittle(k.Instance, k.Marks)
		})},
	{Name: "stochastic-learned", About: "the same, learned by the two-time-scale scheme",
		Levels: onlyState, Marks: true, New: policy(func(k Inputs) env.Policy[env.Observed] {
			return baselines.NewLearnedStochasticWhittle(k.Instance, k.Marks, k.Rand)
		})},
	{Name: "optimum", About: "exact optimum by dynamic programming over joint ages, for small instances",
		Levels: onlyModel, Small: true, New: func(k Inputs, _ any) (env.Agent, learner.Learner, error) {
			o, err := baselines.SolveOptimum(k.Instance)
			return agent[env.Model](o, err)
		}},
	{Name: "lagrangian", About: "Lagrangian index at the optimal price", Levels: onlyModel,
		New: model(baselines.NewLagrangian)},
	tuned(Entry{Name: "relaxed", About: "relaxed control by dual descent, which keeps the budget on average only",
		Levels: onlyModel, Overruns: func(any) bool { return true }},
		baselines.RelaxedOptions{}, func(k Inputs, s *baselines.RelaxedOptions) (env.Policy[env.Model], error) {
			return baselines.NewRelaxedControl(k.Instance, *s)
		}),
	{Name: "greedy", About: "the most mean interest gathered since the last crawl", Levels: onlyModel,
		New: model(baselines.NewGreedy)},
	{Name: "myopic", About: "the greatest state that is seen", Levels: modelOrState, New: byLevel(
		model(baselines.NewMyopic),
		policy(func(k Inputs) env.Policy[env.Observed] { return baselines.NewMyopicObserved(k.Instance) }))},
	{Name: "static-even", About: "optimal crawl frequencies, evenly spread", Levels: onlyModel,
		New: model(baselines.NewEvenSchedule)},
	tuned(Entry{Name: "certainty", About: "Whittle with parameters estimated from what crawls bring back",
		Levels: onlyOnline, FromItems: true},
		forecast.CertaintySettings(), func(k Inputs, s *forecast.Settings) (env.Policy[env.Online], error) {
			return forecast.New(k.Terms, s)
		}),
	tuned(Entry{Name: "q-whittle", About: "Whittle-index Q-learning on the ages", Sees: TrackHarvest},
		baselines.DefaultQWhittle(), func(k Inputs, s *baselines.QWhittle) (env.Policy[env.Online], error) {
			return baselines.NewQWhittle(k.Terms, *s, k.Rand)
		}),
	tuned(Entry{Name: "salmut", About: "structure-aware learning of thresholds", Sees: TrackHarvest},
		baselines.DefaultSalmut(), func(k Inputs, s *baselines.Salmut) (env.Policy[env.Online], error) {
			return baselines.NewSalmut(k.Terms, *s, k.Rand)
		}),
},
	practice("miniflux", "intervals as Miniflux sets them by entry frequency", TrackItems, baselines.NewEntryFrequency),
	practice("commafeed", "intervals as CommaFeed sets them", TrackItems, baselines.NewCommaFeed),
	// All sources have one interval, so that relative would be the same.
	practice("freshrss", "an interval of 60 minutes, as FreshRSS has, and Miniflux by default",
		TrackAge, baselines.NewFixedInterval)[:1],
	practice("nutch", "intervals as Apache Nutch sets them", TrackBit, baselines.NewNutch),
	practice("stormcrawler", "intervals as Apache StormCrawler sets them", TrackBit, baselines.NewStormCrawler),
	[]Entry{
		{Name: "round-robin", About: "the source that has waited longest", Sees: TrackAge,
			New: policy(func(k Inputs) env.Policy[env.Online] { return baselines.NewRoundRobin(k.Terms) })},
		{Name: "lambdacrawl", About: "pages at the rates of LambdaCrawl, evenly spaced", Levels: onlyModel, Pages: true,
			New: model(baselines.NewLambdaCrawl)},
		{Name: "greedy-ncis", About: "pages by the value of a crawl with noisy pings, GREEDY-NCIS",
			Levels: onlyModel, Pages: true, New: model(baselines.NewGreedyNCIS)},
		ofPages("lambdacrawl-learned", "rates of LambdaCrawl for estimated rates of change",
			baselines.ChangeRates{Estimator: "mle"}, baselines.NewLearnedLambdaCrawl),
		ofPages("explore-then-commit", "pages in turn for some rounds, then at the best rates for what was estimated",
			baselines.ExploreThenCommit{ChangeRates: baselines.ChangeRates{Estimator: "mle"}, Rounds: 20},
			baselines.NewExploreThenCommit),
		{Name: "best-source", About: "always the sources with the greatest gain per epoch", Levels: onlyModel,
			New: model(baselines.NewBestSource)},
	},
	estimatedWhittle())

// SavedPrefix stands before the directory of -out in which train saved a learner,
// in the name of the policy that is what it learned.
const SavedPrefix = "file:"

// Find returns the entry of that name, which may be what was learned before.
func Find(name string) (*Entry, error) {
	if dir, ok := strings.CutPrefix(name, SavedPrefix); ok {
		saved, err := learner.Load(dir)
		if err != nil {
			return nil, err
		}
		return &Entry{
			Name: name, About: "what a saved learner has learned", Levels: []env.Level{saved.Level()},
			Overruns: func(any) bool { return saved.Overruns() },
			New: func(k Inputs, _ any) (env.Agent, learner.Learner, error) {
				a, err := saved.Policy(k.Terms)
				return a, nil, err
			},
		}, nil
	}
	if e := lookUp(name); e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("unknown policy %q; allowed are %s", name, names(Catalogue()))
}

// lookUp returns the entry of that name, or nil.
func lookUp(name string) *Entry {
	for _, e := range Catalogue() {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// FindLearner returns the learner of that name, or, without one, the first that works
// at the level; "" stands for any.
func FindLearner(name string, level env.Level) (*Entry, error) {
	for _, e := range Learners() {
		if name == e.Name || name == "" && (level == "" || slices.Contains(e.Levels, level)) {
			return e, nil
		}
	}
	return nil, fmt.Errorf("unknown algorithm %q; allowed are %s", name, names(Learners()))
}

func names(entries []*Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name)
	}
	return strings.Join(all, ", ")
}
