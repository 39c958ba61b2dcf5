package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// as has the test binary be one of these commands.
const as = "EPHEMERA_TEST_COMMAND"

var commands = map[string]func(ctx context.Context) error{
	"deaf": func(context.Context) error { select {} },
	"writing": func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(100 * time.Millisecond)
		return errors.New("written")
	},
}

func TestMain(m *testing.M) {
	if name := os.Getenv(as); name != "" {
		Main(name, func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
			go fmt.Fprintln(stdout, "begun")
			return commands[name](ctx)
		})
	}
	os.Exit(m.Run())
}

// The first Ctrl-C lets a command come to its own end; further ones end what does
// not look at its context.
func TestInterrupt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		command, line string
		times         int
	}{
		{"writing", "writing: written\n", 1},
		{"deaf", "", 100},
	} {
		c := exec.CommandContext(t.Context(), self)
		c.Env = append(os.Environ(), as+"="+want.command)
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
		for k := range want.times {
			if c.Process.Signal(os.Interrupt) != nil {
				break // it has ended
			}
			if k+1 < want.times {
				time.Sleep(10 * time.Millisecond)
			}
		}
		err = c.Wait()
		status := c.ProcessState.Sys().(syscall.WaitStatus)
		killed := status.Signaled() && status.Signal() == os.Interrupt
		if log.String() != want.line || killed != (want.line == "") {
			t.Errorf("%s: %v, %q; want %q", want.command, err, &log, want.line)
		}
	}
}
