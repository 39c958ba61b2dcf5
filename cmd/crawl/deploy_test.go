package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/clitest"
)

// after returns the rest of a line of a file behind some text.
func after(t *testing.T, path, text string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), text)
	rest, _, _ = strings.Cut(rest, "\n")
	return rest
}

// TestDeployed: systemd takes the units, and the command its calls in them and in the image.
func TestDeployed(t *testing.T) {
	clitest.Units(t, "deploy/*.service", "deploy/*.timer")
	unit := strings.NewReplacer("${CONTACT}", "me@example.org", "${PER_HOUR}", "60").Replace(
		after(t, "deploy/crawl.service", "ExecStart="))
	const image = "deploy/Dockerfile"
	var entry []string
	if err := json.Unmarshal([]byte(after(t, image, "ENTRYPOINT")), &entry); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"unit":  strings.Fields(unit),
		"image": append(entry, strings.Fields(after(t, image, ":ro crawl "))...),
	} {
		here := strings.NewReplacer("/etc/crawl/feeds.opml", "none.opml", "/lists/feeds.opml", "none.opml",
			"/var/lib/crawl", t.TempDir(), "/state/crawl", t.TempDir())
		for k := range args {
			args[k] = here.Replace(args[k])
		}
		_, _, err := clitest.Call(t, run, args[1:]...)
		if err == nil || cli.Status(err) == cli.Usage || !strings.Contains(err.Error(), "none.opml") {
			t.Errorf("%s, %q: %v; want that there is no list", name, args, err)
		}
	}
}
