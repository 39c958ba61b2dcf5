package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode"

	"ephemera/experiments/files"
	"ephemera/experiments/plot"
)

const plotsDir = "plots"

// Write writes the page as report.html into the directory, and in plots/ each
// figure that has a name as SVG and PNG, with night also for dark backgrounds.
// It removes the files of those figures in Names that the page has not. Nothing
// outside of the directory is touched, whatever the figures are named and
// wherever links in it lead. It returns the names of the files.
func (p *Page) Write(dir string, night bool) ([]string, error) {
	return within(dir, func(root *os.Root) ([]string, error) { return p.write(root, night) })
}

func (p *Page) write(root *os.Root, night bool) (written []string, err error) {
	html, err := p.HTML()
	if err != nil {
		return nil, err
	}
	all := []files.File{{Name: "report.html", Data: html}}
	names := map[string]bool{}
	for _, s := range p.Sections {
		for _, f := range s.Figures {
			if f.Name == "" {
				continue
			}
			name := fileName(f.Name)
			for names[name] { // two figures of one name
				name += "-2"
			}
			names[name] = true
			drawings, err := draw(f, path.Join(plotsDir, name), night)
			if err != nil {
				return nil, err
			}
			all = append(all, drawings...)
		}
	}
	if err := root.MkdirAll(plotsDir, 0o777); err != nil {
		return nil, err
	}
	for _, f := range all {
		if err := save(root, f); err != nil {
			return nil, err
		}
		written = append(written, f.Name)
	}
	return written, p.tidy(root, names)
}

// draw makes the files of a figure.
func draw(f plot.Figure, name string, night bool) (all []files.File, err error) {
	themes := map[string]plot.Theme{"": plot.Light}
	if night {
		themes["-dark"] = plot.Dark
	}
	for suffix, theme := range themes {
		for ext, form := range map[string]func(plot.Theme) ([]byte, error){".svg": f.SVG, ".png": f.PNG} {
			data, err := form(theme)
			if err != nil {
				return nil, err
			}
			all = append(all, files.File{Name: name + suffix + ext, Data: data})
		}
	}
	return all, nil
}

// tidy removes the files of figures that such a page may have, and this one has
// not.
func (p *Page) tidy(root *os.Root, has map[string]bool) error {
	for _, name := range p.Names {
		for _, ext := range []string{".svg", ".png", "-dark.svg", "-dark.png"} {
			file := path.Join(plotsDir, fileName(name)+ext)
			if info, err := root.Lstat(file); has[fileName(name)] || err != nil || !info.Mode().IsRegular() {
				continue
			}
			if err := root.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// fileName returns the name of a figure's files: letters, digits and a few
// marks stay.
func fileName(name string) string {
	safe := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, name)
	return strings.ToValidUTF8(safe[:min(len(safe), 120)], "") // without half a letter
}

// save replaces a file whole, also where a link stands in its place.
func save(root *os.Root, f files.File) error {
	pending := path.Join(path.Dir(f.Name), ".pending-"+path.Base(f.Name))
	err := root.Remove(pending) // of a process that was killed
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = root.WriteFile(pending, f.Data, 0o666)
	}
	if err == nil {
		err = root.Rename(pending, f.Name)
	}
	if err != nil {
		_ = root.Remove(pending)
		return err
	}
	return nil
}

// within opens a directory, for use to look at nothing that links in it lead to.
func within[T any](dir string, use func(*os.Root) (T, error)) (v T, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return v, err
	}
	defer root.Close()
	if v, err = use(root); err != nil {
		return v, fmt.Errorf("%s: %w", dir, err)
	}
	return v, nil
}
