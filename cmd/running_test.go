package cmd

import (
	"encoding/json"
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
		"train": {worlds, learners}, "bench": {worlds, learners}, "show": {worlds},
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

// RUNNING.md names every file that a command keeps, and every key of the JSON
// that it prints.
func TestRunningListsFilesAndKeys(t *testing.T) {
	text, err := os.ReadFile("../RUNNING.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(text), -1) {
		named[m[1]] = true
	}
	for _, line := range []string{
		"train -steps 20", "bench -steps 20 -seeds 2", "bench -steps 20 -seeds 2 -preset papers",
		"sweep kappa -set steps=20 -set seeds=1", "show -steps 20 -epochs 5", "replay " + hourly(t, 20),
	} {
		out := filepath.Join(t.TempDir(), "out")
		args := strings.Fields(line)
		args = append([]string{"-out", out, "-format", "json"}, args[1:]...)
		run := exec.Command(filepath.Join(bin, strings.Fields(line)[0]), args...)
		run.Dir = ".."
		printed, err := run.Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var object any
		if err := json.Unmarshal(printed, &object); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, key := range keys(object) {
			if !named[key] {
				t.Errorf("%s: RUNNING.md does not name the key %q", line, key)
			}
		}
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := e.Name()
			if e.IsDir() {
				name += "/"
			}
			if !named[name] && !strings.HasPrefix(name, "tcns-figure-") && name != "plots/" {
				t.Errorf("%s: RUNNING.md does not name the file %s", line, name)
			}
		}
	}
}

// keys returns the keys of all objects in a value. Those of settings, which are
// named after flags and configuration keys, are left out.
func keys(v any) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			all = append(all, key)
			if key != "settings" && key != "tried" {
				all = append(all, keys(inner)...)
			}
		}
	case []any:
		for _, inner := range v {
			all = append(all, keys(inner)...)
		}
	}
	return all
}
