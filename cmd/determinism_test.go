package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every command prints the same bytes on any number of workers and processors.
func TestDeterminism(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "./train", "./bench", "./sweep").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		line    string // OUT is a directory of its own
		workers bool
	}{
		{"train -steps 500 -format json", false},
		{"train -steps 300 -format json -knowledge observed -instance lognormal:40 -budget 5", false},
		{"train -steps 300 -format json -knowledge online -instance mixed:12 -budget 2", false},
		{"bench -steps 100 -seeds 5 -format json -policies learned,paper,whittle,relaxed,static-random,q-whittle,salmut", true},
		{"bench -steps 200 -seeds 5 -format json -knowledge observed -world poisson -policies learned,whittle,static-random", true},
		{"bench -steps 60 -seeds 5 -format csv -knowledge online -random 6,2,2", true},
		{"bench -preset papers -steps 60 -seeds 2 -format json -out OUT", true},
		{"sweep kappa -set steps=60 -set seeds=2 -format json -out OUT", true},
	} {
		first, by := "", ""
		for _, procs := range []int{1, 2} {
			for _, workers := range []int{1, 2, 8} {
				args := strings.Fields(strings.ReplaceAll(c.line, "OUT", filepath.Join(t.TempDir(), "out")))
				if c.workers {
					args = append(args, fmt.Sprintf("-workers=%d", workers))
				} else if workers > 1 {
					continue
				}
				run := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
				run.Dir = ".."
				run.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", procs))
				out, err := run.Output()
				if err != nil || len(out) == 0 {
					t.Fatalf("%s: %v", c.line, err)
				}
				how := fmt.Sprintf("GOMAXPROCS=%d, %d workers", procs, workers)
				if first == "" {
					first, by = string(out), how
				}
				if string(out) != first {
					t.Errorf("%s: %s prints other bytes than %s", c.line, how, by)
				}
			}
		}
	}
}
