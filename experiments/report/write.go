package report

import (
	"path/filepath"

	"ephemera/experiments/files"
)

// Write writes the page as report.html into the directory, and each figure that
// has a name as SVG and PNG into its subdirectory plots. It returns the names of
// the plots.
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
			for suffix, draw := range map[string]func() ([]byte, error){".svg": f.SVG, ".png": f.PNG} {
				drawing, err := draw()
				if err == nil {
					err = files.Put(filepath.Join(dir, "plots", f.Name+suffix), drawing)
				}
				if err != nil {
					return nil, err
				}
				plots = append(plots, f.Name+suffix)
			}
		}
	}
	return plots, files.Put(filepath.Join(dir, "report.html"), html)
}
