package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ephemera/cmd/internal/clitest"
)

// bin is where the commands are built that the tests run: the services have tests of their own.
var bin string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if bin, err = os.MkdirTemp("", "commands"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(bin)
		if out, err := exec.Command("go", "build", "-o", bin,
			"./bench", "./replay", "./report", "./sweep", "./train").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// hourly writes a log of three sources over so many days.
func hourly(t *testing.T, days int) string {
	t.Helper()
	return clitest.Log(t, "source,published_unix", 24*days, func(h int) string {
		return fmt.Sprintf("%c,%d", 'a'+h*h%7%3, 3600*h)
	})
}

// Every command prints the same bytes on any number of workers and processors,
// and others under another seed.
func TestDeterminism(t *testing.T) {
	log := hourly(t, 30)
	for _, c := range []struct {
		line    string // OUT is a directory of its own, LOG a log of publications
		workers bool
		seed    string // -seed 9, where that changes the figures
	}{
		{"train -steps 500 -format json", false, "-seed=9"},
		{"train -steps 300 -format json -knowledge observed -instance lognormal:40 -budget 5", false, "-seed=9"},
		{"train -steps 300 -format json -knowledge online -instance mixed:12 -budget 2", false, "-seed=9"},
		{"bench -steps 100 -seeds 5 -format json -policies lspe,whittle,relaxed,q-whittle,salmut", true, "-seed=9"},
		{"bench -steps 200 -seeds 5 -format json -knowledge observed -world poisson -policies learned,whittle",
			true, "-seed=9"},
		{"bench -steps 60 -seeds 5 -format csv -knowledge online -random 6,2,2", true, ""},
		{"bench -preset papers -steps 60 -seeds 2 -format json -out OUT", true, "-seed=9"},
		{"train -steps 300 -format json -algorithm paper", false, "-seed=9"},
		{"replay -format json -out OUT LOG", true, ""},
		{"sweep kappa -set steps=60 -set seeds=2 -format json -out OUT", true, ""},
	} {
		prints := func(procs int, flags ...string) string {
			out := filepath.Join(t.TempDir(), "out")
			args := strings.Fields(strings.NewReplacer("OUT", out, "LOG", log).Replace(c.line))
			run := exec.Command(filepath.Join(bin, args[0]), slices.Concat(flags, args[1:])...)
			run.Dir = ".."
			run.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", procs))
			printed, err := run.Output()
			if err != nil || len(printed) == 0 {
				t.Fatalf("%s: %v", c.line, err)
			}
			return strings.ReplaceAll(string(printed), out, "OUT")
		}
		first := prints(1)
		for _, procs := range []int{1, 2} {
			if !c.workers {
				if prints(procs) != first {
					t.Errorf("%s: GOMAXPROCS=%d prints other bytes", c.line, procs)
				}
				continue
			}
			for _, workers := range []int{1, 2, 8} {
				if prints(procs, fmt.Sprintf("-workers=%d", workers)) != first {
					t.Errorf("%s: GOMAXPROCS=%d, %d workers print other bytes", c.line, procs, workers)
				}
			}
		}
		if c.seed != "" && strings.Replace(prints(1, c.seed), `"seed": 9`, `"seed": 1`, 1) == first {
			t.Errorf("%s: %s prints the same figures", c.line, c.seed)
		}
	}
}
