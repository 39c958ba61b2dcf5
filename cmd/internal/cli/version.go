package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// ownCheckout reports whether the working directory is in a checkout of this
// module, and not in the repository of something else.
func ownCheckout() bool {
	out, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return false
	}
	mod, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "go.mod"))
	return err == nil && strings.HasPrefix(string(mod), "module ephemera\n")
}

// Revision names the source that this program was built from: the version and
// the VCS revision of the build, or, where the build did not stamp it (go run
// and go test do not), what git says of the working directory. It is "unknown"
// where neither knows.
func Revision() string {
	var rev, modified string
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				rev = s.Value
			case "vcs.modified":
				modified = s.Value
			}
		}
	}
	if rev == "" {
		out, err := exec.Command("git", "rev-parse", "HEAD").Output()
		if err != nil || !ownCheckout() {
			return version + " unknown " + runtime.Version()
		}
		rev = strings.TrimSpace(string(out))
		if out, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err == nil && len(out) > 0 {
			modified = "true"
		}
	}
	if modified == "true" {
		rev += "+modified"
	}
	return version + " " + rev + " " + runtime.Version()
}
