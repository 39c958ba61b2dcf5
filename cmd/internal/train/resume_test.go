package train

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/clitest"
	"ephemera/learner"
)

// recording writes three sources over 40 days.
func recording(t *testing.T) string {
	t.Helper()
	return clitest.Log(t, "source,published_unix,utility", 40*24, func(h int) string {
		return fmt.Sprintf("%c,%d,%d", 'a'+h*h%3, 1_600_000_000+3600*h+h%7, 1+h*h%11)
	})
}

// runs are a run of every learner at every level of knowledge, in worlds of
// every kind.
func runs(t *testing.T) []string {
	trace := "-trace " + recording(t)
	return []string{
		"-steps 6000 -algorithm paper",
		"-steps 4000 -algorithm paper -instance mixed:6 -budget 2 -set act=budget -world poisson",
		"-steps 3000",
		"-steps 6000 -algorithm paper -set act=probabilistic",
		"-steps 4000 -instance lognormal:30 -budget 3 -world poisson -marks per-item",
		"-steps 4000 -knowledge observed -marks per-epoch",
		"-steps 4000 -knowledge online -instance mixed:9 -budget 2",
		trace,
		trace + " -knowledge observed -epoch 15m",
		trace + " -knowledge online -epoch 15m",
		trace + " -knowledge online -epoch 15m -budget 2",
	}
}

// results reads what must be the same from run to run.
func results(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := clitest.Files(t, dir)
	maps.DeleteFunc(got, func(name, _ string) bool { // of half a file of a killed process, and of what names the directory
		return strings.HasPrefix(filepath.Base(name), ".") || name == "command.txt" || name == "timing.json"
	})
	return got
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s is not that of an uninterrupted run", what, name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d files, want %d", what, len(got), len(want))
	}
}

var full = flag.Bool("full", false, "kill a hundred runs, not ten")

// A run that is interrupted or killed again and again, each time somewhere else, and
// taken up again, ends with the bytes of one that was not.
func TestKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	r := rand.New(rand.NewPCG(1, 2))
	kills, tries := 0, 1
	if *full {
		tries = 10
	}
	all := runs(t)
	if testing.Short() {
		all = all[len(all)-5:]
	}
	for _, args := range all {
		whole, dir := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "killed")
		began := time.Now()
		if _, status := process(t, append(strings.Fields(args), "-out", whole)...); status != cli.OK {
			t.Fatalf("%s: exit status %d", args, status)
		}
		took := time.Since(began)
		want := results(t, whole)
		for ended, try := false, 0; !ended; try++ {
			p := clitest.Process(t, append(strings.Fields(args), "-out", dir)...)
			var log bytes.Buffer
			p.Stderr = &log
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if try < tries {
				time.Sleep(time.Duration(r.Int64N(int64(took/3) + 1)))
				if p.Process.Signal([]os.Signal{os.Interrupt, os.Kill}[r.IntN(2)]) == nil {
					kills++
				}
			}
			_ = p.Wait() // the status says it
			ended = p.ProcessState.ExitCode() == cli.OK && try >= tries
			if status := p.ProcessState.ExitCode(); status > 0 && status != cli.Interrupted {
				t.Fatalf("%s: %s", args, &log)
			}
		}
		same(t, args, results(t, dir), want)
	}
	if want := len(all) * tries / 2; kills < want {
		t.Errorf("%d kills; want %d", kills, want)
	}
}

// SIGINT and SIGTERM end a run, and the message says how to go on.
func TestInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	for args, sig := range map[string]os.Signal{"-algorithm paper": os.Interrupt, "-knowledge online": syscall.SIGTERM} {
		dir := filepath.Join(t.TempDir(), "run")
		p := clitest.Process(t, append(strings.Fields(args), "-steps", "1000000000", "-out", dir)...)
		var log bytes.Buffer
		p.Stderr = &log
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		for begun, left := false, 20_000; !begun && left > 0; left-- {
			time.Sleep(time.Millisecond)
			_, err := os.Stat(filepath.Join(dir, "command.txt"))
			begun = err == nil
		}
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait() // the status says it
		if got := p.ProcessState.ExitCode(); got != cli.Interrupted || !strings.HasSuffix(log.String(), "interrupted; the same command runs what is missing\n") {
			t.Errorf("%s: exit status %d, %q", args, got, &log)
		}
	}
}

// A learner whose saved state cannot be used learns again.
func TestStateIsMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	learn := func() map[string]string {
		if _, _, err := train(t, "-steps", "300", "-out", dir); err != nil {
			t.Fatal(err)
		}
		return results(t, dir)
	}
	want := learn()
	for _, data := range []string{want[learner.StateFile][:100], ""} {
		if err := os.WriteFile(filepath.Join(dir, learner.StateFile), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		same(t, "made again", learn(), want)
	}
}
