package report

import (
	"path/filepath"

	"ephemera/experiments/files"
)

// Write writes the page as report.html into the directory, and each figure that
// has a name as SVG into its subdirectory plots. It returns the names of the plots.
func (p *Page) Write(dir string) (plots []string, err error) {
	html, err := p.HTML()
	if err != nil {
		return nil, err
	}
	for _, s := range p.Sections {
		for _, f := range s.Figures {
			if f.Name == "" {
				continue
			}
			drawing, err := f.SVG()
			if err == nil {
				err = files.Put(filepath.Join(dir, "plots", f.Name+".svg"), drawing)
			}
			if err != nil {
				return nil, err
			}
			plots = append(plots, f.Name+".svg")
		}
	}
	return plots, files.Put(filepath.Join(dir, "report.html"), html)
}
