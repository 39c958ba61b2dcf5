package env

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Builds that fuse multiplications with additions are stopped; the usual ones
// are not.
func TestFusedBuildsAreStopped(t *testing.T) {
	for version, stopped := range map[string]bool{"v1": false, "v2": false, "v3": true, "v4": true} {
		cmd := exec.Command("go", "list", "-f", "{{.GoFiles}}", ".")
		cmd.Env = append(os.Environ(), "GOARCH=amd64", "GOAMD64="+version)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := strings.Contains(string(out), "fused_amd64.go"); got != stopped {
			t.Errorf("GOAMD64=%s: stopped: %v; want %v", version, got, stopped)
		}
	}
}
