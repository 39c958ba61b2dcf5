// Package bench is the command bench.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ephemera/cmd/internal/cli"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/result"
	"ephemera/experiments/stats"
)

const about = `Bench compares policies in the same worlds under the same seeds: reward with a
95 % interval, the difference to exact Whittle, crawls per epoch and the share
of the bound. Without a flag: every policy that applies to Table I, 20 seeds.
With -preset papers: every figure that the papers print, measured and judged.
With -out a run that is done is kept, and the same command runs what is missing.`

// command is a call of bench.
type command struct {
	flags            *cli.Flags
	runs             cli.Runs
	format           result.Format
	batch            experiments.Batch
	seeds            int
	policies, random string
	args             []string

	engine    experiments.Engine
	level     env.Level
	instances []instance
}

// instance is one of those on which policies are compared.
type instance struct {
	name   string
	budget float64
}

// contender is a policy of the comparison.
type contender struct {
	entry *experiments.Entry
	name  string // of its row; empty of the learner that was chosen
	run   experiments.Run
	// optional contenders that cannot be built are left out.
	optional bool
}

// Run is the command.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("bench", about)
	c := &command{flags: f, args: args}
	var preset string
	c.runs.Define(f)
	cli.Choice(f, &preset, "preset", "", "`name` of a fixed comparison: papers measures every figure that the papers print, judges it, and draws the figures of TCNS into -out", "papers")
	f.StringVar(&c.policies, "policies", "", "`names` to compare, separated by commas; by default all that apply. learning and learned stand for the learner of -algorithm; another learner goes by its name, and what train learned with -out DIR by file:DIR")
	f.StringVar(&c.random, "random", "", "`N,M,count`: compare on that many instances of N sources and budget M, instead of -instance; the family is lognormal, or FAMILY:N,M,count")
	f.Count(&c.seeds, "seeds", 20, 1, "`count` of seeds; with -preset papers 200 unless given")
	cli.DefineFormat(f, &c.format)
	f.StringVar(&c.batch.Dir, "out", "", "`directory` that is made for the runs and their results; with -preset papers for the drawn figures (default "+picturesDir+")")
	cli.DefineBatch(f, &c.batch)
	if _, done, err := f.ParseAll(args, 0, stdout); done || err != nil {
		return err
	}
	if err := cli.CheckShard(c.batch); err != nil {
		return err
	}
	show, clear := cli.Progress(stderr, "runs")
	if preset != "" {
		return c.reproduce(ctx, show, clear, stdout, stderr)
	}
	c.batch.Progress = show
	contenders, err := c.choose(ctx)
	if err != nil {
		return cli.WrongSetting(err)
	}
	done, left, err := c.perform(ctx, contenders)
	clear()
	if err != nil {
		return err
	}
	if done == nil {
		cli.SayShard(stderr, "bench", c.batch.Shard)
		return nil
	}
	return c.tell(done, left, stdout)
}

// tell writes what -out keeps, and prints the results.
func (c *command) tell(done []experiments.Contender, left []string, stdout io.Writer) error {
	r := experiments.Compare(done, c.level, c.seeds, c.runs.Seed)
	r.Notes = slices.Concat(notes(&r, len(c.instances)), r.Notes, left)
	if dir := c.batch.Dir; dir != "" {
		if err := errors.Join(cli.PutCommand(dir, "bench", c.args), result.Put(dir, "result.md", &r, result.Markdown)); err != nil {
			return fmt.Errorf("-out: %w", err)
		}
	}
	return cli.Tell(&r, c.batch.Dir, map[string]*result.Table{"runs.csv": experiments.RunsTable(done)}, c.format, stdout)
}

// choose returns the contenders of -policies, or all that apply.
func (c *command) choose(ctx context.Context) ([]contender, error) {
	named, level, err := c.runs.Algorithm() // checked also where no learner is compared
	if err != nil {
		return nil, err
	}
	c.level = level
	if c.instances, err = c.named(); err != nil {
		return nil, err
	}
	base, err := c.engine.Resolve(ctx, c.on(c.runs.Of(c.flags, "whittle", level), 0))
	if err != nil {
		return nil, err
	}
	c.runs.World = base.World // one for all
	names := strings.Split(c.policies, ",")
	if c.policies == "" {
		names = []string{"learned"}
		for _, e := range experiments.Catalogue() {
			if e.Name != named.Name && e.WhyNot(*base.Scene, level) == "" {
				names = append(names, e.Name)
			}
		}
	}
	var chosen []contender
	seen := map[string]bool{}
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "learning" {
			name = "learned" // one contender gives both rows
		}
		x := contender{name: name, optional: c.policies == "" && name != "learned"}
		switch {
		case seen[name]:
			continue
		case name == "learned":
			x.entry, x.name = named, ""
		default:
			x.entry, err = experiments.Find(name)
			if err != nil && strings.HasPrefix(name, experiments.SavedPrefix) {
				return nil, err
			} else if err != nil {
				return nil, cli.Usagef("-policies: %w, learning, learned and file:DIR", err)
			}
		}
		seen[name] = true
		x.run = c.runs.Of(c.flags, x.entry.Name, level)
		for key, v := range c.runs.Settings {
			if x.entry.Has(level, key) {
				x.run.Learner[key] = v
			}
		}
		if _, err := c.engine.Resolve(ctx, c.on(x.run, 0)); err != nil {
			return nil, err
		}
		chosen = append(chosen, x)
	}
	for key := range c.runs.Settings {
		if !slices.ContainsFunc(chosen, func(x contender) bool { return x.entry.Has(level, key) }) {
			return nil, cli.Usagef("none of the compared policies has the setting %q", key)
		}
	}
	return chosen, nil
}

// named returns the one instance of the flags, or those of -random.
func (c *command) named() ([]instance, error) {
	if c.random == "" {
		return []instance{{c.runs.Instance.Name, c.runs.Instance.Budget}}, nil
	}
	if c.flags.Given("instance") || c.flags.Given("budget") || c.flags.Given("trace") {
		return nil, cli.Usagef("-random names its own instances and budget; leave out -instance, -budget and -trace")
	}
	family, rest, ok := strings.Cut(c.random, ":")
	if !ok {
		family, rest = "lognormal", c.random
	}
	var n, count int
	var m float64
	_, err := fmt.Sscanf(rest+"\n", "%d,%g,%d\n", &n, &m, &count)
	if err != nil || !(m > 0) || count < 1 {
		return nil, cli.Usagef("-random is %q; allowed is N,M,count or FAMILY:N,M,count, such as 50,10,30", c.random)
	}
	all := make([]instance, count)
	for k := range all {
		all[k] = instance{fmt.Sprintf("%s:%d:%d", family, n, k+1), m}
	}
	return all, nil
}

// on returns the run on an instance.
func (c *command) on(r experiments.Run, k int) experiments.Run {
	r.Instance.Name, r.Instance.Budget = c.instances[k].name, c.instances[k].budget
	return r
}

// perform runs what is missing, and returns what the contenders bring, and why
// others are left out. A contender that fails in one run is left out in all: means
// are over the same runs. It returns nothing while other shards have runs left.
func (c *command) perform(ctx context.Context, contenders []contender) (done []experiments.Contender, left []string, err error) {
	var runs []experiments.Run
	for _, x := range contenders {
		for k := range c.instances {
			for n := range c.seeds {
				r := c.on(x.run, k)
				r.Seed += uint64(n)
				runs = append(runs, r)
			}
		}
	}
	out, err := c.engine.PerformAll(ctx, runs, c.batch)
	if err != nil {
		return nil, nil, cli.GoOn(err, c.batch.Dir)
	}
	each := len(c.instances) * c.seeds
	for i, x := range contenders {
		records, errs := out.Records[i*each:(i+1)*each], out.Errors[i*each:(i+1)*each]
		if k := slices.IndexFunc(errs, func(err error) bool { return err != nil }); k >= 0 {
			if !x.optional {
				return nil, nil, cli.WrongSetting(errs[k])
			}
			left = append(left, fmt.Sprintf("%s is left out: %v", x.name, errs[k]))
			continue
		}
		if slices.Contains(records, nil) {
			return nil, nil, nil
		}
		done = append(done, experiments.Contender{Name: x.name, Learns: x.entry.Learns(), Records: records})
	}
	return done, left, nil
}

// notes are the sentences below the table.
func notes(r *result.Report, instances int) []string {
	line := fmt.Sprintf("%s, knowledge %s, budget %v, %d epochs, %s from %d", r.Instance, r.Knowledge, r.Budget, r.Steps, result.Count(r.Seeds, "seed"), r.Seed)
	if instances > 1 {
		line += fmt.Sprintf(", %d instances", instances)
	}
	all := []string{line + r.BoundNote() + "."}
	if first := r.Results[0]; first.Lo == nil && !first.Same {
		all = append(all, fmt.Sprintf("No intervals: they need %d seeds, with -random as many instances, on a recording as many weeks.", stats.MinSeeds))
	}
	if slices.ContainsFunc(r.Results, func(row result.Row) bool { return row.Over > 0 }) {
		all = append(all, "Policies that crawl more than the budget stand last and are not ranked.")
	}
	return all
}
