package main

import (
	"testing"

	"ephemera/cmd/internal/clitest"
)

// TestDialogues: testdata/*.txt are what a user types, and gets.
func TestDialogues(t *testing.T) { clitest.Dialogues(t, "frontier", nil) }
