//go:build !unix

package main

import "os"

// backupSignal returns what never brings anything: there is no such signal.
func backupSignal() <-chan os.Signal { return nil }
