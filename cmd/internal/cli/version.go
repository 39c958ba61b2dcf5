package cli

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// Revision names the source that this program was built from, as the build
// stamped it: the version and the VCS revision, with +modified where the working
// directory had changes. go run and go test stamp none.
func Revision() string {
	revision, modified := "unknown", ""
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return revision + " " + runtime.Version()
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+modified"
		}
	}
	return cmp.Or(info.Main.Version, "(devel)") + " " + revision + modified + " " + runtime.Version()
}
