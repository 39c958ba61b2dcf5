package experiments

import (
	"os"
	"strings"
	"testing"
)

// RUNNING.md lists every policy and learner of the catalogue with its settings;
// those of learners have pages of their own.
func TestRunningListsPolicies(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, table, ok := strings.Cut(read("RUNNING.md"), "### Policies")
	if !ok {
		t.Fatal("RUNNING.md has no list of policies")
	}
	pages := read("docs/lspe.md") + read("docs/online.md") + read("docs/paper-learner.md")
	for _, e := range Catalogue() {
		n := strings.TrimSuffix(e.Name, "-relative")
		if !strings.Contains(table, "`"+n+"`") {
			t.Errorf("RUNNING.md has no line of `%s` under Policies", n)
		}
		where, text := "RUNNING.md", table
		if e.Learns {
			where, text = "its page", pages
		}
		for _, level := range append(e.Levels, e.FirstLevel()) {
			for _, key := range e.Keys(level) {
				if !strings.Contains(text, "`"+key+"`") {
					t.Errorf("%s does not list the setting %s of %s with knowledge %s", where, key, e.Name, level)
				}
			}
		}
	}
}
