package cli

import (
	"runtime/debug"
	"strings"
	"testing"
)

// What a file says of the command that made it can be typed again.
func TestProgram(t *testing.T) {
	of := func(path, module string) *debug.BuildInfo {
		return &debug.BuildInfo{Path: path, Main: debug.Module{Path: module}}
	}
	inCache := "/root/.cache/go-build/dd/" + strings.Repeat("0a", 32) + "-d/own"
	for _, c := range []struct {
		path string
		info *debug.BuildInfo
		want string
	}{
		{"./own", of("own", "own"), "./own"},
		{"my programs/own", of("own", "own"), "'my programs/own'"},
		{"/home/me/go-build/own", of("own", "own"), "/home/me/go-build/own"},
		{"/tmp/go-build812539823/b001/exe/own", of("own", "own"), "go run ."},
		{"/tmp/go-build812539823/b001/exe/own", of("example.org/me/cmd/own", "example.org/me"), "go run ./cmd/own"},
		{inCache, of("own", "own"), "go run ."},
		{"/tmp/go-build1264210476/b001/exe/main", of("command-line-arguments", ""), "go run ."},
	} {
		if got := Program(c.path, c.info); got != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
}
