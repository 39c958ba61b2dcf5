package cli_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The commands that crawl link nothing of what only experiments need.
func TestLinks(t *testing.T) {
	for _, name := range []string{"ephemera/cmd/crawl", "ephemera/cmd/frontier", "ephemera/live/..."} {
		out, err := exec.Command("go", "list", "-deps", name).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		for _, linked := range strings.Fields(string(out)) {
			if strings.HasPrefix(linked, "ephemera/experiments") {
				t.Errorf("%s links %s", name, linked)
			}
		}
	}
}
