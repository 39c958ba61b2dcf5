// Sweep runs a configuration: every cell under every seed, on all cores. Each
// run that is done is a file at once; the same command goes on where an earlier
// one ended.
//
//	go run ./cmd/sweep
//	go run ./cmd/sweep -list experiments/configs/stepsizes.toml
//	go run ./cmd/sweep experiments/configs/kappa.toml -set learner.gamma=0.1 -out results/gamma
//	go run ./cmd/sweep experiments/configs/scale.toml -shard 0/8
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments"
	"ephemera/experiments/configs"
	"ephemera/experiments/sweep"
)

const defaultConfig = "kappa"

func main() { cli.Main("sweep", run) }

// command is a call of sweep.
type command struct {
	out            string
	list           bool
	set            []string
	options        sweep.Options
	output         cli.Output
	stdout, stderr io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c := &command{stdout: stdout, stderr: stderr}
	var shard string
	f := cli.NewFlags("sweep", `
Runs the cells of a configuration (by default `+defaultConfig+`) under
every seed, on all cores, and goes on where an earlier call ended.

  sweep [flags] [CONFIG]        CONFIG is a .toml file or one of `+strings.Join(configs.Names(), ", "))
	f.Group("What", func() {
		f.BoolVar(&c.list, "list", false, "show the cells, and run nothing")
		f.Func("set", "`key=value` overrides any key of the configuration, a list makes a grid; may be repeated", func(text string) error {
			c.set = append(c.set, text)
			return nil
		})
		f.StringVar(&c.out, "out", "", "`directory` of the results (default results/NAME)")
		f.BoolVar(&c.options.ReadOnly, "summarize", false, "run nothing, and summarize the runs that are there")
	})
	f.Group("How", func() {
		f.Count(&c.options.Workers, "workers", 0, 0, "`number` of runs at once; 0 is one per core; the results do not depend on it")
		f.StringVar(&shard, "shard", "", "`i/n` runs only every n-th run, from the i-th, counted from 0; by default what SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT say")
	})
	c.output.Define(f, nil)
	names, done, err := f.ParseMixed(args, stdout)
	if done || err != nil {
		return err
	}
	c.options.Workers = cmp.Or(c.options.Workers, cli.Cores)
	if shard != "" {
		c.options.Shard, err = experiments.ParseShard(shard)
		err = cli.AsUsage(err)
	} else if !c.options.ReadOnly {
		c.options.Shard, err = experiments.ShardFromSlurm(os.Getenv)
	}
	if err != nil {
		return err
	}
	if len(names) > 1 {
		return cli.Usagef("one configuration is allowed, not %d", len(names))
	}
	name := append(names, defaultConfig)[0]
	cfg, err := c.load(ctx, name)
	if err != nil {
		return err
	}
	if c.list {
		for _, cell := range cfg.Cells {
			fmt.Fprintln(stdout, cell.ID)
		}
		_, err := fmt.Fprintf(stdout, "\n%s: %d cells × %d seeds = %d runs\n", cfg.Name, len(cfg.Cells), len(cfg.Seeds), len(cfg.Cells)*len(cfg.Seeds))
		return err
	}
	return c.sweep(ctx, cfg, name, cmp.Or(c.out, filepath.Join("results", cfg.Name)))
}

// load reads a configuration: a file, or by its name one that the program
// carries.
func (c *command) load(ctx context.Context, name string) (*sweep.Config, error) {
	base := strings.TrimSuffix(filepath.Base(name), ".toml") + ".toml"
	text, err := os.ReadFile(name)
	if err != nil && (name == base || name+".toml" == base || filepath.ToSlash(name) == "experiments/configs/"+base) {
		text, err = configs.Files.ReadFile(base)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: no such file; a configuration is a .toml file or one of %s", name, strings.Join(configs.Names(), ", "))
	}
	cfg, err := sweep.Load(ctx, base, text, c.set)
	if len(c.set) > 0 {
		err = cli.AsUsage(err)
	}
	return cfg, err
}

// sweep runs a configuration; name is what the command line calls it.
func (c *command) sweep(ctx context.Context, cfg *sweep.Config, name, dir string) error {
	o := c.options
	o.Dir, o.Program, o.Command = dir, cli.Revision(), "go run ./cmd/sweep "+cli.Quote(filepath.ToSlash(name))
	for _, x := range c.set {
		o.Command += " -set " + cli.Quote(x)
	}
	show, clear := c.output.Progress(c.stderr, "runs of "+cfg.Name)
	o.Progress = func(done, _, total int) { show(done, total) }
	s, err := sweep.Run(ctx, cfg, o)
	clear()
	if err != nil {
		return cli.GoOn(err, fmt.Sprintf("the runs that are done are in %s, and the same command runs the others", dir))
	}
	for _, failure := range s.Failures {
		fmt.Fprintln(c.stderr, failure)
	}
	if s.Final {
		if err := s.Write(c.stdout, c.output.Format()); err != nil {
			return err
		}
		fmt.Fprintf(c.stderr, "%d runs now, %d before; results in %s; for pictures: go run ./cmd/report %s\n", s.Ran, s.Runs-s.Ran, dir, cli.Quote(dir))
	} else {
		fmt.Fprintf(c.stderr, "%s: shard %d/%d is done, %d of %d runs are missing\n", cfg.Name, o.Shard.Index, o.Shard.Count, s.Missing, s.Missing+s.Runs)
	}
	switch {
	case len(s.Failures) > 0:
		return fmt.Errorf("%d runs failed", len(s.Failures))
	case s.Final && s.Missing > 0:
		return fmt.Errorf("%d of %d runs are missing: %s", s.Missing, s.Missing+s.Runs, strings.Join(s.Gaps, "; "))
	}
	return nil
}
