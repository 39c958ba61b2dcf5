// Package report is the command report.
package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments/report"
)

// Run is the command.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("report", `
Writes report.html and plots/ into directories of results.

  report DIR...     DIR is where sweep, train or bench put its results`)
	operands, done, err := f.ParseMixed(args, stdout)
	if done || err != nil {
		return err
	}
	if len(operands) == 0 {
		return cli.Usagef("name the directory of a sweep, such as results/kappa")
	}
	var errs []error // one report that fails does not take the others down
	for _, dir := range operands {
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		p, err := report.Load(ctx, dir, cli.Quote(filepath.ToSlash(dir)))
		var plots []string
		if err == nil {
			plots, err = p.Write(dir)
		}
		if err == nil {
			fmt.Fprintf(stderr, "wrote %s and %d plots in %s\n", filepath.Join(dir, "report.html"), len(plots), filepath.Join(dir, "plots"))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
