package experiments

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The programs of docs/own-policy.md run as they stand there, and print what
// stands there.
func TestOwnPolicyPage(t *testing.T) {
	page, err := os.ReadFile("../docs/own-policy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(package main\n.*?)```\n").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d programs; want the learner and its test", len(blocks))
	}
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "main.go"), filepath.Join(dir, "main_test.go")}
	for i, f := range files {
		if err := os.WriteFile(f, []byte(blocks[i][1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	printed, err := exec.Command("go", "run", files[0]).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	if !strings.Contains(string(page), "It prints\n\n```\n"+string(printed)+"```\n") {
		t.Errorf("the learner prints\n%s", printed)
	}
	if out, err := exec.Command("go", "test", files[0], files[1]).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
