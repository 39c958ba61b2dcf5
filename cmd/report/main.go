// Report turns the directory of a sweep into pictures: report.html, which needs
// nothing else and no network, and each figure as SVG and PNG in plots/. It
// prints the table and a small plot.
//
//	go run ./cmd/report results/kappa
package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"ephemera/cmd/internal/cli"
	"ephemera/experiments/report"
)

func main() { cli.Main("report", run) }

func run(_ context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("report", `
Writes report.html and plots/ into the directory of a sweep.

  report DIR...     DIR is what sweep named as the place of its results`)
	if done, err := f.ParseAll(args, true, stdout); done || err != nil {
		return err
	}
	if f.NArg() == 0 {
		return cli.Usagef("name the directory of a sweep, such as results/kappa")
	}
	for _, dir := range f.Args() {
		r, files, err := report.Write(dir)
		if err != nil {
			return err
		}
		if err := r.Summary.Text(stdout); err != nil {
			return err
		}
		for i, name := range files {
			files[i] = filepath.Join(dir, filepath.FromSlash(name))
		}
		fmt.Fprintf(stderr, "wrote %s\n", strings.Join(files, " "))
	}
	return nil
}
