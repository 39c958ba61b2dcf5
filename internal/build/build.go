// Package build says which build of the module a program is.
package build

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// version is that of a release, which its build sets: go build -ldflags "-X ephemera/internal/build.version=1.2".
var version string

// Info is what is known of a build.
type Info struct {
	Version  string // of the release, or "devel"
	Revision string // of the source, or "unknown"
	Go       string // version of the compiler
}

// Read returns what is known of this program.
func Read() Info {
	info := Info{Version: cmp.Or(version, "devel"), Revision: "unknown"}
	built, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.Go = built.GoVersion
	if v := built.Main.Version; version == "" && v != "" && v != "(devel)" {
		info.Version = v
	}
	for _, s := range built.Settings {
		switch {
		case s.Key == "vcs.revision":
			info.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			info.Revision += "-changes"
		}
	}
	return info
}

func (i Info) String() string { return fmt.Sprintf("%s, revision %s, %s", i.Version, i.Revision, i.Go) }
