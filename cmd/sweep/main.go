// Sweep runs a configuration: every cell under every seed, on all cores. Each
// finished run is on disk at once; the same command goes on where an earlier
// one ended.
//
//	go run ./cmd/sweep
//	go run ./cmd/sweep -list experiments/configs/stepsizes.toml
//	go run ./cmd/sweep experiments/configs/kappa.toml -set learner.gamma=0.1 -out results/gamma
//	go run ./cmd/sweep experiments/configs/scale.toml -shard 0/8
//	go run ./cmd/sweep -merge results/scale
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments/cells"
	"ephemera/experiments/configs"
	"ephemera/experiments/result"
	"ephemera/experiments/sweep"
)

const defaultConfig = "experiments/configs/kappa.toml"

func main() { cli.Main("sweep", run) }

// command is a call of sweep.
type command struct {
	schema *cells.Schema
	out    string
	merge  string
	list   bool
	set    []string
	format result.Format
	run    sweep.Options // of each configuration, but for what is its own
	output cli.Output
	stdout io.Writer
	stderr io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c := &command{schema: cells.New(), stdout: stdout, stderr: stderr}
	var shard string
	f := cli.NewFlags("sweep", `
Runs the cells of configurations (by default `+defaultConfig+`) under
every seed, on all cores, and goes on where an earlier call ended.

  sweep [flags] [CONFIG...]     CONFIG is a .toml file or one of `+strings.Join(configs.Names(), ", "))
	f.Group("What", func() {
		f.BoolVar(&c.list, "list", false, "show the cells and an estimate of the time, and run nothing")
		f.Func("set", "`key=value` overrides any key of the configuration, a list makes a grid; may be repeated", func(text string) error {
			c.set = append(c.set, text)
			return nil
		})
		f.StringVar(&c.out, "out", "", "`directory` of the results, with one directory in it for each of several configurations (default results/NAME)")
		f.StringVar(&c.merge, "merge", "", "`directory` of a sweep whose final files are to be written from what is there; names what is missing")
	})
	f.Group("How", func() {
		f.Count(&c.run.Workers, "workers", 0, 0, "`number` of runs at once; 0 is one per core; the results do not depend on it")
		f.StringVar(&shard, "shard", "", "`i/n` runs only every n-th run, from the i-th, counted from 0; by default what SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT say")
	})
	c.output.Define(f, nil)

	operands, done, err := f.ParseMixed(args, stdout)
	if done || err != nil {
		return err
	}
	c.format = c.output.Format()
	c.run.Workers = cmp.Or(c.run.Workers, cli.Cores)
	if c.merge != "" {
		const alone = "-merge works on what is there"
		if len(operands) > 0 {
			return cli.Usagef("%s; leave out %q", alone, operands[0])
		}
		if err := f.Only(alone, "merge", "workers", "format", "progress"); err != nil {
			return err
		}
		return c.mergeAll(ctx)
	}
	switch {
	case shard != "":
		c.run.Shard, err = sweep.ParseShard(shard)
		if err != nil {
			err = cli.Usagef("-shard: %w", err)
		}
	case !c.list:
		c.run.Shard, err = sweep.ShardFromSlurm(os.Getenv)
	}
	if err != nil {
		return err
	}
	if len(operands) == 0 {
		operands = []string{defaultConfig}
	}
	return c.runAll(ctx, operands)
}

// runAll runs or lists configurations, which have a name each.
func (c *command) runAll(ctx context.Context, files []string) error {
	if err := c.one(len(files)); err != nil {
		return err
	}
	of := map[string]bool{}
	var list []*sweep.Config
	for _, file := range files {
		cfg, err := c.load(file)
		if err != nil {
			return err
		}
		if of[cfg.Name] {
			return cli.Usagef("two configurations have the name %q; run them one by one, each with -out", cfg.Name)
		}
		of[cfg.Name], list = true, append(list, cfg)
	}
	var errs []error // one sweep that fails does not take the others down
	for i, cfg := range list {
		var err error
		if c.list {
			err = c.show(ctx, cfg)
		} else {
			dir := cmp.Or(c.out, filepath.Join("results", cfg.Name))
			if c.out != "" && len(list) > 1 {
				dir = filepath.Join(c.out, cfg.Name)
			}
			err = c.sweep(ctx, cfg, files[i], dir)
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			if err == nil && i+1 < len(list) {
				errs = append(errs, fmt.Errorf("%w before %s; the same command goes on with it", ctx.Err(), list[i+1].Name))
			}
			break
		}
	}
	return errors.Join(errs...)
}

// one refuses to print several sweeps in a format that holds one.
func (c *command) one(sweeps int) error {
	if sweeps > 1 && (c.format == result.JSON || c.format == result.CSV) {
		return cli.Usagef("-format %s prints one sweep, not %d; take them one by one, or read summary.%s in the directory of each", c.format, sweeps, c.format)
	}
	return nil
}

// load reads a configuration: a file, or by its name one that the program
// carries.
func (c *command) load(name string) (*sweep.Config, error) {
	read := func(set []string) (*sweep.Config, error) { return sweep.LoadFile(c.schema, name, set) }
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		base := strings.TrimSuffix(filepath.Base(name), ".toml") + ".toml"
		own, ownErr := configs.Files.ReadFile(base)
		// The whole path must be that of the checkout, or the bare name.
		if ownErr != nil || name != base && name+".toml" != base && filepath.ToSlash(name) != "experiments/configs/"+base {
			return nil, fmt.Errorf("%s: no such file; a configuration is a .toml file or one of %s", name, strings.Join(configs.Names(), ", "))
		}
		read = func(set []string) (*sweep.Config, error) { return sweep.Load(c.schema, base, own, set) }
	}
	cfg, err := read(c.set)
	if err != nil && len(c.set) > 0 {
		if _, plain := read(nil); plain == nil {
			err = cli.AsUsage(err) // the flags are wrong, not the file
		}
	}
	return cfg, err
}

// show lists the cells: for people by id, for machines with the settings that
// differ. Behind them stands an estimate of the time.
func (c *command) show(ctx context.Context, cfg *sweep.Config) error {
	t := result.Table{Header: append([]string{"cell"}, cfg.Axes...)}
	for i := range cfg.Cells {
		cell := &cfg.Cells[i]
		t.Add(append([]string{cell.ID}, cell.Texts(cfg.Axes)...)...)
	}
	switch c.format {
	case result.Text:
		for _, row := range t.Rows {
			fmt.Fprintln(c.stdout, row[0])
		}
	case result.Markdown, result.CSV:
		if err := t.Write(c.stdout, c.format); err != nil || c.format == result.CSV {
			return err
		}
	}
	d, err := c.schema.Estimate(ctx, cfg, c.run.Workers, 2*time.Second)
	if err != nil {
		return err
	}
	if c.format != result.JSON {
		if d = d.Round(10 * time.Millisecond); d > 10*time.Second {
			d = d.Round(time.Second)
		}
		_, err := fmt.Fprintf(c.stdout, "\n%s: %d cells × %d seeds = %d runs, about %s\n", cfg.Name, len(cfg.Cells), len(cfg.Seeds), cfg.Jobs(), d)
		return err
	}
	m := cfg.Meta()
	return result.WriteJSON(c.stdout, struct {
		Name    string           `json:"name"`
		Cells   []sweep.MetaCell `json:"cells"`
		Seeds   []uint64         `json:"seeds"`
		Runs    int              `json:"runs"`
		Seconds float64          `json:"seconds"` // estimate
	}{m.Name, m.Cells, m.Seeds, cfg.Jobs(), d.Seconds()})
}

// sweep runs a configuration; file is what the command line calls it.
func (c *command) sweep(ctx context.Context, cfg *sweep.Config, file, dir string) error {
	show, clear := c.output.Progress(c.stderr, cfg.Name)
	o := c.run
	o.Dir, o.Revision, o.Command = dir, cli.Revision(), repeat(file, c.set)
	o.Progress = func(done, failed, total int) { show(done+failed, total) }
	o.Log = func(line string) {
		clear()
		fmt.Fprintln(c.stderr, line)
	}
	rep, err := sweep.Run(ctx, cfg, o)
	clear()
	if err != nil {
		return cli.GoOn(err, fmt.Sprintf("the runs that are finished are recorded in %s, and the same command runs the others", dir))
	}
	return c.tell(cfg, o, rep)
}

// repeat is the command that gives the same results.
func repeat(file string, set []string) string {
	s := "go run ./cmd/sweep " + cli.Quote(filepath.ToSlash(file))
	for _, x := range set {
		s += " -set " + cli.Quote(x)
	}
	return s
}

// mergeAll writes the final files of a directory, or of the sweeps in it.
func (c *command) mergeAll(ctx context.Context) error {
	dirs, err := sweep.Dirs(c.merge)
	if err != nil {
		return err
	}
	if err := c.one(len(dirs)); err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		if errs = append(errs, c.mergeOne(ctx, dir)); ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (c *command) mergeOne(ctx context.Context, dir string) error {
	cfg, err := sweep.LoadFile(c.schema, filepath.Join(dir, "config.toml"), nil)
	if err != nil {
		return err
	}
	o := c.run
	o.Dir = dir
	rep, err := sweep.Merge(ctx, cfg, o)
	if err != nil {
		return err
	}
	return c.tell(cfg, o, rep)
}

// tell prints what a call did.
func (c *command) tell(cfg *sweep.Config, o sweep.Options, rep sweep.Report) error {
	for _, d := range rep.Damaged {
		fmt.Fprintf(c.stderr, "warning: %s\n", d)
	}
	if rep.Final {
		if err := c.print(o.Dir); err != nil {
			return err
		}
		fmt.Fprintf(c.stderr, "%d runs now, %d before; results in %s; for pictures: go run ./cmd/report %s\n", rep.Ran, rep.Total-rep.Missing-rep.Ran, o.Dir, cli.Quote(o.Dir))
	} else {
		fmt.Fprintf(c.stderr, "%s: shard %s is done, %d of %d runs are missing; when all shards have ended: sweep -merge %s\n", cfg.Name, o.Shard, rep.Missing, rep.Total, cli.Quote(o.Dir))
	}
	switch {
	case rep.Failed > 0:
		return fmt.Errorf("%d runs failed: %s", rep.Failed, strings.Join(rep.Failures, "; "))
	case rep.Final && rep.Missing > 0:
		return fmt.Errorf("%d of %d runs are missing: %s", rep.Missing, rep.Total, strings.Join(rep.Gaps, "; "))
	}
	return nil
}

// print writes the summary to stdout in the format that was asked for.
func (c *command) print(dir string) error {
	if c.format == result.Text {
		s, err := sweep.ReadSummary(dir)
		if err != nil {
			return err
		}
		return s.Text(c.stdout)
	}
	name := map[result.Format]string{result.CSV: "summary.csv", result.JSON: "summary.json", result.Markdown: "summary.md"}[c.format]
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	_, err = c.stdout.Write(b)
	return err
}
