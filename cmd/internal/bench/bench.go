// Package bench is the command bench.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/comparison"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/papers"
	"ephemera/experiments/result"
)

const about = `Bench compares policies in the same worlds under the same seeds: reward with a
95 % interval, the difference to exact Whittle, crawls per epoch and the share
of the bound. Without a flag: every policy that applies to Table I, 20 seeds.
With -preset papers: every figure that the papers print, measured and judged.
With -out a run that is done is kept, and the same command runs what is missing.`

// Run is the command.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c := comparison.New("bench", about, "`directory` that is made for the runs and their results; "+
		"with -preset papers for the drawn figures (default "+picturesDir+")")
	var preset, policies string
	f := c.Flags
	cli.Choice(f, &preset, "preset", "",
		"`name` of a fixed comparison: papers measures every figure that the papers print, "+
			"judges it, and draws the figures of TCNS into -out", "papers")
	f.StringVar(&policies, "policies", "",
		"`names` to compare, separated by commas; by default all that apply. "+
			"learning and learned stand for the learner of -algorithm; another learner goes by its name, "+
			"and what train learned with -out DIR by file:DIR")
	var drawn instances
	f.Func("random", "`N,M,count`: compare on that many instances of N sources and budget M, instead of -instance, "+
		"those of the numbers from -seed on; the family is lognormal, or FAMILY:N,M,count", drawn.set)
	f.Count(&c.Seeds, "seeds", 20, 1, "`count` of seeds; with -preset papers 200 unless given")
	if done, err := c.Parse(args, stdout); done || err != nil {
		return err
	}
	show, clear := cli.Progress(stderr, "runs")
	c.Batch.Progress = show
	if preset != "" {
		return reproduce(ctx, c, clear, stdout, stderr)
	}
	if f.IsSet("random") {
		if f.IsSet("instance") || f.IsSet("budget") || f.IsSet("trace") {
			return cli.Usagef("-random names its own instances and budget; leave out -instance, -budget and -trace")
		}
		c.Run.Instance.Budget, c.Instances = drawn.budget, drawn.names(c.Run.Seed)
	}
	var names []string
	if policies != "" {
		names = strings.Split(policies, ",")
	}
	contenders, err := c.Choose(ctx, names)
	if err != nil {
		return err
	}
	done, r, err := c.Perform(ctx, contenders, stderr)
	clear()
	if err != nil || done == nil {
		return err
	}
	return c.Tell(r, map[string]result.Printed{"result.md": r, "runs.csv": experiments.RunsTable(done)}, stdout)
}

// instances are those of -random.
type instances struct {
	family   string
	n, count int // sources of each, and how many they are
	budget   float64
}

func (x *instances) set(text string) error {
	family, rest, ok := strings.Cut(text, ":")
	if !ok {
		family, rest = "lognormal", text
	}
	if families := env.Families(); !slices.Contains(families, family) {
		return fmt.Errorf("family is %q; allowed are %s", family, strings.Join(families, ", "))
	}
	x.family = family
	_, err := fmt.Sscanf(rest+"\n", "%d,%g,%d\n", &x.n, &x.budget, &x.count)
	if err != nil || !(x.budget > 0 && x.budget <= math.MaxFloat64) || x.count < 1 {
		return errors.New("allowed is N,M,count or FAMILY:N,M,count, such as 50,10,30")
	}
	return nil
}

// names returns the names of the instances with the numbers from first on.
func (x *instances) names(first uint64) (names []string) {
	for k := range x.count {
		names = append(names, fmt.Sprintf("%s:%d:%d", x.family, x.n, first+uint64(k)))
	}
	return names
}

// picturesDir is where the figures go unless -out names another directory.
const picturesDir = "results/papers"

// reproduce runs -preset papers: it draws the figures, then measures and judges
// what the papers print. With -out it keeps what each seed gave.
func reproduce(ctx context.Context, c *comparison.Comparison, clear func(), stdout, stderr io.Writer) error {
	err := c.Flags.Only("-preset papers has its own worlds and policies",
		"preset", "seeds", "seed", "steps", "workers", "out", "shard", "format")
	if err != nil {
		return err
	}
	o := papers.Options{Seeds: c.Seeds, Seed: c.Run.Seed, Steps: c.Run.Steps, Batch: c.Batch}
	if !c.Flags.IsSet("seeds") {
		o.Seeds = papers.DefaultSeeds
	}
	pictures, err := papers.Pictures(o.Seed)
	if err != nil {
		return err
	}
	for _, f := range pictures {
		if err := f.Put(cmp.Or(c.Batch.Dir, picturesDir)); err != nil {
			return fmt.Errorf("-out: %w", err)
		}
	}
	if err := c.KeepCommand(); err != nil {
		return err
	}
	r, err := papers.Run(ctx, o)
	clear()
	if err != nil {
		return err
	}
	if r == nil {
		comparison.SayShard(stderr, "bench", c.Batch.Shard)
		return nil
	}
	if c.Batch.Dir != "" {
		err = result.Put(c.Batch.Dir, map[string]result.Printed{papers.ReportFile: r, "papers.md": r})
		if err != nil {
			err = fmt.Errorf("-out: %w", err)
		}
	}
	return errors.Join(result.Print(stdout, r, c.Format), err)
}
