package train

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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

// A recording may come through a pipe, which can be read once, and its runs are not those of
// another recording that came through it before.
func TestPipe(t *testing.T) {
	log := recording(t)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	for _, text := range []string{string(text), strings.ReplaceAll(string(text), "\nb,", "\na,")} {
		if err := os.WriteFile(log, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		want, _, err := train(t, "-trace", log, "-format", "csv")
		if err != nil {
			t.Fatal(err)
		}
		c := clitest.Process(t, "-trace", "/dev/stdin", "-format", "csv", "-out", out)
		c.Stdin = strings.NewReader(text)
		got, status := clitest.Output(t, c)
		if got = strings.ReplaceAll(got, "\nstdin,", "\nposts,"); status != cli.OK || got != want {
			t.Errorf("exit status %d, through a pipe\n%s; as a file\n%s", status, got, want)
		}
	}
}

// results reads what must be the same from run to run.
func results(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := clitest.Files(t, dir)
	if got["timing.json"] == "" {
		t.Errorf("%s has no timing.json", dir)
	}
	maps.DeleteFunc(got, func(name, _ string) bool { // of the time, and of what names the directory
		return name == "command.txt" || name == "timing.json"
	})
	return got
}

// A run that is killed, each time somewhere else, and taken up again, ends with the
// bytes of one that was not.
func TestKilled(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, args := range []string{
		"-steps 6000 -algorithm paper",
		"-steps 4000 -knowledge observed",
		"-steps 4000",
		"-knowledge online -trace " + recording(t),
	} {
		whole, dir := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "killed")
		began := time.Now()
		if _, status := process(t, append(strings.Fields(args), "-out", whole)...); status != cli.OK {
			t.Fatalf("%s: exit status %d", args, status)
		}
		took := time.Since(began)
		for range 3 {
			p := clitest.Process(t, append(strings.Fields(args), "-out", dir)...)
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(r.Int64N(int64(took))))
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		_, status := process(t, append(strings.Fields(args), "-out", dir)...)
		if status != cli.OK || !maps.Equal(results(t, dir), results(t, whole)) {
			t.Errorf("%s: exit status %d, or other files than those of an undisturbed run:%s", args, status,
				different(results(t, dir), results(t, whole)))
		}
	}
}

// different names the files of which one has other bytes, or which are in one only.
func different(got, want map[string]string) (names string) {
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if w, ok := want[name]; !ok || w != got[name] {
			names += " " + name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[name]; !ok {
			names += " " + name + " (missing)"
		}
	}
	return names
}

// SIGINT and SIGTERM end a run, and the message says how to go on.
func TestInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	for _, tt := range []struct {
		args string
		sig  os.Signal
	}{{"-algorithm paper", os.Interrupt}, {"-knowledge online", syscall.SIGTERM}} {
		t.Run(tt.sig.String(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			p := clitest.Process(t, append(strings.Fields(tt.args), "-steps", "1000000000", "-out", dir)...)
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
			if err := p.Process.Signal(tt.sig); err != nil {
				t.Fatal(err)
			}
			_ = p.Wait() // the status says it
			// No run is done.
			last := "interrupted; the same command makes the runs that are missing in " + dir + "\n"
			if got := p.ProcessState.ExitCode(); got != cli.Interrupted || !strings.HasSuffix(log.String(), last) {
				t.Errorf("%s: exit status %d, %q; want %d and %q", tt.args, got, &log, cli.Interrupted, last)
			}
		})
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
		if !maps.Equal(learn(), want) {
			t.Errorf("after %.20q: other files", data)
		}
	}
}
