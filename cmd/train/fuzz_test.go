package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"ephemera/cmd/internal/cli"
)

// valued are the flags with a value that names no file.
var valued = []string{
	"instance", "budget", "world", "marks", "sigma", "unobserved", "epoch", "decay", "split",
	"algorithm", "knowledge", "kappa", "gamma", "a", "b", "d", "act", "set", "steps", "seed", "format", "progress",
}

// Any value of a flag gives a usage error that names the flag or the setting, or
// a run that begins.
func FuzzFlags(f *testing.F) {
	for i, value := range []string{"lognormal:5:3", "1.5", "poisson", "per-item", "-1", "1,2", "30m", "NaN", "2", "paper", "online", "inf", "1e-400", "0.5,500,1", "1/(n+1)", "x", "budget", "kappa=3", "0", "18446744073709551616", "json", "off"} {
		f.Add(uint8(i), value, uint8(9), "lspe")
		f.Add(uint8(i), value, uint8(10), "online")
	}
	large := regexp.MustCompile(`[0-9_]{4,}`) // instances that take their time
	stopped, stop := context.WithCancel(context.Background())
	stop()
	f.Fuzz(func(t *testing.T, i uint8, value string, j uint8, other string) {
		a, b := valued[int(i)%len(valued)], valued[int(j)%len(valued)]
		for _, v := range []string{value, other} {
			if large.MatchString(v) || strings.HasSuffix(v, ".toml") {
				t.Skip()
			}
		}
		err := run(stopped, []string{"-" + a, value, "-" + b, other}, io.Discard, io.Discard)
		if err == nil {
			t.Fatalf("-%s %q -%s %q: a run that was stopped before its first epoch gives no error", a, value, b, other)
		}
		if !errors.Is(err, context.Canceled) && cli.Status(err) != cli.Usage {
			t.Errorf("-%s %q -%s %q: %v, status %d; want one of usage", a, value, b, other, err, cli.Status(err))
		}
	})
}
