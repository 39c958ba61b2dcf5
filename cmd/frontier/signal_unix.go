//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// backupSignal returns what SIGUSR1 arrives at.
func backupSignal() <-chan os.Signal {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	return asked
}
