//go:build !amd64

package critic

const hasAVX = false

func passAVX(_, _, _, _, _ *float64, _ int, _ float64) {}

func symmAVX(_, _, _, _, _, _ *float64, _ int) {}
