package critic

import "golang.org/x/sys/cpu"

var hasAVX = cpu.X86.HasAVX

//go:noescape
func passAVX(a, v, phi, d, r *float64, l int, w float64)

//go:noescape
func symmAVX(p, z, u, y, phi, v *float64, l int)
