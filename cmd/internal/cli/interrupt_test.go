package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asDeaf has the test binary be a command that does not look at its context.
const asDeaf = "EPHEMERA_TEST_DEAF"

func TestMain(m *testing.M) {
	if os.Getenv(asDeaf) != "" {
		Main("deaf", func(_ context.Context, _ []string, stdout, _ io.Writer) error {
			fmt.Fprintln(stdout, "begun")
			select {}
		})
	}
	os.Exit(m.Run())
}

// Ctrl-C ends also what does not look at the context, such as the tables of an
// index for many sources.
func TestInterruptAlways(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), asDeaf+"=1")
	var log strings.Builder
	c.Stderr = &log
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "begun\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the exit status says it
	if got := c.ProcessState.ExitCode(); got != Interrupted {
		t.Errorf("exit status %d, want %d", got, Interrupted)
	}
	if got := log.String(); got != "deaf: interrupted\n" {
		t.Errorf("stderr is %q", got)
	}
}

func TestInterruptedLine(t *testing.T) {
	err := fmt.Errorf("learning: %w", context.Canceled)
	if got := Line("train", err); got != "train: learning: interrupted" {
		t.Errorf("the line is %q", got)
	}
	if Status(err) != Interrupted {
		t.Errorf("the status is %d", Status(err))
	}
}
