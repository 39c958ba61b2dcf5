package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// deaf in the environment has the test binary be a command that does not look at its
// context.
const deaf = "EPHEMERA_TEST_DEAF"

func TestMain(m *testing.M) {
	if os.Getenv(deaf) != "" {
		Main("deaf", func(_ context.Context, _ []string, stdout, _ io.Writer) error {
			_, _ = io.WriteString(stdout, "begun\n")
			select {}
		})
	}
	os.Exit(m.Run())
}

// A second Ctrl-C ends what does not look at its context.
func TestInterrupt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), deaf+"=1")
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
	for range 100 {
		if c.Process.Signal(os.Interrupt) != nil {
			break // it has ended
		}
		time.Sleep(10 * time.Millisecond)
	}
	err = c.Wait()
	if status := c.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != os.Interrupt {
		t.Errorf("%v", err)
	}
}
