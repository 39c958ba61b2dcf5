package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"ephemera/env"
	"ephemera/experiments"
)

// Runs are the flags that describe runs: a world, a learner and its settings.
type Runs struct {
	experiments.Run                // but for the learner
	Named           string         // the learner of -algorithm, empty if there is none
	Settings        map[string]any // of -set, by their keys
	knowledge       env.Level
}

// Define adds the flags to f.
func (r *Runs) Define(f *Flags) {
	r.Run, r.Settings = experiments.NewRun(), map[string]any{}
	for _, x := range []struct{ name, key, usage string }{
		{"instance", "instance.name", "`name`: paper (Table I, the default), a family such as lognormal:N[:SEED], wide:N, mixed:N or drift:N, or the path of a .toml file"},
		{"law", "instance.law", "`law` of interest by age of all sources: exponential, power, hump, window, batches or mixture; default their own"},
		{"believe", "instance.believe", "`instance` of the same sources: all policies but whittle, the reference, are told its parameters in place of the true ones"},
		{"budget", "instance.budget", "`units` that the crawls of one epoch may cost together; by default the instance's own (1 for paper, the families and recordings)"},
		{"world", "world.kind", "`way` content arrives: mean (the papers' mean dynamics) or poisson (single items); default mean where knowledge is model, poisson otherwise"},
		{"marks", "world.marks", "`law` of the items' initial interest in world poisson: constant, per-item (exponential) or per-epoch (exponential, one draw per source and epoch)"},
		{"trace", "world.trace", "`file` of a recording, which takes the place of an instance: CSV with the columns source, published and, if items differ in worth, utility; it may be compressed by gzip, or a pipe"},
		{"epoch", "world.epoch", "`length` of an epoch of -trace, such as 30m or 1h"},
		{"decay", "world.decay", "`rate` per hour at which the interest of -trace decays; with knowledge online the learner estimates it"},
		{"split", "world.split", "`share` of the time of -trace on which the model is fitted; the rest is measured"},
		{"steps", "steps", "`epochs` of every run; with -trace all of the measured part unless fewer are asked for"},
	} {
		if v := r.Value(x.key); v != "" && v != 0. {
			x.usage += fmt.Sprintf(" (default %v)", v)
		}
		f.Func(x.name, x.usage, func(text string) error { return r.Set(x.key, text) })
	}
	f.Uint64Var(&r.Seed, "seed", r.Seed, "`number` from which every random draw of the first run is derived")
	var about []string
	for _, x := range experiments.Learners() {
		about = append(about, x.Name+" ("+x.About+")")
	}
	f.StringVar(&r.Named, "algorithm", "", "`name` of the learner: "+strings.Join(about, ", ")+"; by default the first that is made for the level of knowledge")
	Choice(f, &r.knowledge, "knowledge", "", "`level`: model (parameters known), observed (true state seen too) or online (only what crawls bring back); by default the algorithm's first", env.LevelModel, env.LevelObserved, env.LevelOnline)
	f.Func("set", "`key=value` of a setting of the algorithm, such as kappa=4; may be repeated; docs/lspe.md, docs/online.md and docs/paper-learner.md list them", func(text string) error {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return fmt.Errorf("%q is not of the form key=value", text)
		}
		r.Settings[key] = value
		return nil
	})
}

// Algorithm returns the learner that was asked for, and its level.
func (r *Runs) Algorithm() (*experiments.Entry, env.Level, error) {
	e, level, err := experiments.FindLearner(r.Named, r.knowledge)
	if err != nil {
		return nil, "", Usagef("-algorithm: %w", err)
	}
	return e, level, nil
}

// Of returns the run of the flags, but for -set, for a policy of that name at a level.
func (r *Runs) Of(f *Flags, policy string, level env.Level) experiments.Run {
	run := r.Run
	if run.World.Trace != "" && !f.Given("steps") {
		run.Steps = math.MaxInt32 // as many as there are
	}
	if !strings.HasPrefix(policy, experiments.SavedPrefix) {
		policy += "@" + string(level)
	}
	run.Learner = map[string]any{"algorithm": policy}
	return run
}

// WrongSetting marks an error, if it is of a setting, as one of how the command was
// called.
func WrongSetting(err error) error {
	if errors.As(err, new(*experiments.SettingError)) {
		return AsUsage(err)
	}
	return err
}

// DefineBatch adds the flags that say how runs are performed.
func DefineBatch(f *Flags, b *experiments.Batch) {
	f.Count(&b.Workers, "workers", Cores, 1, "`count` of runs at once; the results do not depend on it")
	f.Func("shard", "`I/N`: with -out, perform only every N-th run, beginning with number I, which is 0 to N-1", func(text string) (err error) {
		b.Shard, err = experiments.ParseShard(text)
		return err
	})
}

// CheckShard refuses a shard without a directory.
func CheckShard(b experiments.Batch) error {
	if b.Dir == "" && !b.Shard.IsAll() {
		return Usagef("-shard needs -out, where all shards keep their runs")
	}
	return nil
}

// SayShard says that a shard is done while others are not.
func SayShard(stderr io.Writer, name string, s experiments.Shard) {
	fmt.Fprintf(stderr, "%s: shard %d/%d is done; the others have runs left\n", name, s.Index, s.Count)
}
