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
	batch := cli.DefineBatch(f, &c.options.Batch)
	c.output.Define(f, nil)
	names, done, err := f.ParseMixed(args, stdout)
	if done || err != nil {
		return err
	}
	c.options.Dir = cmp.Or(c.out, "results")
	if err := batch(); err != nil {
		return err
	}
	if c.options.ReadOnly {
		c.options.Shard = experiments.Shard{}
	}
	if len(names) > 1 {
		return cli.Usagef("one configuration is allowed, not %d", len(names))
	}
	name := append(names, defaultConfig)[0]
	text, err := configs.Read(name)
	if err != nil {
		return err
	}
	cfg, err := sweep.Load(ctx, strings.TrimSuffix(filepath.Base(name), ".toml")+".toml", text, c.set)
	if err != nil && len(c.set) > 0 {
		return cli.AsUsage(err)
	}
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
	if c.out == "" {
		c.options.Dir = filepath.Join("results", cfg.Name)
	}
	return c.sweep(ctx, cfg, name)
}

// sweep runs a configuration; name is what the command line calls it.
func (c *command) sweep(ctx context.Context, cfg *sweep.Config, name string) error {
	o := c.options
	o.Program, o.Command = cli.Revision(), "go run ./cmd/sweep "+cli.Quote(filepath.ToSlash(name))
	for _, x := range c.set {
		o.Command += " -set " + cli.Quote(x)
	}
	show, clear := c.output.Progress(c.stderr, "runs of "+cfg.Name)
	o.Progress = func(done, _, total int) { show(done, total) }
	s, err := sweep.Run(ctx, cfg, o)
	clear()
	if err != nil {
		return cli.GoOn(err, fmt.Sprintf("the runs that are done are in %s, and the same command runs the others", o.Dir))
	}
	for _, failure := range s.Failures {
		fmt.Fprintln(c.stderr, failure)
	}
	if s.Final {
		if err := s.Write(c.stdout, c.output.Format()); err != nil {
			return err
		}
		fmt.Fprintf(c.stderr, "%d runs now, %d before; results in %s; for pictures: go run ./cmd/report %s\n", s.Ran, s.Runs-s.Ran, o.Dir, cli.Quote(o.Dir))
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
