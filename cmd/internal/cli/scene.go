package cli

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments"
)

// Scene are the flags that choose a world.
type Scene struct {
	instance, world, marks, trace string
	unobserved                    string
	budget, decay, sigma, split   float64
	epoch                         time.Duration
}

// Define adds the flags to f as a group.
func (s *Scene) Define(f *Flags) {
	f.Group("World", func() {
		f.StringVar(&s.instance, "instance", "paper", "`name`: paper (Table I), lognormal:N[:SEED], wide:N[:SEED], mixed:N[:SEED], or the path of a .toml file")
		f.Float64Var(&s.budget, "budget", 0, "`units` that the crawls of one epoch may cost together, above 0 and at most what all sources cost; 0 is the instance's own (1 for paper, the families and recordings)")
		f.StringVar(&s.world, "world", "", "`way` content arrives: mean (the papers' mean dynamics) or poisson (single items); default mean where knowledge is model, poisson otherwise")
		f.StringVar(&s.marks, "marks", "constant", "`law` of the items' initial interest in world poisson: constant, per-item (exponential), per-epoch (exponential, one draw per source and epoch) or lognormal")
		f.Float64Var(&s.sigma, "sigma", 1, "`σ` of lognormal marks")
		f.StringVar(&s.unobserved, "unobserved", "", "`names` of sources, separated by commas, whose state is not seen although knowledge is observed")
	})
	f.Group("Recording (instead of an instance)", func() {
		f.StringVar(&s.trace, "trace", "", "`file` with the columns source,published_unix,utility (1 if left out); .csv or .csv.gz, or a pipe")
		f.DurationVar(&s.epoch, "epoch", time.Hour, "`length` of an epoch, such as 30m or 1h")
		f.Float64Var(&s.decay, "decay", 0.175, "`rate` per hour at which interest decays; with knowledge online the learner estimates it, and -set decay=RATE gives it, per epoch")
		f.Float64Var(&s.split, "split", 0.5, "`share` of the recording's time on which the model is fitted; the rest is measured")
	})
}

// Open returns the scene that the flags describe, for policies of that level.
func (s *Scene) Open(ctx context.Context, f *Flags, level env.Level) (experiments.Scene, error) {
	if math.IsNaN(s.budget) || s.budget < 0 || math.IsInf(s.budget, 0) {
		return experiments.Scene{}, Usagef("-budget is %v; allowed is a finite number of budget units above 0, or 0 for the instance's own", s.budget)
	}
	if f.Given("trace") && s.trace == "" {
		return experiments.Scene{}, Usagef("-trace is empty; allowed is the name of a recording")
	}
	if s.trace != "" {
		for _, name := range []string{"instance", "world", "marks", "sigma", "unobserved"} {
			if f.Given(name) {
				return experiments.Scene{}, Usagef("-trace replays a recording; leave out -%s", name)
			}
		}
		return s.replay(ctx)
	}
	return s.Named(f, s.instance, s.budget, level)
}

// Named returns the scene of an instance's name and budget in the world of the
// flags.
func (s *Scene) Named(f *Flags, name string, budget float64, level env.Level) (experiments.Scene, error) {
	for _, name := range []string{"epoch", "decay", "split"} {
		if f.Given(name) {
			return experiments.Scene{}, Usagef("-%s belongs to a recording; name one with -trace", name)
		}
	}
	if strings.HasSuffix(name, ".toml") {
		// A bad file is a failure; what is wrong after it loads is a flag.
		if _, err := env.Load(name); err != nil {
			return experiments.Scene{}, err
		}
	}
	in, err := env.Named(name, budget)
	if err != nil {
		return experiments.Scene{}, AsUsage(err)
	}
	switch s.way(level) {
	case "mean":
		for _, name := range []string{"marks", "sigma", "unobserved"} {
			if f.Given(name) {
				return experiments.Scene{}, Usagef("-%s belongs to -world poisson", name)
			}
		}
		if level == env.LevelOnline {
			return experiments.Scene{}, Usagef("-world mean has no items, which knowledge online learns from; use -world poisson")
		}
		return experiments.MeanScene(in), nil
	case "poisson":
		marks, err := env.ParseMarks(s.marks)
		if err != nil {
			return experiments.Scene{}, Usagef("-marks: %w", err)
		}
		if !(s.sigma > 0) || s.sigma > env.MaxSigma {
			return experiments.Scene{}, Usagef("-sigma is %v; allowed is above 0 and at most %v", s.sigma, env.MaxSigma)
		}
		hidden, err := s.hidden(in, level)
		return experiments.MixedScene(in, marks, s.sigma, hidden), err
	}
	return experiments.Scene{}, Usagef("-world is %q; allowed are mean and poisson", s.world)
}

// way returns the world of -world, or the default at that level.
func (s *Scene) way(level env.Level) string {
	switch {
	case s.world != "":
		return s.world
	case level == env.LevelModel:
		return "mean"
	}
	return "poisson"
}

// Used returns what the flags settled beyond the instance, by the names of the
// flags: the world, or the recording and how it is replayed.
func (s *Scene) Used(level env.Level) map[string]any {
	if s.trace != "" {
		return map[string]any{"trace": s.trace, "epoch": s.epoch.String(), "decay": s.decay, "split": s.split}
	}
	used := map[string]any{"world": s.way(level)}
	if used["world"] == "poisson" {
		used["marks"] = s.marks
		if s.marks == string(env.MarksLogNormal) {
			used["sigma"] = s.sigma
		}
		if s.unobserved != "" {
			used["unobserved"] = s.unobserved
		}
	}
	return used
}

// hidden returns the marks of -unobserved, nil without it.
func (s *Scene) hidden(in env.Instance, level env.Level) ([]bool, error) {
	if s.unobserved == "" {
		return nil, nil
	}
	if level != env.LevelObserved {
		return nil, Usagef("-unobserved belongs to -knowledge observed; with %s no state is seen", level)
	}
	hidden := make([]bool, len(in.Sources))
	for _, name := range strings.Split(s.unobserved, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(in.Sources, func(x env.Source) bool { return x.Name == name })
		if i < 0 {
			return nil, Usagef("-unobserved names %q; %s has no such source", name, in.ID)
		}
		hidden[i] = true
	}
	return hidden, nil
}

func (s *Scene) replay(ctx context.Context) (experiments.Scene, error) {
	switch {
	case s.epoch < time.Second:
		return experiments.Scene{}, Usagef("-epoch is %v; allowed is 1s or more", s.epoch)
	case !(s.split > 0 && s.split < 1):
		return experiments.Scene{}, Usagef("-split is %v; allowed is above 0 and below 1", s.split)
	}
	if err := Positive("decay", s.decay); err != nil {
		return experiments.Scene{}, err
	}
	budget := s.budget
	if budget == 0 {
		budget = 1
	}
	rec, err := env.ReadRecording(ctx, s.trace)
	if err != nil {
		return experiments.Scene{}, err
	}
	scene, err := experiments.ReplayScene(rec, env.ReplayOptions{Epoch: s.epoch, Decay: s.decay, Split: s.split, Budget: budget})
	if errors.Is(err, env.ErrBudget) {
		err = AsUsage(err)
	}
	return scene, err
}
