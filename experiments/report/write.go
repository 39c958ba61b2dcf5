package report

import (
	"os"
	"path/filepath"
)

// Write writes the page as report.html into the directory, and each figure that
// has a name as SVG and PNG into its subdirectory plots. It returns the names of
// the files.
func (p *Page) Write(dir string) (written []string, err error) {
	save := func(name string, data []byte, err error) error {
		if err != nil {
			return err
		}
		written = append(written, name)
		return os.WriteFile(filepath.Join(dir, name), data, 0o666)
	}
	if err := os.MkdirAll(filepath.Join(dir, "plots"), 0o777); err != nil {
		return nil, err
	}
	html, err := p.HTML()
	if err := save("report.html", html, err); err != nil {
		return nil, err
	}
	for _, s := range p.Sections {
		for _, f := range s.Figures {
			if f.Name == "" {
				continue
			}
			svg, err := f.SVG()
			if err := save(filepath.Join("plots", f.Name+".svg"), svg, err); err != nil {
				return nil, err
			}
			png, err := f.PNG()
			if err := save(filepath.Join("plots", f.Name+".png"), png, err); err != nil {
				return nil, err
			}
		}
	}
	return written, nil
}
