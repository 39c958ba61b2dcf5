package cli

import (
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// Caller is what people type before the name of a command to run it.
var Caller = "go run ./cmd/"

// kept is the path of what go run runs, in a directory of its own or in Go's cache.
var kept = regexp.MustCompile(`/go-build\d+/b001/exe/|/[0-9a-f]{64}-d/[^/]*$`)

// Program is what people type to run a program of their own: its path, or go run, which does not leave the file of
// that path for another call.
func Program(path string, info *debug.BuildInfo) string {
	if !kept.MatchString(filepath.ToSlash(path)) {
		return Quote(filepath.ToSlash(path))
	}
	if info == nil || info.Main.Path == "" { // of go run main.go
		return "go run ."
	}
	return "go run ." + strings.TrimPrefix(info.Path, info.Main.Path)
}
