// Package report is the command report.
package report

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments/report"
)

// Run is the command.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("report", `
Writes report.html and plots/ into directories of results.

  report DIR...     DIR is a directory that sweep, train or bench made with -out,
                    or that compare(...).save or benchmark(..., out=) made in Python,
                    or one that holds such directories`)
	operands, done, err := f.ParseAll(args, math.MaxInt, stdout)
	if done || err != nil {
		return err
	}
	if len(operands) == 0 {
		return cli.Usagef("no directory is named; name one that sweep, train or bench made, such as results/kappa")
	}
	for _, operand := range operands {
		dirs, err := report.Find(operand)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			if err := write(ctx, dir, stderr); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes the page and the plots of a directory into it.
func write(ctx context.Context, dir string, stderr io.Writer) error {
	p, err := report.Load(ctx, dir, cli.Quote(filepath.ToSlash(dir)), cli.Caller+"report")
	if err != nil {
		return err
	}
	page, plots := filepath.Join(dir, "report.html"), filepath.Join(dir, "plots")
	drawn, err := p.Write(page, plots)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "wrote %s and %d plots in %s\n", page, drawn, plots)
	return nil
}
