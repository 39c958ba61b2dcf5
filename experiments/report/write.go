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
	var drawings []files.File
	for _, s := range p.Sections {
		for _, f := range s.Figures {
			if f.Name == "" {
				continue
			}
			svg, err := f.SVG()
			if err != nil {
				return nil, err
			}
			png, err := f.PNG()
			if err != nil {
				return nil, err
			}
			drawings = append(drawings, files.File{Name: f.Name + ".svg", Data: svg}, files.File{Name: f.Name + ".png", Data: png})
			plots = append(plots, f.Name+".svg", f.Name+".png")
		}
	}
	if err := files.Put(filepath.Join(dir, "plots"), drawings...); err != nil {
		return nil, err
	}
	return plots, files.Put(dir, files.File{Name: "report.html", Data: html})
}
