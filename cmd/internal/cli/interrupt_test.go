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
	"testing"
	"time"
)

// as has the test binary be one of these commands.
const as = "EPHEMERA_TEST_COMMAND"

var commands = map[string]func(ctx context.Context) error{
	// deaf does not look at its context.
	"deaf": func(context.Context) error { select {} },
	// busy has every core at work and, without preemption, none of them given up.
	"busy": func(context.Context) error {
		for range Cores {
			go func() {
				for n := 0; ; n++ {
				}
			}()
		}
		select {}
	},
	// writing writes for longer than the patience lasts.
	"writing": func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(writing / 3 * tick)
		return errors.New("written")
	},
}

func TestMain(m *testing.M) {
	if name := os.Getenv(as); name != "" {
		Main(name, func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
			Hold(name == "writing") // before anybody hears of it
			go fmt.Fprintln(stdout, "begun")
			return commands[name](ctx)
		})
	}
	os.Exit(m.Run())
}

// Ctrl-C ends also what does not look at the context, such as the tables of an
// index for many sources, but not what is being written.
func TestInterruptAlways(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		command, line string
		status        int
	}{
		{"deaf", "deaf: interrupted\n", Interrupted},
		{"busy", "busy: interrupted\n", Interrupted},
		{"writing", "writing: written\n", Failure},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		c := exec.CommandContext(ctx, self)
		c.Env = append(os.Environ(), as+"="+want.command, "GODEBUG=asyncpreemptoff=1")
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
		if got := c.ProcessState.ExitCode(); got != want.status {
			t.Errorf("%s: exit status %d, want %d", want.command, got, want.status)
		}
		if got := log.String(); got != want.line {
			t.Errorf("%s: stderr is %q", want.command, got)
		}
	}
}
