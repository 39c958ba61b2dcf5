package experiments

import (
	"os"
	"strings"
	"testing"

	"ephemera/experiments/result"
)

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile("../" + page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// RUNNING.md lists every policy and learner of the catalogue with its settings;
// those of learners have pages of their own.
func TestRunningListsPolicies(t *testing.T) {
	_, table, ok := strings.Cut(read(t, "RUNNING.md"), "### Policies")
	if !ok {
		t.Fatal("RUNNING.md has no list of policies")
	}
	for _, e := range Catalogue() {
		n := strings.TrimSuffix(e.Name, "-relative")
		if !strings.Contains(table, "`"+n+"`") {
			t.Errorf("RUNNING.md has no line of `%s` under Policies", n)
		}
		where, text := "RUNNING.md", table
		if e.Learns {
			where, text = e.Page, read(t, e.Page)
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

// RUNNING.md says what each figure is, by the name that it has in records, in a sweep, and in
// CSV.
func TestRunningListsFigures(t *testing.T) {
	text := read(t, "RUNNING.md")
	var names []string
	for _, m := range result.Measures {
		names = append(names, m.Name, m.Column)
	}
	for _, f := range FiguresOfRuns {
		names = append(names, f.Name)
	}
	for _, name := range names {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("RUNNING.md does not say what the figure %s is", name)
		}
	}
}
