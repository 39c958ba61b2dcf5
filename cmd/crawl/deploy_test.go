package main

import (
	"os"
	"strings"
	"testing"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/clitest"
)

// TestUnits: systemd takes the units, and the command its call in them.
func TestUnits(t *testing.T) {
	clitest.Units(t, "deploy/*.service", "deploy/*.timer")
	text, err := os.ReadFile("deploy/crawl.service")
	if err != nil {
		t.Fatal(err)
	}
	_, start, _ := strings.Cut(string(text), "ExecStart=")
	start, _, _ = strings.Cut(start, "\n")
	start = strings.NewReplacer("${CONTACT}", "me@example.org", "${PER_HOUR}", "60",
		"/etc/crawl/feeds.opml", "none.opml", "/var/lib/crawl", t.TempDir()).Replace(start)
	_, _, err = clitest.Call(t, run, strings.Fields(start)[1:]...)
	if err == nil || cli.Status(err) == cli.Usage || !strings.Contains(err.Error(), "none.opml") {
		t.Errorf("%q: %v; want that there is no list", start, err)
	}
}
