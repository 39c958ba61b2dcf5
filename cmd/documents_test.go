package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ephemera/cmd/internal/clitest"
)

// Each command line that stands in a document, or at the top of a command, runs
// with few epochs.
func TestDocuments(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	commands, err := filepath.Glob("*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(append(pages, "../README.md", "../RUNNING.md"), commands...) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	joined := strings.ReplaceAll(text.String(), "\\\n", " ")
	log := clitest.Log(t, "source,published_unix", 24*60, func(h int) string {
		return fmt.Sprintf("%c,%d", 'a'+h*h%11, 3600*h)
	})
	placeholder := regexp.MustCompile(`"|\[\w+\]|…|DIR|CONFIG|\|`)
	recording := regexp.MustCompile(`\bLOG\b|\bFILE\b|\S+\.csv\.gz`)
	few := map[string]string{
		"train": " -steps 20", "bench": " -steps 20 -seeds 1", "sweep": " -set steps=20 -set seeds=1",
	}
	var lines []string
	run := regexp.MustCompile("(?m)go run \\./cmd/(train|bench|sweep|replay|report)\\b([^`\n#]*)")
	inPlace := strings.NewReplacer("$w", "w", "-budget M", "-budget 1", "-crawls-per-hour M", "-crawls-per-hour 1")
	for _, m := range run.FindAllStringSubmatch(joined, -1) {
		args := strings.TrimSpace(m[2])
		if strings.Contains(args, "waiting") || placeholder.MatchString(args) { // of the reader
			continue
		}
		args = inPlace.Replace(recording.ReplaceAllString(args, log))
		if line := m[1] + " " + args + few[m[1]]; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	// Reports are of what the others wrote.
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Count(a[:6], "report") - strings.Count(b[:6], "report")
	})
	if len(lines) < 15 {
		t.Errorf("%d command lines: %q", len(lines), lines)
	}
	dir := t.TempDir()
	file := regexp.MustCompile("`(\\w+\\.toml)`.*:\n\n```toml\n((?s).*?)```")
	for _, m := range file.FindAllStringSubmatch(joined, -1) {
		if err := os.WriteFile(filepath.Join(dir, m[1]), []byte(m[2]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range lines {
		words := strings.Fields(line)
		command := exec.Command(filepath.Join(bin, words[0]), words[1:]...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	t.Run("pictures", func(t *testing.T) { comparePictures(t, dir) })
}

// label is a text of a picture, with the mark of what breaks the budget.
var label = regexp.MustCompile(`aria-label="(.*?)( \*)?( \(\* .*|; \* .*|\* .*)?"`)

// comparePictures compares the pictures of docs/pictures.md with those that its commands drew
// with few epochs: they have the same titles, axes and names, whatever breaks the budget there.
func comparePictures(t *testing.T, dir string) {
	page, err := os.ReadFile("../docs/pictures.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| \\[.*?\\]\\((.*?)\\).*`(results/.*?\\.svg)`")
	rows := row.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 5 {
		t.Errorf("docs/pictures.md has %d pictures of results: %q", len(rows), rows)
	}
	words := func(path string) (all []string) {
		svg, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range label.FindAllStringSubmatch(string(svg), -1) {
			if _, err := strconv.ParseFloat(m[1], 64); err != nil { // a number is of a tick
				all = append(all, m[1])
			}
		}
		slices.Sort(all)
		return all
	}
	for _, r := range rows {
		shipped, drawn := words(filepath.Join("../docs", r[1])), words(filepath.Join(dir, r[2]))
		if len(shipped) < 3 || !slices.Equal(shipped, drawn) {
			t.Errorf("docs/%s has the words %q; its commands draw %q", r[1], shipped, drawn)
		}
	}
}
