package cli

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments"
)

// Scene are the flags that choose a world.
type Scene struct {
	instance string
	budget   float64
	epoch    time.Duration
	world    World // as the flags say
	rec      *env.Recording
}

// WorldFlags are the names of the flags.
var WorldFlags = []string{"instance", "budget", "world", "marks", "sigma", "unobserved", "trace", "epoch", "decay", "split", "warm"}

// Trace returns the recording that is named.
func (s *Scene) Trace() string { return s.world.Trace }

// World is what the flags of a scene settle beyond the instance, under the
// names of the flags.
type World struct {
	World      string  `toml:"world,omitempty"`
	Marks      string  `toml:"marks,omitempty"`
	Sigma      float64 `toml:"sigma,omitempty"`
	Unobserved string  `toml:"unobserved,omitempty"`

	Trace string  `toml:"trace,omitempty"`
	Epoch string  `toml:"epoch,omitempty"`
	Decay float64 `toml:"decay,omitempty"`
	Split float64 `toml:"split,omitempty"`
	Warm  bool    `toml:"warm,omitempty"`
	// SHA256 is that of the recording's publications; empty where it does not
	// matter.
	SHA256 string `toml:"sha256,omitempty"`
}

// Define adds the flags to f as a group.
func (s *Scene) Define(f *Flags) {
	f.Group("World", func() {
		f.StringVar(&s.instance, "instance", "paper", "`name`: paper (Table I), lognormal:N[:SEED], wide:N[:SEED], mixed:N[:SEED], or the path of a .toml file")
		f.Float64Var(&s.budget, "budget", 0, "`units` that the crawls of one epoch may cost together, above 0 and at most what all sources cost; 0 is the instance's own (1 for paper, the families and recordings)")
		f.StringVar(&s.world.World, "world", "", "`way` content arrives: mean (the papers' mean dynamics) or poisson (single items); default mean where knowledge is model, poisson otherwise")
		f.StringVar(&s.world.Marks, "marks", "constant", "`law` of the items' initial interest in world poisson: constant, per-item (exponential), per-epoch (exponential, one draw per source and epoch) or lognormal")
		f.Float64Var(&s.world.Sigma, "sigma", 1, "`σ` of lognormal marks")
		f.StringVar(&s.world.Unobserved, "unobserved", "", "`names` of sources, separated by commas, whose state is not seen although knowledge is observed")
	})
	f.Group("Recording (instead of an instance)", func() {
		f.StringVar(&s.world.Trace, "trace", "", "`file` with the columns source,published_unix,utility (1 if left out); .csv or .csv.gz, or a pipe")
		f.DurationVar(&s.epoch, "epoch", time.Hour, "`length` of an epoch, such as 30m or 1h")
		f.Float64Var(&s.world.Decay, "decay", 0.175, "`rate` per hour at which interest decays; with knowledge online the learner estimates it, and -set decay=RATE gives it, per epoch")
		f.Float64Var(&s.world.Split, "split", 0.5, "`share` of the recording's time on which the model is fitted; the rest is measured")
		f.BoolVar(&s.world.Warm, "warm", false, "begin with the part on which the model is fitted, which then does not count: the learner has learned on it")
	})
}

// Open returns the scene that the flags describe, for policies of that level.
func (s *Scene) Open(ctx context.Context, f *Flags, level env.Level) (experiments.Scene, error) {
	if math.IsNaN(s.budget) || s.budget < 0 || math.IsInf(s.budget, 0) {
		return experiments.Scene{}, Usagef("-budget is %v; allowed is a finite number of budget units above 0, or 0 for the instance's own", s.budget)
	}
	if f.Given("trace") && s.world.Trace == "" {
		return experiments.Scene{}, Usagef("-trace is empty; allowed is the name of a recording")
	}
	if s.world.Trace != "" {
		if err := f.refuse("-trace replays a recording; leave out -%s", "instance", "world", "marks", "sigma", "unobserved"); err != nil {
			return experiments.Scene{}, err
		}
		scene, rec, err := s.World(level).replay(ctx, s.budget)
		s.rec = rec
		return scene, err
	}
	return s.Named(f, s.instance, s.budget, level)
}

// Named returns the scene of an instance's name and budget in the world of the
// flags.
func (s *Scene) Named(f *Flags, name string, budget float64, level env.Level) (experiments.Scene, error) {
	if err := f.refuse("-%s belongs to a recording; name one with -trace", "epoch", "decay", "split", "warm"); err != nil {
		return experiments.Scene{}, err
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
	if s.World(level).World == "mean" {
		err = f.refuse("-%s belongs to -world poisson", "marks", "sigma", "unobserved")
	} else if s.world.Marks != string(env.MarksLogNormal) {
		err = f.refuse("-%s belongs to -marks lognormal", "sigma")
	}
	if err != nil {
		return experiments.Scene{}, err
	}
	return s.World(level).synthetic(in, level)
}

// synthetic is the scene of an instance.
func (w World) synthetic(in env.Instance, level env.Level) (experiments.Scene, error) {
	switch w.World {
	case "mean":
		if level == env.LevelOnline {
			return experiments.Scene{}, Usagef("-world mean has no items, which knowledge online learns from; use -world poisson")
		}
		return experiments.MeanScene(in), nil
	case "poisson":
		marks, err := env.ParseMarks(w.Marks)
		if err != nil {
			return experiments.Scene{}, Usagef("-marks: %w", err)
		}
		sigma := w.Sigma
		if marks != env.MarksLogNormal && sigma == 0 {
			sigma = 1
		}
		if !(sigma > 0) || sigma > env.MaxSigma {
			return experiments.Scene{}, Usagef("-sigma is %v; allowed is above 0 and at most %v", sigma, env.MaxSigma)
		}
		hidden, err := w.hidden(in, level)
		return experiments.MixedScene(in, marks, sigma, hidden), err
	}
	return experiments.Scene{}, Usagef("-world is %q; allowed are mean and poisson", w.World)
}

// Scene returns the scene of an instance, or of the recording, in place of
// which another file with the same content may be named.
func (w World) Scene(ctx context.Context, in env.Instance, level env.Level, trace string) (experiments.Scene, error) {
	if w.Trace == "" {
		return w.synthetic(in, level)
	}
	if trace != "" {
		w.Trace = trace
	}
	scene, rec, err := w.replay(ctx, in.Budget)
	if err == nil && w.SHA256 != "" && sum(rec) != w.SHA256 {
		err = fmt.Errorf("%s is not the recording that was used then: its publications are others", w.Trace)
	}
	return scene, err
}

// sum returns the checksum of a recording's publications.
func sum(rec *env.Recording) string {
	h := sha256.New()
	w := bufio.NewWriter(h)
	for _, name := range rec.Names {
		fmt.Fprintf(w, "%q", name)
	}
	var row [24]byte
	rec.Each(func(i int, at int64, utility float64) {
		binary.LittleEndian.PutUint64(row[:], uint64(i))
		binary.LittleEndian.PutUint64(row[8:], uint64(at))
		binary.LittleEndian.PutUint64(row[16:], math.Float64bits(utility))
		_, _ = w.Write(row[:]) // a hash takes everything
	})
	_ = w.Flush()
	return hex.EncodeToString(h.Sum(nil))
}

// World returns what the flags settled.
func (s *Scene) World(level env.Level) World {
	w := s.world
	if w.Trace != "" {
		w = World{Trace: w.Trace, Epoch: s.epoch.String(), Decay: w.Decay, Split: w.Split, Warm: w.Warm}
		if s.rec != nil {
			w.SHA256 = sum(s.rec)
		}
		return w
	}
	if w.World == "" {
		w.World = "poisson"
		if level == env.LevelModel {
			w.World = "mean"
		}
	}
	if w.World == "mean" {
		return World{World: "mean"}
	}
	if w.Marks != string(env.MarksLogNormal) {
		w.Sigma = 0
	}
	return World{World: w.World, Marks: w.Marks, Sigma: w.Sigma, Unobserved: w.Unobserved}
}

// hidden returns the marks of -unobserved, nil without it.
func (w World) hidden(in env.Instance, level env.Level) ([]bool, error) {
	if w.Unobserved == "" {
		return nil, nil
	}
	if level != env.LevelObserved {
		return nil, Usagef("-unobserved belongs to -knowledge observed; with %s no state is seen", level)
	}
	hidden := make([]bool, len(in.Sources))
	for _, name := range strings.Split(w.Unobserved, ",") {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(in.Sources, func(x env.Source) bool { return x.Name == name })
		if i < 0 {
			return nil, Usagef("-unobserved names %q; %s has no such source", name, in.ID)
		}
		hidden[i] = true
	}
	return hidden, nil
}

// replay is the scene of the recording.
func (w World) replay(ctx context.Context, budget float64) (experiments.Scene, *env.Recording, error) {
	epoch, err := time.ParseDuration(w.Epoch)
	switch {
	case err != nil || epoch < time.Second:
		err = Usagef("-epoch is %v; allowed is 1s or more", w.Epoch)
	case !(w.Split > 0 && w.Split < 1):
		err = Usagef("-split is %v; allowed is above 0 and below 1", w.Split)
	default:
		err = Positive("decay", w.Decay)
	}
	if err != nil {
		return experiments.Scene{}, nil, err
	}
	rec, err := env.ReadRecording(ctx, w.Trace)
	if err != nil {
		return experiments.Scene{}, nil, err
	}
	o := env.ReplayOptions{Epoch: epoch, Decay: w.Decay, Split: w.Split, Budget: budget}
	if o.Budget == 0 {
		o.Budget = 1
	}
	if w.Warm {
		o.Part = env.PartWhole
	}
	scene, err := experiments.ReplayScene(rec, o)
	if errors.Is(err, env.ErrBudget) {
		err = AsUsage(err)
	}
	return scene, rec, err
}
