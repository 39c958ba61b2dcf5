package cli

import (
	"context"
	"math"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments"
)

// Scene are the flags that choose a world.
type Scene struct {
	instance string
	law      string
	believe  string
	budget   float64
	epoch    time.Duration
	world    experiments.World // as the flags say
}

// Define adds the flags to f as a group.
func (s *Scene) Define(f *Flags) {
	f.Group("World", func() {
		f.StringVar(&s.instance, "instance", "paper", "`name`: paper (Table I), FAMILY:N[:SEED] with the families lognormal, wide, mixed and drift, or the path of a .toml file")
		f.StringVar(&s.law, "law", "", "`law` of interest by age of all sources: exponential, power, hump, window, batches or mixture; default their own")
		f.StringVar(&s.believe, "believe", "", "`instance` of the same sources, whose parameters all policies are given but whittle, the reference")
		f.Float64Var(&s.budget, "budget", 0, "`units` that the crawls of one epoch may cost together, above 0 and at most what all sources cost; 0 is the instance's own (1 for paper, the families and recordings)")
		f.StringVar(&s.world.World, "world", "", "`way` content arrives: mean (the papers' mean dynamics) or poisson (single items); default mean where knowledge is model, poisson otherwise")
		f.StringVar(&s.world.Marks, "marks", "constant", "`law` of the items' initial interest in world poisson: constant, per-item (exponential), per-epoch (exponential, one draw per source and epoch) or lognormal")
		f.Float64Var(&s.world.Sigma, "sigma", 1, "`σ` of lognormal marks")
		f.TextVar(&s.world.Unobserved, "unobserved", experiments.SourceNames(nil), "`names` of sources, separated by commas, whose state is not seen although knowledge is observed")
	})
	f.Group("Recording (instead of an instance)", func() {
		f.StringVar(&s.world.Trace, "trace", "", "`file` with the columns source,published_unix,utility (1 if left out); .csv or .csv.gz, or a pipe")
		f.DurationVar(&s.epoch, "epoch", time.Hour, "`length` of an epoch, such as 30m or 1h")
		f.Float64Var(&s.world.Decay, "decay", 0.175, "`rate` per hour at which interest decays; with knowledge online the learner estimates it")
		f.Float64Var(&s.world.Split, "split", 0.5, "`share` of the recording's time on which the model is fitted; the rest is measured")
		f.BoolVar(&s.world.Warm, "warm", false, "begin with the part on which the model is fitted, which then does not count: the learner has learned on it")
	})
}

// Open returns the scene that the flags describe, for policies of that level.
func (s *Scene) Open(ctx context.Context, f *Flags, level env.Level) (experiments.Scene, error) {
	world, in, err := s.Settings(f, level)
	if err != nil {
		return experiments.Scene{}, err
	}
	scene, err := world.Open(ctx, in, level)
	if err == nil && s.believe != "" {
		if err = scene.Believe(s.believe); err != nil {
			return scene, Usagef("-believe: %w", err)
		}
	}
	return scene, WrongFlag(err)
}

// Settings returns the world that the flags describe, and its instance, or of a
// recording only the budget of one.
func (s *Scene) Settings(f *Flags, level env.Level) (w experiments.World, in env.Instance, err error) {
	if math.IsNaN(s.budget) || s.budget < 0 || math.IsInf(s.budget, 0) {
		return w, in, Usagef("-budget is %v; allowed is a finite number of budget units above 0, or 0 for the instance's own", s.budget)
	}
	if s.world.Trace == "" {
		return s.Named(f, s.instance, s.budget, level)
	}
	w, in.Budget = s.world, s.budget
	w.World, w.Marks, w.Sigma, w.Epoch = "", "", 0, s.epoch.String()
	return w, in, f.refuse("-trace replays a recording; leave out -%s", "instance", "law", "believe", "world", "marks", "sigma", "unobserved")
}

// Named returns the world of the flags with an instance of that name and budget.
func (s *Scene) Named(f *Flags, name string, budget float64, level env.Level) (w experiments.World, in env.Instance, err error) {
	if err := f.refuse("-%s belongs to a recording; name one with -trace", "epoch", "decay", "split", "warm"); err != nil {
		return w, in, err
	}
	if s.law != "" {
		name += ":" + s.law
	}
	if strings.HasSuffix(name, ".toml") {
		// A bad file is a failure; what is wrong after it loads is a flag.
		if _, err := env.Load(name); err != nil {
			return w, in, err
		}
	}
	if in, err = env.Named(name, budget); err != nil {
		return w, in, AsUsage(err)
	}
	w = experiments.World{World: s.world.World, Marks: s.world.Marks, Sigma: s.world.Sigma, Unobserved: s.world.Unobserved}
	if w.World == "" {
		w.World = "poisson"
		if level == env.LevelModel {
			w.World = "mean"
		}
	}
	switch {
	case w.World == "mean" && level == env.LevelOnline:
		err = Usagef("-world mean has no items, which knowledge online learns from; use -world poisson")
	case w.World == "mean":
		err = f.refuse("-%s belongs to -world poisson", "marks", "sigma", "unobserved")
		w = experiments.World{World: "mean"}
	case w.Marks != string(env.MarksLogNormal):
		err = f.refuse("-%s belongs to -marks lognormal", "sigma")
		w.Sigma = 0
	}
	return w, in, err
}
