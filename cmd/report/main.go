// Report turns the directory of a sweep into pictures: report.html, which needs
// nothing else and no network, and each figure as SVG and PNG in plots/. It
// prints the table and a small plot. Of a directory of sweeps it does each.
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
Writes report.html and plots/ into the directory of a sweep.

  report DIR...     DIR is what sweep named as the place of its results, or
                    holds such directories`)
	night := f.Bool("dark", false, "write each figure for dark backgrounds, too: NAME-dark.svg and NAME-dark.png")
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
			errs = append(errs, write(dir, *night, stdout, stderr))
		}
	}
	return errors.Join(errs...)
}

// write makes the report of one directory.
func write(dir string, night bool, stdout, stderr io.Writer) error {
	r, err := report.Load(dir)
	if err != nil {
		return err
	}
	written, err := r.Page.Write(dir, night, r.Figures...)
	if err != nil {
		return err
	}
	if err := r.Text(stdout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stderr, "wrote %s and %d plots in %s\n", filepath.Join(dir, written[0]), len(written)-1, filepath.Join(dir, "plots"))
	return err
}
