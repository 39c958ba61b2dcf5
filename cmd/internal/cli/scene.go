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
	world    experiments.World // as the flags say
	rec      *env.Recording
}

// WorldFlags are the names of the flags.
var WorldFlags = []string{"instance", "budget", "world", "marks", "sigma", "unobserved", "trace", "epoch", "decay", "split", "warm"}

// Trace returns the recording that is named.
func (s *Scene) Trace() string { return s.world.Trace }

// Define adds the flags to f as a group.
func (s *Scene) Define(f *Flags) {
	f.Group("World", func() {
		f.StringVar(&s.instance, "instance", "paper", "`name`: paper (Table I), lognormal:N[:SEED], wide:N[:SEED], mixed:N[:SEED], or the path of a .toml file")
		f.Float64Var(&s.budget, "budget", 0, "`units` that the crawls of one epoch may cost together, above 0 and at most what all sources cost; 0 is the instance's own (1 for paper, the families and recordings)")
		f.StringVar(&s.world.World, "world", "", "`way` content arrives: mean (the papers' mean dynamics) or poisson (single items); default mean where knowledge is model, poisson otherwise")
		f.StringVar(&s.world.Marks, "marks", "constant", "`law` of the items' initial interest in world poisson: constant, per-item (exponential), per-epoch (exponential, one draw per source and epoch) or lognormal")
		f.Float64Var(&s.world.Sigma, "sigma", 1, "`σ` of lognormal marks")
		f.TextVar(&s.world.Unobserved, "unobserved", experiments.SourceNames(nil), "`names` of sources, separated by commas, whose state is not seen although knowledge is observed")
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
func (s *Scene) Open(ctx context.Context, f *Flags, level env.Level) (scene experiments.Scene, err error) {
	switch {
	case math.IsNaN(s.budget) || s.budget < 0 || math.IsInf(s.budget, 0):
		return scene, Usagef("-budget is %v; allowed is a finite number of budget units above 0, or 0 for the instance's own", s.budget)
	case s.world.Trace != "":
		if err := f.refuse("-trace replays a recording; leave out -%s", "instance", "world", "marks", "sigma", "unobserved"); err != nil {
			return scene, err
		}
		scene, s.rec, err = replay(ctx, s.World(level), s.budget)
		return scene, wrongFlag(err)
	}
	return s.Named(f, s.instance, s.budget, level)
}

// wrongFlag marks the error of a setting as one of the flag of that name.
func wrongFlag(err error) error {
	if setting := new(experiments.SettingError); errors.As(err, &setting) {
		return Usagef("-%w", err)
	}
	return err
}

// Named returns the scene of an instance's name and budget in the world of the
// flags.
func (s *Scene) Named(f *Flags, name string, budget float64, level env.Level) (scene experiments.Scene, err error) {
	if err := f.refuse("-%s belongs to a recording; name one with -trace", "epoch", "decay", "split", "warm"); err != nil {
		return scene, err
	}
	if strings.HasSuffix(name, ".toml") {
		// A bad file is a failure; what is wrong after it loads is a flag.
		if _, err := env.Load(name); err != nil {
			return scene, err
		}
	}
	in, err := env.Named(name, budget)
	if err != nil {
		return scene, AsUsage(err)
	}
	world := s.World(level)
	switch {
	case world.World == "mean" && level == env.LevelOnline:
		err = Usagef("-world mean has no items, which knowledge online learns from; use -world poisson")
	case world.World == "mean":
		err = f.refuse("-%s belongs to -world poisson", "marks", "sigma", "unobserved")
	case world.Marks != string(env.MarksLogNormal):
		err = f.refuse("-%s belongs to -marks lognormal", "sigma")
	}
	if err != nil {
		return scene, err
	}
	scene, err = world.Scene(in, level)
	return scene, wrongFlag(err)
}

// Reopen returns the scene of a world and an instance that were written down. In
// place of the recording another file with the same content may be named.
func Reopen(ctx context.Context, w experiments.World, in env.Instance, level env.Level, trace string) (experiments.Scene, error) {
	if w.Trace == "" {
		return w.Scene(in, level)
	}
	if trace != "" {
		w.Trace = trace
	}
	scene, rec, err := replay(ctx, w, in.Budget)
	if err == nil && w.SHA256 != "" && sum(rec) != w.SHA256 {
		err = fmt.Errorf("%s is not the recording that was used then: its publications are others", w.Trace)
	}
	return scene, err
}

// replay is the scene of the recording that is named.
func replay(ctx context.Context, w experiments.World, budget float64) (scene experiments.Scene, rec *env.Recording, err error) {
	o, err := w.Replay(budget)
	if err == nil {
		rec, err = env.ReadRecording(ctx, w.Trace)
	}
	if err == nil {
		scene, err = experiments.ReplayScene(rec, o)
	}
	if errors.Is(err, env.ErrBudget) {
		err = AsUsage(err)
	}
	return scene, rec, err
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
func (s *Scene) World(level env.Level) experiments.World {
	w := s.world
	if w.Trace != "" {
		w.World, w.Marks, w.Sigma = "", "", 0
		w.Epoch = s.epoch.String()
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
		return experiments.World{World: "mean"}
	}
	if w.Marks != string(env.MarksLogNormal) {
		w.Sigma = 0
	}
	return experiments.World{World: w.World, Marks: w.Marks, Sigma: w.Sigma, Unobserved: w.Unobserved}
}
