package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ephemera/cmd/internal/clitest"
)

// TestDialogues: testdata/*.txt are what a user types, and gets. Each finds feeds.opml, a
// list of two feeds that a server of this test serves.
func TestDialogues(t *testing.T) {
	list, _ := feeds(t, 2)
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Dialogues(t, "crawl", func(e *testscript.Env) error {
		return os.WriteFile(filepath.Join(e.WorkDir, "feeds.opml"), text, 0o644)
	})
}
