// Report turns what sweep, train and bench keep into pictures: report.html,
// which needs nothing else and no network, and each figure as SVG and PNG in
// plots/. It prints the table of results. Of a directory of such directories it
// does each.
//
//	go run ./cmd/report results/kappa
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments/report"
)

func main() { cli.Main("report", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("report", `
Writes report.html and plots/ into directories of results.

  report DIR...     DIR is where sweep, train or bench put its results, or
                    holds such directories`)
	operands, done, err := f.ParseMixed(args, stdout)
	if done || err != nil {
		return err
	}
	if len(operands) == 0 {
		return cli.Usagef("name the directory of a sweep, such as results/kappa")
	}
	var errs []error // one report that fails does not take the others down
	for _, operand := range operands {
		dirs, err := report.Dirs(operand)
		errs = append(errs, err)
		for _, dir := range dirs {
			if ctx.Err() != nil {
				return errors.Join(append(errs, ctx.Err())...)
			}
			p, err := report.Load(ctx, dir, cli.Quote(filepath.ToSlash(dir)))
			if err == nil {
				err = write(p, dir, stdout, stderr)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// write puts a page into a directory and prints the results that it shows.
func write(p *report.Page, dir string, stdout, stderr io.Writer) error {
	plots, err := p.Write(dir)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(stdout, p.Text); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stderr, "wrote %s and %d plots in %s\n", filepath.Join(dir, "report.html"), len(plots), filepath.Join(dir, "plots"))
	return err
}
