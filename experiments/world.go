package experiments

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ephemera/baselines/index"
	"ephemera/env"
)

// World is a world as settings, under the names that configurations and records
// have for them.
type World struct {
	// mean, poisson or replay; it follows the learner's level of knowledge.
	Kind  string  `toml:"kind" json:"kind"`
	Marks string  `toml:"marks" json:"marks,omitempty"` // poisson: law of the items' interest
	Trace string  `toml:"trace" json:"trace,omitempty"` // replay: the recording
	Epoch string  `toml:"epoch" json:"epoch,omitempty"` // replay: length of an epoch
	Decay float64 `toml:"decay" json:"decay,omitempty"` // replay: decay of interest, 1/hour
	// replay: share of the recording on which the model is fitted; the rest is measured.
	Split float64 `toml:"split" json:"split,omitempty"`
	// FeedbackDelay, of a recording whose items differ in worth, is when that becomes known: now,
	// when an item is crawled; late:48h, so long after it was published; or never: all
	// count 1, in the measure too. Empty is now where the true state is seen, otherwise
	// late:48h.
	FeedbackDelay string `toml:"feedback" json:"feedback,omitempty"`
	// Part is the part of a recording that is played; empty for the measured one.
	Part env.Part `toml:"-" json:"part,omitempty"`
}

// UsualWorld holds what settings of a world are where they are left out.
var UsualWorld = World{Marks: string(env.MarksConstant), Epoch: "1h", Decay: .175, Split: .5}

// Open returns the scene of an instance, for policies of that level, or, where a
// recording is named, that of the recording with the budget of the instance. An
// error about a setting is a *SettingError.
func (w World) Open(ctx context.Context, in env.Instance, level env.Level) (Scene, error) {
	if w.Trace != "" {
		return w.recorded(ctx, in.Budget, level)
	}
	open := worlds[w.Kind]
	if open == nil {
		return Scene{}, wrong("world is %q; allowed are %s, and replay with a recording",
			w.Kind, strings.Join(slices.Sorted(maps.Keys(worlds)), ", "))
	}
	return open(w, in, level)
}

// worlds open the worlds of instances, by their kinds.
var worlds = map[string]func(w World, in env.Instance, level env.Level) (Scene, error){
	"mean": func(_ World, in env.Instance, _ env.Level) (Scene, error) { return MeanScene(in), nil },
	"poisson": func(w World, in env.Instance, _ env.Level) (Scene, error) {
		marks, err := env.ParseMarks(w.Marks)
		if err != nil {
			return Scene{}, &SettingError{err}
		}
		return PoissonScene(in, marks), nil
	},
	"pages": func(_ World, in env.Instance, level env.Level) (Scene, error) {
		if level == env.LevelObserved {
			return Scene{}, wrong("knowledge is observed; allowed in world pages are model and online, " +
				"as a page has no state but its age")
		}
		return PagesScene(in)
	},
}

// RegisterWorld adds a kind of world of one's own, for -world and world.kind. It
// panics if there is one of that name, and is called before anything is run.
func RegisterWorld(kind string, open func(in env.Instance, level env.Level) (Scene, error)) {
	if worlds[kind] != nil || kind == "replay" {
		panic(fmt.Sprintf("experiments: world %q is there already", kind))
	}
	worlds[kind] = func(_ World, in env.Instance, level env.Level) (Scene, error) { return open(in, level) }
}

// DefaultFeedbackDelay is when it becomes known what an item is worth: votes come in
// over some days.
const DefaultFeedbackDelay = "late:48h"

// ParseFeedbackDelay returns how many hours after its publication it becomes known
// what an item is worth: 0 for now, when it is crawled, and +Inf for never.
func ParseFeedbackDelay(delay string) (hours float64, err error) {
	text, late := strings.CutPrefix(delay, "late:")
	wait, err := time.ParseDuration(text)
	switch {
	case delay == "now":
		return 0, nil
	case delay == "never":
		return math.Inf(1), nil
	case !late || err != nil || wait < time.Second:
		return 0, fmt.Errorf("is %q; allowed are late: with a time of 1s or more such as late:48h, now and never",
			delay)
	}
	return wait.Hours(), nil
}

// feedbackAt returns the feedback delay of a recording for policies of a level.
func (w World) feedbackAt(level env.Level) string {
	if w.FeedbackDelay == "" && level == env.LevelObserved {
		return "now"
	}
	return cmp.Or(w.FeedbackDelay, DefaultFeedbackDelay)
}

// recorded plays the measured part of a recording; a budget of 0 stands for 1. Policies
// that know the model are given parameters that were fitted on the part before it.
func (w World) recorded(ctx context.Context, budget float64, level env.Level) (s Scene, err error) {
	o := env.ReplayOptions{Decay: w.Decay, Split: w.Split, Part: w.Part, Budget: cmp.Or(budget, 1)}
	o.Epoch, err = time.ParseDuration(w.Epoch)
	switch {
	case err != nil || o.Epoch < time.Second:
		return s, wrong("epoch is %q; allowed is a length of time of 1s or more, such as 30m or 1h", w.Epoch)
	case !(w.Decay > 0) || math.IsInf(w.Decay, 0):
		return s, wrong("decay is %v; allowed is a finite rate per hour above 0", w.Decay)
	case !(w.Split > 0 && w.Split < 1):
		return s, wrong("split is %v; allowed is above 0 and below 1", w.Split)
	}
	s.feedback = w.feedbackAt(level)
	late, err := ParseFeedbackDelay(s.feedback)
	if err != nil {
		return s, wrong("feedback %w", err)
	}
	never := math.IsInf(late, 1)
	if level == env.LevelObserved && late > 0 && !never {
		return s, wrong("feedback is %q; allowed are now and never, "+
			"for with knowledge observed the state shows what is worth how much",
			w.FeedbackDelay)
	}
	file, err := os.Open(w.Trace)
	if err != nil {
		return s, err
	}
	defer file.Close()
	sum := sha256.New()
	rec, err := env.PublishedColumns.Parse(ctx, w.Trace, io.TeeReader(file, sum)) // which reads to the end
	if err != nil {
		return s, err
	}
	s.sum = sum.Sum(nil)
	// Nearly all epochs would be empty. A log of some days may begin with a burst.
	near, year := rec.Plausible(), int64(365*24*3600)
	if whole, most := rec.Last-rec.First, near.Last-near.First; whole > 10*most && whole-most > year {
		day := func(at int64) string { return time.Unix(at, 0).UTC().Format(time.DateOnly) }
		return s, fmt.Errorf("%s: items are dated from %s to %s, and nearly all of them from %s to %s; "+
			"leave out the others", w.Trace, day(rec.First), day(rec.Last), day(near.First), day(near.Last))
	}
	if !rec.Uneven() {
		s.feedback, late = "", 0
	}
	if never {
		rec, late = rec.Even(), 0
	}
	s.Late = late / o.Epoch.Hours()
	if s.Instance, err = rec.Fit(o); err == nil {
		s.Epochs, err = rec.Epochs(o)
	}
	if err != nil { // of epoch, split or budget: the file has been read
		return s, &SettingError{err}
	}
	in := s.Instance
	s.Open = func(_ uint64, level env.Level, overrun bool) (env.World, error) {
		o := o
		o.Items, o.State, o.Overrun = level == env.LevelOnline || late > 0, level == env.LevelObserved, overrun
		return env.NewReplay(rec, in, o)
	}
	bounds := new(cache[float64])
	s.foresight = func(epochs int) float64 {
		bound, _ := bounds.get(strconv.Itoa(epochs), func() (bound float64, err error) {
			arrivals, err := rec.Arrivals(o)
			if err == nil {
				bound, _ = index.Foresight(arrivals, w.Decay*o.Epoch.Hours(), in.Terms().Costs, in.Budget, epochs)
			}
			return bound, err // there was none when the epochs were counted
		})
		return bound
	}
	return s, nil
}

// MeanScene is the mean dynamics of an instance.
func MeanScene(in env.Instance) Scene {
	return Scene{
		Instance: in.MeanDynamics(), Mean: len(in.Changes) == 0, With: MeanScene,
		Open: func(_ uint64, _ env.Level, overrun bool) (env.World, error) {
			return env.NewMean(in, overrun)
		},
	}
}

// PoissonScene draws single items with the given law of marks.
func PoissonScene(in env.Instance, marks env.Marks) Scene {
	open := func(seed uint64, level env.Level, overrun bool, sums env.EpochSums) (env.World, error) {
		return env.NewPoisson(in, seed, env.PoissonOptions{
			Marks: marks, Overrun: overrun, Sums: sums,
			Items: level == env.LevelOnline, NoMean: level == env.LevelOnline, State: level == env.LevelObserved,
		})
	}
	return Scene{
		Instance: in, Seeded: true, Mean: len(in.Changes) == 0, Marks: marks,
		With: func(in env.Instance) Scene { return PoissonScene(in, marks) },
		Open: func(seed uint64, level env.Level, overrun bool) (env.World, error) {
			return open(seed, level, overrun, shareSums(in, marks, seed))
		},
		alone: func(seed uint64, level env.Level, overrun bool) (env.World, error) {
			return open(seed, level, overrun, nil)
		},
	}
}

// PagesScene is the world of pages. A crawl shows whether the page has changed. What it brings
// is counted, and shown to no policy.
func PagesScene(in env.Instance) (Scene, error) {
	open := func(seed uint64, level env.Level, overrun bool) (env.World, error) {
		return env.NewPages(in, seed, env.PagesOptions{Overrun: overrun, NoMean: level == env.LevelOnline})
	}
	if _, err := open(1, env.LevelOnline, false); err != nil {
		return Scene{}, &SettingError{err}
	}
	// A policy that sees pings can do better than the harvest curves say.
	pinged := slices.ContainsFunc(in.Sources, func(s env.Source) bool { return s.Recall > 0 })
	return Scene{
		Instance: in.Pages(), Seeded: true, Mean: len(in.Changes) == 0 && !pinged, Bits: true, Open: open,
		With: func(in env.Instance) Scene { s, _ := PagesScene(in); return s },
	}, nil
}

// Believe gives policies the parameters of the instance of that name, which
// has to have the same sources at the same costs. The objective is not one of them: it is
// what the policies are to bring about. An error about a setting is a *SettingError.
func (s *Scene) Believe(name string) error {
	in, err := named(name, s.Instance.Budget)
	if err != nil {
		return err
	}
	same := func(a, b env.Source) bool { return a.Name == b.Name && a.Cost == b.Cost }
	if !slices.EqualFunc(in.Sources, s.Instance.Sources, same) {
		return wrong("%s has other sources or costs than %s; allowed is an instance of the same",
			name, s.Instance.ID)
	}
	if in.Objective != s.Instance.Objective {
		in = in.WithObjective(s.Instance.Objective, time.Hour)
		if err := in.Validate(); err != nil {
			return &SettingError{err}
		}
	}
	s.Believed = &in
	return nil
}
