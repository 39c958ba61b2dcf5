package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode"

	"ephemera/experiments/plot"
)

const plotsDir = "plots"

// Write writes the page as report.html into the directory, and in plots/ each
// figure as SVG and PNG, with night also for dark backgrounds. It removes those
// of the names in old that it does not write. Nothing outside of the directory
// is touched, whatever the figures are named and wherever links in it lead. It
// returns the names of the files.
func (p *Page) Write(dir string, night bool, old ...string) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	written, err := p.write(root, night, old)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return written, nil
}

func (p *Page) write(root *os.Root, night bool, old []string) (written []string, err error) {
	html, err := p.HTML()
	if err == nil {
		err = root.MkdirAll(plotsDir, 0o777)
	}
	if err == nil {
		err = put(root, "report.html", html)
	}
	if err != nil {
		return nil, err
	}
	written = append(written, "report.html")
	names := map[string]bool{}
	for _, s := range p.Sections {
		for _, f := range s.Figures {
			if f.Page {
				continue
			}
			name := fileName(f.Name)
			for k := 2; names[name]; k++ { // two figures of one name
				name = fmt.Sprintf("%s-%d", fileName(f.Name), k)
			}
			names[name] = true
			files, err := draw(root, f, name, night)
			if err != nil {
				return nil, err
			}
			written = append(written, files...)
		}
	}
	return written, tidy(root, names, old)
}

// draw writes the files of a figure.
func draw(root *os.Root, f plot.Figure, name string, night bool) (written []string, err error) {
	themes := map[string]plot.Theme{"": plot.Light}
	if night {
		themes["-dark"] = plot.Dark
	}
	for suffix, theme := range themes {
		for ext, form := range map[string]func(plot.Theme) ([]byte, error){".svg": f.SVG, ".png": f.PNG} {
			file := path.Join(plotsDir, name+suffix+ext)
			data, err := form(theme)
			if err == nil {
				err = put(root, file, data)
			}
			if err != nil {
				return nil, err
			}
			written = append(written, file)
		}
	}
	return written, nil
}

// tidy removes the files of figures of old that are not among the names.
func tidy(root *os.Root, names map[string]bool, old []string) error {
	for _, name := range old {
		if name = fileName(name); names[name] {
			continue
		}
		for _, ext := range []string{".svg", ".png", "-dark.svg", "-dark.png"} {
			file := path.Join(plotsDir, name+ext)
			if info, err := root.Lstat(file); err != nil || !info.Mode().IsRegular() {
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
	for len(safe) > 120 {
		r := []rune(safe)
		safe = string(r[:len(r)-1])
	}
	return safe
}

// put replaces a file whole.
func put(root *os.Root, name string, data []byte) (err error) {
	pending := path.Join(path.Dir(name), ".pending-"+path.Base(name))
	defer func() {
		if err != nil {
			_ = root.Remove(pending)
		}
	}()
	if err := root.Remove(pending); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // of a process that was killed
	}
	if err := root.WriteFile(pending, data, 0o666); err != nil {
		return err
	}
	return root.Rename(pending, name)
}
