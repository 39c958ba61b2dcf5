package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// RUNNING.md has every flag of every command, and no other, in the tables of
// the command or in those that it shares.
func TestRunningListsFlags(t *testing.T) {
	text, err := os.ReadFile("../RUNNING.md")
	if err != nil {
		t.Fatal(err)
	}
	// A section begins at its heading and ends at the next of the same depth.
	listed := func(section string) (flags []string) {
		_, body, ok := strings.Cut(string(text), "\n## "+section)
		if !ok {
			t.Fatalf("RUNNING.md has no section %q", section)
		}
		body, _, _ = strings.Cut(body, "\n## ")
		for _, row := range regexp.MustCompile("(?m)^\\| (`-[^|]*) \\|").FindAllStringSubmatch(body, -1) {
			for _, f := range regexp.MustCompile("`-([a-z-]+)").FindAllStringSubmatch(row[1], -1) {
				flags = append(flags, f[1])
			}
		}
		return flags
	}
	const worlds, learners = "Worlds", "Learners"
	for command, sections := range map[string][]string{
		"train": {worlds, learners}, "bench": {worlds, learners},
		"sweep": nil, "report": nil, "replay": nil,
	} {
		t.Run(command, func(t *testing.T) {
			help, err := exec.Command(filepath.Join(bin, command), "-h").Output()
			if err != nil {
				t.Fatal(err)
			}
			want := []string{}
			for _, f := range regexp.MustCompile("(?m)^  -([a-z-]+)").FindAllStringSubmatch(string(help), -1) {
				if f[1] != "version" { // of all commands
					want = append(want, f[1])
				}
			}
			var got []string
			for _, s := range append(sections, "`"+command+"`") {
				got = append(got, listed(s)...)
			}
			slices.Sort(want)
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("RUNNING.md lists\n%v\n%s -h\n%v", got, command, want)
			}
		})
	}
}
