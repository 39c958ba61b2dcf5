// Package sweep is the command sweep.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/comparison"
	"ephemera/experiments"
	"ephemera/experiments/configs"
	"ephemera/experiments/result"
	"ephemera/experiments/sweep"
	"ephemera/internal/plain"
)

// Run is the command.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var b experiments.Batch
	var list bool
	var set []string
	var format result.Format
	f := cli.NewFlags("sweep", `
Runs a grid of settings, each combination (a cell) under every seed, and compares
them. Called again, it runs what is missing.

  sweep [flags] [CONFIG]        CONFIG is a .toml file or one of these, by default kappa:
                                `+strings.Join(configs.Names(), ", "))
	f.BoolVar(&list, "list", false, "print the names of the cells, and run nothing")
	f.Func("set", "`key=value` that takes the place of a key of the configuration; "+
		"a list, such as learner.kappa=[1,2], makes a grid; may be repeated", func(text string) error {
		set = append(set, text)
		return nil
	})
	f.StringVar(&b.Dir, "out", "results/NAME", "`directory` of the results")
	f.BoolVar(&b.ReadOnly, "summarize", false, "summarize the runs that are done, and run nothing")
	comparison.DefineBatch(f, &b)
	comparison.DefineFormat(f, &format)
	names, done, err := f.ParseAll(args, 1, stdout)
	if done || err != nil {
		return err
	}
	name := append(names, "kappa")[0]
	text, err := configs.Read(name)
	if err != nil {
		return err
	}
	file := strings.TrimSuffix(filepath.Base(name), ".toml") + ".toml"
	cfg, err := sweep.Load(ctx, file, text, set)
	if err != nil {
		if _, alone := sweep.Load(ctx, file, text, nil); alone == nil && !errors.As(err, new(*sweep.FileError)) {
			return cli.Usagef("%w", err) // it is of -set
		}
		return err
	}
	if list {
		for _, cell := range cfg.Cells {
			fmt.Fprintln(stdout, plain.Text(cell.ID))
		}
		_, err := fmt.Fprintf(stdout, "\n%s: %d cells × %d seeds = %d runs\n",
			cfg.Name, len(cfg.Cells), cfg.Seeds, len(cfg.Cells)*cfg.Seeds)
		return err
	}
	if b.ReadOnly {
		b.Shard = experiments.Shard{}
	}
	if !f.IsSet("out") {
		b.Dir = filepath.Join("results", cfg.Name)
	}
	cfg.Command = cli.Caller + "sweep " + cli.Quote(filepath.ToSlash(name))
	for _, x := range set {
		cfg.Command += " -set " + cli.Quote(x)
	}
	show, clear := cli.Progress(stderr, "runs of "+cfg.Name)
	b.Progress = show
	s, err := sweep.Run(ctx, cfg, b)
	clear()
	if s == nil {
		return cli.GoOn(err, b.Dir)
	}
	if !s.Final {
		fmt.Fprintf(stderr, "%s: shard %d/%d is done, %d of %d runs are missing\n",
			cfg.Name, b.Shard.Index, b.Shard.Count, s.Missing, s.Missing+s.Runs)
	} else if err := errors.Join(result.Print(stdout, s, format), err); err != nil {
		return err
	} else {
		fmt.Fprintf(stderr, "%s now, %d before; results in %s; for pictures: %sreport %s\n",
			plain.Count(s.Ran, "run"), s.Runs-s.Ran, b.Dir, cli.Caller, cli.Quote(b.Dir))
	}
	switch {
	case len(s.Failures) > 0:
		return fmt.Errorf("%d runs failed: %s", len(s.Failures), strings.Join(s.Failures, "; "))
	case s.Final && s.Missing > 0:
		return fmt.Errorf("%d of %d runs are missing", s.Missing, s.Missing+s.Runs)
	}
	return nil
}
