package clitest

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Dialogues runs each testdata/*.txt, a script of what a user types and what the command
// of that name answers. They are scripts of testscript with two more lines: the command's
// own, behind ! where it fails, and "status N", the exit status of the last one. TestMain
// is that of [Main]. Setup, if not nil, fills the directory in which a script runs.
func Dialogues(t *testing.T, name string, setup func(*testscript.Env) error) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv(asCommand, "1")
			if setup == nil {
				return nil
			}
			return setup(e)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			name: func(ts *testscript.TestScript, neg bool, args []string) {
				err := ts.Exec(self, args...)
				status := 0
				if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
					status = exit.ExitCode()
				} else if err != nil {
					ts.Fatalf("%v", err)
				}
				ts.Setenv("status", strconv.Itoa(status))
				if failed := status != 0; failed != neg {
					ts.Fatalf("exit status %d", status)
				}
			},
			"status": func(ts *testscript.TestScript, neg bool, args []string) {
				if len(args) != 1 || neg {
					ts.Fatalf("usage: status N")
				}
				if got := ts.Getenv("status"); got != args[0] {
					ts.Fatalf("exit status %s; want %s", got, args[0])
				}
			},
		},
	})
}
