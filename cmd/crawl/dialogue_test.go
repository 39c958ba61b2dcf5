package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ephemera/cmd/internal/clitest"
)

// TestDialogues: testdata/*.txt are what a user types, and gets. Each finds feeds.opml, a
// list of two feeds that a server of this test serves. It is asked for each of them once,
// by the first round of rounds.txt, and never by a crawl that refuses private networks.
func TestDialogues(t *testing.T) {
	list, asked := feeds(t, 2)
	t.Cleanup(func() {
		if n := asked.Load(); n > 2 {
			t.Errorf("the server was asked %d times; want at most 2, once for each feed", n)
		}
	})
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Dialogues(t, "crawl", func(e *testscript.Env) error {
		return os.WriteFile(filepath.Join(e.WorkDir, "feeds.opml"), text, 0o644)
	})
}
