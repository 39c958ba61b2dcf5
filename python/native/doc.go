// Package native is the Go half of the Python package ephemera: worlds that are
// stepped K at a time over flat buffers, policies and learners that are asked
// outside of a run, and long runs that Python takes part in. It knows nothing of
// C; package capi is the thin layer of exported functions over it.
//
// What a caller in Python can get wrong comes back as an error.
package native
