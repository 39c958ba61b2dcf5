package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// Revision names the source that this program was built from: the version and
// the VCS revision of the build, or, where the build did not stamp it (go run
// and go test do not), what git says of the working directory. It is "unknown"
// where neither knows.
func Revision() string {
	version, rev, modified := "(devel)", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				rev = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = "+modified"
			}
		}
	}
	if rev == "" {
		rev = checkout()
	}
	return version + " " + rev + modified + " " + runtime.Version()
}

// checkout returns the revision of the working directory, if it is in a
// checkout of this module and not in the repository of something else.
func checkout() string {
	git := func(args ...string) string {
		out, _ := exec.Command("git", args...).Output() // nothing where it fails
		return strings.TrimSpace(string(out))
	}
	mod, err := os.ReadFile(filepath.Join(git("rev-parse", "--show-toplevel"), "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module ephemera\n") {
		return "unknown"
	}
	return git("describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+modified")
}
