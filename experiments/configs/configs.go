// Package configs holds the configurations of the project's own sweeps. Each
// begins with the question that it asks.
package configs

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Files are the configurations.
//
//go:embed *.toml
var Files embed.FS

// Names returns the names of the configurations without .toml.
func Names() []string {
	names, _ := fs.Glob(Files, "*.toml") // the pattern is well-formed
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".toml")
	}
	return names
}

// Read returns the text of a configuration: of a file, or of one of Names, which
// may be called by its path in the module as well.
func Read(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		name := strings.TrimSuffix(strings.TrimPrefix(name, "experiments/configs/"), ".toml")
		text, err = Files.ReadFile(name + ".toml")
	}
	if info, found := os.Stat(name); err != nil && found == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory; a configuration is a .toml file or one of %s",
			name, strings.Join(Names(), ", "))
	} else if err != nil {
		return nil, fmt.Errorf("%s: no such file; a configuration is a .toml file or one of %s",
			name, strings.Join(Names(), ", "))
	}
	return text, nil
}
