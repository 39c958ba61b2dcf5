// Package report makes pages of results: of a sweep, of what train and bench
// wrote, of whatever fills a [Page]. A page is one HTML file that needs nothing
// else, and the same figures as SVG.
package report

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path/filepath"

	"ephemera/experiments/papers"
	"ephemera/experiments/plot"
	"ephemera/experiments/result"
	"ephemera/experiments/sweep"
	"ephemera/internal/files"
	"ephemera/internal/plain"
)

// Page is a report as data.
type Page struct {
	Title     string
	Question  string
	Answer    string
	Notes     []string // below the answer
	Warnings  []string
	Sections  []Section
	Command   string   // that makes the page again; a line each
	Footnotes []string // below the command
	Config    string   // what was run, in full
}

// Section is a part of a page: figures, of which one is shown at a time, and a
// table, either of which may be missing. Readers can sort the table by each
// column, and filter it. Its first column names the rows.
type Section struct {
	Title     string        `json:"-"`
	Notes     []string      `json:"-"`
	Figures   []plot.Figure `json:"figures"`
	Table     *result.Table `json:"table"`
	Draws     bool          `json:"draws,omitempty"`     // the rows are series, which the table draws and hides
	Reference string        `json:"reference,omitempty"` // name of the row that others are compared with
}

// uPlot (github.com/leeoniya/uPlot, MIT) is carried unchanged from its npm
// package, version 1.6.32.
var (
	//go:embed page/uPlot.iife.min.js
	uplotJS string
	//go:embed page/uPlot.min.css
	uplotCSS string
	//go:embed page/report.js
	pageJS string
	//go:embed page/report.css
	pageCSS string
	//go:embed page/report.html
	pageHTML string

	page = template.Must(template.New("report").Funcs(template.FuncMap{"plain": plain.Lines}).Parse(pageHTML))
)

// Load makes the page of a directory of results: that of a sweep, of train or of
// bench, or of what compare of the Python package saved. The page has the commands that
// make it again, in which the directory is at, and the last is that of report.
func Load(ctx context.Context, dir, at, report string) (p *Page, err error) {
	for _, read := range []func(ctx context.Context, dir string) (*Page, error){readSweep, readPapers, readResult} {
		if p, err = read(ctx, dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: holds no results of sweep, train, bench or of compare in Python: %w", dir, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if p.Command != "" {
		p.Command += " -out " + at + "\n" + report + " " + at
	}
	return p, nil
}

// Find returns the directories that [Load] can read: dir where it holds results itself, or
// else those below it. Where there are none it is dir, so that Load says so.
func Find(dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		for _, name := range []string{sweep.SummaryFile, papers.ReportFile, resultFile} {
			if exists(filepath.Join(path, name)) {
				found = append(found, path)
				return fs.SkipDir
			}
		}
		return nil
	})
	if len(found) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		return []string{dir}, nil
	}
	return found, err
}

// HTML returns the page. It loads nothing: script, style and data are in it.
// Figures without anything to draw are left out, and sections without figures
// and rows.
func (p *Page) HTML() ([]byte, error) {
	styles := 0
	var sections []Section
	for _, s := range p.Sections {
		figures := []plot.Figure{} // not null for the script
		for _, f := range s.Figures {
			if f.Prune() == nil {
				figures = append(figures, f)
			}
			for _, x := range f.Series {
				styles = max(styles, x.Style+1)
			}
		}
		s.Figures = figures
		if len(figures) > 0 || s.Table != nil && len(s.Table.Rows) > 0 {
			sections = append(sections, s)
		}
	}
	p.Sections = sections
	data, err := json.Marshal(struct { // escapes <, > and &, so that it can stand in a page
		Sections []Section   `json:"sections"`
		Looks    []plot.Look `json:"looks"`
	}{p.Sections, plot.Looks(styles)})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = page.Execute(&b, map[string]any{
		"Page": p, "Data": template.JS(data), "UPlot": template.JS(uplotJS), "Script": template.JS(pageJS),
		"UPlotCSS": template.CSS(uplotCSS), "CSS": template.CSS(pageCSS),
	})
	return b.Bytes(), err
}

// Write writes the page into a file, and its figures as SVG, PNG and PDF into the directory plots.
// It returns how many these are.
func (p *Page) Write(path, plots string) (drawn int, err error) {
	html, err := p.HTML()
	if err != nil {
		return 0, err
	}
	for _, s := range p.Sections {
		for _, f := range s.Figures {
			if err := f.Put(plots); err != nil {
				return drawn, err
			}
			drawn++
		}
	}
	return drawn, files.Put(path, html)
}
