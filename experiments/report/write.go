package report

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ephemera/experiments/files"
	"ephemera/experiments/plot"
)

// Write loads the directory of a sweep and writes report.html, and in plots/
// each figure as SVG and PNG. It removes figures of an earlier call that the
// sweep no longer has. It returns what it read and the names of the files.
func Write(dir string) (*Report, []string, error) {
	r, err := Load(dir)
	if err != nil {
		return nil, nil, err
	}
	html, err := r.HTML()
	if err != nil {
		return nil, nil, err
	}
	files := []string{"report.html"}
	if err := put(filepath.Join(dir, "report.html"), html); err != nil {
		return nil, nil, err
	}
	pictures, err := r.Pictures()
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "plots"), 0o777); err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(pictures)) {
		svg, err := pictures[name].SVG()
		if err != nil {
			return nil, nil, err
		}
		png, err := pictures[name].PNG()
		if err != nil {
			return nil, nil, err
		}
		for ext, data := range map[string][]byte{".svg": svg, ".png": png} {
			if err := put(filepath.Join(dir, "plots", name+ext), data); err != nil {
				return nil, nil, err
			}
		}
		files = append(files, "plots/"+name+".svg", "plots/"+name+".png")
	}
	if err := r.tidy(filepath.Join(dir, "plots"), pictures); err != nil {
		return nil, nil, err
	}
	return r, files, nil
}

// tidy removes the pictures that a report of this sweep may write and this one
// did not.
func (r *Report) tidy(plots string, written map[string]*plot.Picture) error {
	names := []string{"profile", "heat", "threshold", "index"}
	for k := range maxPanels {
		names = append(names, fmt.Sprintf("heat-%d", k+1))
	}
	for _, f := range r.Summary.Curves {
		names = append(names, "curves-"+f.Name)
	}
	for _, f := range r.Summary.Figures {
		names = append(names, "along-"+f.Name)
	}
	for _, name := range names {
		if written[name] != nil {
			continue
		}
		for _, ext := range []string{".svg", ".png"} {
			path := filepath.Join(plots, name+ext)
			info, err := os.Lstat(path)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// put replaces a file whole.
func put(path string, data []byte) error {
	f, err := files.Create(path, "")
	if err != nil {
		return err
	}
	defer f.Cleanup() // does nothing once the file is in its place
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
