package experiments

import (
	"os"
	"strings"
	"testing"
)

// RUNNING.md lists every policy and learner of the catalogue.
func TestRunningListsPolicies(t *testing.T) {
	text, err := os.ReadFile("../RUNNING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "### Policies")
	if !ok {
		t.Fatal("RUNNING.md has no list of policies")
	}
	for _, e := range Catalogue {
		n := strings.TrimSuffix(e.Name, "-relative")
		if !strings.Contains(table, "`"+n+"`") {
			t.Errorf("RUNNING.md does not list %s", n)
		}
	}
}
