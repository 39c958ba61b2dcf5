//go:build amd64.v3

package env

// With GOAMD64=v3 and above, Go fuses multiplications with additions, and
// results differ in their last digits from those of other builds, which one
// sweep must not mix. This line stops the build.
var _ = build_with_GOAMD64_v1_or_v2
