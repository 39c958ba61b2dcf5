// Package configs holds the configurations of the project's own sweeps. Each
// begins with the question that it asks.
package configs

import (
	"embed"
	"io/fs"
	"strings"
)

// Files are the configurations.
//
//go:embed *.toml
var Files embed.FS

// Names returns the names of the configurations without .toml.
func Names() []string {
	entries, err := fs.ReadDir(Files, ".")
	if err != nil {
		panic("configs: " + err.Error()) // an embedded directory can be read
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".toml")
	}
	return names
}
