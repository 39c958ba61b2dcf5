// Package comparison is what train, bench and sweep share beyond flags: learners and
// policies that are run in the same worlds under the same seeds, and how.
package comparison

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ephemera/cmd/internal/cli"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/internal/files"
)

// Comparison is a call of train or bench: learners and policies in the same worlds
// under the same seeds.
type Comparison struct {
	Flags  *cli.Flags
	Run    experiments.Run // of the flags, but for the learner
	Format result.Format
	Batch  experiments.Batch
	Seeds  int

	Engine    experiments.Engine
	Level     env.Level
	Instances []string // their names; where a flag names none, that of Run

	args      []string
	algorithm string
	knowledge env.Level
	settings  map[string]any      // of -set, by their keys
	learner   *experiments.Entry  // of -algorithm
	runs      map[string][]string // names of their files, by contender
	left      []string            // which contenders are left out, and why
	unsaved   error               // why what was learned could not be saved
}

// Contender is a learner or a policy of a comparison that is to be run.
type Contender struct {
	experiments.Contender
	Jobs     []*experiments.Job // one for each instance, under the first seed
	Optional bool               // it is left out where it cannot be built
}

// New returns a call of a command with the flags that all have; out says
// what they keep.
func New(name, about, out string) *Comparison {
	f := cli.NewFlags(name, about)
	c := &Comparison{Flags: f, Run: experiments.NewRun(), Seeds: 1, settings: map[string]any{}}
	usual := experiments.Run{Steps: c.Run.Steps, World: experiments.UsualWorld}
	for _, x := range []struct{ name, key, usage string }{
		{"instance", "instance.name", "`name`: paper (Table I, the default), " +
			"a family such as lognormal:N[:SEED], wide:N, mixed:N, quiet:N, drift:N, hosts:N or pages:N, " +
			"or the path of a .toml file"},
		{"law", "instance.law", "`law` of interest by age of all sources: " +
			env.LawsAllowed("or") + "; default their own"},
		{"objective", "instance.objective", "`aim` in place of the sources' laws of interest: " +
			env.ObjectivesAllowed + "; an epoch counts as an hour"},
		{"believe", "instance.believe", "`instance` of the same sources: all policies but whittle, the reference, " +
			"are given its parameters in place of the true ones"},
		{"budget", "instance.budget", "`units` that the crawls of one epoch may cost together; " +
			"by default the instance's own (1 for paper, the families and recordings)"},
		{"world", "world.kind", "`way` content arrives: mean (the papers' mean dynamics), poisson (single items) " +
			"or pages (a crawl shows whether a page has changed); " +
			"default pages for an instance of pages, mean where knowledge is model, poisson otherwise"},
		{"marks", "world.marks", "`law` of the items' initial interest in world poisson: constant, " +
			"per-item (exponential) or per-epoch (exponential, one draw per source and epoch)"},
		{"trace", "world.trace", "`file` of a recording, which takes the place of an instance: " +
			"CSV with the columns source, published and, if items differ in worth, utility; " +
			"it may be compressed by gzip, or a pipe"},
		{"epoch", "world.epoch", "`length` of an epoch of -trace, such as 30m or 1h"},
		{"decay", "world.decay", "`rate` per hour at which the interest of -trace decays; " +
			"with knowledge online the learner estimates it"},
		{"split", "world.split", "`share` of the time of -trace on which the model is fitted; the rest is measured"},
		{"feedback", "world.feedback", "`when` the utility of an item of -trace becomes known to learners: " +
			"late:48h (the default) is 48 hours after it was published; " +
			"now (the default with knowledge observed) is when it is crawled; with never each item counts 1"},
		{"steps", "steps", "`epochs` of every run; with -trace all of the measured part unless fewer are asked for"},
	} {
		if v := usual.Value(x.key); v != "" && v != 0. {
			x.usage += fmt.Sprintf(" (default %v)", v)
		}
		f.Func(x.name, x.usage, func(text string) error { return c.Run.Set(x.key, text) })
	}
	f.Uint64Var(&c.Run.Seed, "seed", c.Run.Seed, "`number` from which every random draw of the first run is derived")
	var learners, pages []string
	for _, x := range experiments.Learners() {
		learners = append(learners, x.Name+" ("+x.About+")")
		if x.Page != "" {
			pages = append(pages, x.Page)
		}
	}
	f.StringVar(&c.algorithm, "algorithm", "", "`name` of the learner: "+strings.Join(learners, ", ")+
		"; by default the first that works with the knowledge, the instance and the world")
	cli.Choice(f, &c.knowledge, "knowledge", "", "`level`: model (parameters known), "+
		"observed (true state seen too) or online (only what crawls bring back); by default the algorithm's first",
		env.LevelModel, env.LevelObserved, env.LevelOnline)
	f.Func("set", "`key=value` of a setting of the algorithm, such as kappa=4; may be repeated; "+
		strings.Join(pages, ", ")+" list them", func(text string) error {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return fmt.Errorf("%q is not of the form key=value", text)
		}
		c.settings[key] = value
		return nil
	})
	DefineFormat(f, &c.Format)
	f.StringVar(&c.Batch.Dir, "out", "", out)
	DefineBatch(f, &c.Batch)
	return c
}

// Parse parses the arguments. It prints the help and returns done for -h.
func (c *Comparison) Parse(args []string, stdout io.Writer) (done bool, err error) {
	c.args = args
	if _, done, err = c.Flags.ParseAll(args, 0, stdout); done || err != nil {
		return done, err
	}
	if c.Batch.Dir == "" && !c.Batch.Shard.IsAll() {
		return false, cli.Usagef("-shard needs -out, where all shards keep their runs")
	}
	if c.Instances == nil {
		c.Instances = []string{c.Run.Instance.Name}
	}
	if c.learner, err = experiments.FindLearner(c.algorithm, c.knowledge); err != nil {
		return false, cli.Usagef("-algorithm: %w", err)
	}
	c.Level = cmp.Or(c.knowledge, c.learner.FirstLevel())
	return false, nil
}

// runFor returns the run of the flags, but for -set, for a policy of that name.
func (c *Comparison) runFor(policy string) experiments.Run {
	run := c.Run
	if run.World.Trace != "" && !c.Flags.IsSet("steps") {
		run.Steps = math.MaxInt32 // as many as there are
	}
	if !strings.HasPrefix(policy, experiments.SavedPrefix) {
		policy += "@" + string(c.Level)
	}
	run.Learner = map[string]any{"algorithm": policy}
	return run
}

// Choose returns the contenders of those names, or all that apply. learned stands for
// the learner of -algorithm.
func (c *Comparison) Choose(ctx context.Context, names []string) ([]Contender, error) {
	run := c.runFor("whittle")
	run.Instance.Name = c.Instances[0]
	base, err := c.Engine.Resolve(ctx, run)
	if err != nil {
		return nil, wrongSetting(err)
	}
	c.Run.World = base.World // one for all
	if c.algorithm == "" {
		if c.learner, err = base.DefaultLearner(); err != nil {
			return nil, err
		}
	}
	all := names == nil
	if all {
		names = []string{"learned"}
		for _, e := range experiments.Catalogue() {
			if e.Name != c.learner.Name && e.WhyNot(*base.Scene, c.Level) == "" {
				names = append(names, e.Name)
			}
		}
	}
	var chosen []Contender
	var has []string // settings
	seen := map[string]bool{}
	for _, name := range names {
		if name = strings.TrimSpace(name); name == "learning" {
			name = "learned" // one contender gives both rows
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		x, keys, err := c.contender(ctx, name, all)
		if err != nil {
			return nil, err
		}
		has = append(has, keys...)
		if x.Jobs != nil {
			chosen = append(chosen, x)
		}
	}
	return chosen, c.allSet(has)
}

// contender returns the contender of a name and the settings that it has. One that is optional
// has no jobs if it fits the first instance and not all of them.
func (c *Comparison) contender(
	ctx context.Context, name string, optional bool,
) (x Contender, keys []string, err error) {
	e := c.learner
	x = Contender{Contender: experiments.Contender{Name: name}, Optional: optional}
	if name == "learned" {
		x.Name, x.Optional = "", false
	} else if e, err = experiments.Find(name); err != nil && strings.HasPrefix(name, experiments.SavedPrefix) {
		return x, nil, err
	} else if err != nil {
		return x, nil, cli.Usagef("-policies: %w, learning, learned and file:DIR", err)
	}
	x.Learns = e.Learns
	run := c.runFor(e.Name)
	keys = e.Keys(c.Level)
	for _, key := range keys {
		if v, ok := c.settings[key]; ok {
			run.Learner[key] = v
		}
	}
	for k, instance := range c.Instances {
		run.Instance.Name = instance
		j, err := c.Engine.Resolve(ctx, run)
		if err != nil && x.Optional && k > 0 {
			c.left = append(c.left, fmt.Sprintf("%s is left out: %v", name, err))
			x.Jobs = nil
			break
		} else if err != nil {
			return x, nil, wrongSetting(err)
		}
		x.Jobs = append(x.Jobs, j)
	}
	return x, keys, nil
}

// allSet is the error of a setting of -set that no contender has.
func (c *Comparison) allSet(has []string) error {
	for key := range c.settings {
		switch {
		case has == nil:
			return cli.Usagef("none of the compared policies has a setting %q, nor any other; leave out -set", key)
		case !slices.Contains(has, key):
			slices.Sort(has)
			return cli.Usagef("none of the compared policies has the setting %q; allowed are %s",
				key, strings.Join(slices.Compact(has), ", "))
		}
	}
	return nil
}

// Perform runs what is missing, and returns what the contenders bring, and its report,
// which says why others are left out. A contender that fails in one run is left out in
// all: means are over the same runs. It returns nothing while other shards have runs left.
func (c *Comparison) Perform(
	ctx context.Context, contenders []Contender, stderr io.Writer,
) (done []experiments.Contender, rep *result.Report, err error) {
	if err := c.KeepCommand(); err != nil {
		return nil, nil, err
	}
	var jobs []*experiments.Job
	for _, x := range contenders {
		for _, j := range x.Jobs {
			jobs = append(jobs, j.UnderSeeds(c.Seeds)...)
		}
	}
	if c.Batch.Dir != "" {
		c.Batch.Timing = filepath.Join(c.Batch.Dir, "timing.json")
	}
	out, err := c.Engine.PerformAll(ctx, jobs, c.Batch)
	if err != nil {
		return nil, nil, cli.GoOn(err, c.Batch.Dir)
	}
	c.unsaved = out.Unsaved
	each := len(c.Instances) * c.Seeds
	c.runs = map[string][]string{}
	left := c.left
	for i, x := range contenders {
		x.Records = out.Records[i*each : (i+1)*each]
		errs := out.Errors[i*each : (i+1)*each]
		if k := slices.IndexFunc(errs, func(err error) bool { return err != nil }); k >= 0 {
			if !x.Optional {
				return nil, nil, wrongSetting(errs[k])
			}
			left = append(left, fmt.Sprintf("%s is left out: %v", x.Name, errs[k]))
			continue
		}
		if slices.Contains(x.Records, nil) {
			SayShard(stderr, c.Flags.Name(), c.Batch.Shard)
			return nil, nil, nil
		}
		done = append(done, x.Contender)
		c.runs[cmp.Or(x.Name, "learned")] = out.Names[i*each : (i+1)*each]
	}
	r := experiments.Compare(done, c.Level, c.Seeds, c.Run.Seed)
	r.Notes = append(r.Notes, left...)
	return done, &r, nil
}

var shard = regexp.MustCompile(`^--?shard(=|$)`)

// KeepCommand writes the command line into -out, one for all shards. Results of another one are removed: they would
// be read as what this one gave, until it is done.
func (c *Comparison) KeepCommand() error {
	if c.Batch.Dir == "" {
		return nil
	}
	var args []string
	for k := 0; k < len(c.args); k++ {
		switch shard.FindString(c.args[k]) {
		case "":
			args = append(args, c.args[k])
		case "-shard", "--shard":
			k++ // and its value
		}
	}
	command := cli.Caller + c.Flags.Name() + " " + cli.Quote(args...) + "\n"
	file := filepath.Join(c.Batch.Dir, "command.txt")
	var err error
	if before, _ := os.ReadFile(file); string(before) != command {
		err = result.Remove(c.Batch.Dir, nil)
	}
	if err = cmp.Or(err, files.Put(file, []byte(command))); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	return nil
}

// Tell prints a report. With -out it is kept as result.json, with what else is to be kept
// by the names of its files. The speed is in timing.json, the one file that changes from
// call to call.
func (c *Comparison) Tell(r *result.Report, kept map[string]result.Printed, stdout io.Writer) error {
	dir := c.Batch.Dir
	var err error
	if dir != "" {
		kept["result.json"] = r
		runs, _ := json.Marshal(c.runs) // texts alone
		// result.Put is last, since it removes what a killed process left of any of the files.
		err = cmp.Or(files.Put(filepath.Join(dir, experiments.RunsFile), runs), result.Put(dir, kept))
	}
	if r.Speed > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%.0f steps per second while learning.", r.Speed))
	}
	if err != nil {
		err = fmt.Errorf("-out: %w", err)
	}
	return errors.Join(result.Print(stdout, r, c.Format), c.unsaved, err)
}

// wrongSetting marks an error, if it is of a setting, as one of how the command was
// called.
func wrongSetting(err error) error {
	if errors.As(err, new(*experiments.SettingError)) {
		return cli.Usagef("%w", err)
	}
	return err
}

// DefineBatch adds the flags that say how runs are performed.
func DefineBatch(f *cli.Flags, b *experiments.Batch) {
	f.Count(&b.Workers, "workers", cli.Cores, 1, "`count` of runs at once; the results do not depend on it")
	const shard = "`I/N`: with -out, perform only every N-th run, beginning with number I, which is 0 to N-1"
	f.Func("shard", shard, func(text string) (err error) {
		b.Shard, err = experiments.ParseShard(text)
		return err
	})
}

// SayShard says that a shard is done while others are not.
func SayShard(stderr io.Writer, name string, s experiments.Shard) {
	fmt.Fprintf(stderr, "%s: shard %d/%d is done; the others have runs left\n", name, s.Index, s.Count)
}

// DefineFormat adds the flag for how a command prints.
func DefineFormat(f *cli.Flags, to *result.Format) {
	cli.Choice(f, to, "format", result.Text, "`form` of the results on stdout: table, markdown, csv or json",
		result.Text, result.Markdown, result.CSV, result.JSON)
}
