// Package envtest holds one conformance check that every world passes and one
// that every policy passes.
package envtest
