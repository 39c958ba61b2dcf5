package features

import (
	"fmt"
	"maps"
	"slices"
)

// Map is a feature map φ: ℝᴺ → ℝˡ.
type Map interface {
	Len() int                      // ℓ
	To(dst, x []float64) []float64 // writes φ(x) into dst of length ℓ, and returns it
}

// own are the maps of one's own, by name. They are built for states between 0 and
// the ceilings.
var own = map[string]func(ceilings []float64) Map{}

// Register adds a feature map of one's own under a name that the setting features of
// the printed learner takes beside raw and unit. It panics if there is one of that
// name, and is called before anything is run.
func Register(name string, build func(ceilings []float64) Map) {
	if own[name] != nil {
		panic(fmt.Sprintf("features: %q is there already", name))
	}
	own[name] = build
}

// Registered returns the names of the maps of one's own.
func Registered() []string { return slices.Sorted(maps.Keys(own)) }

// Own returns the map of one's own of that name, or nil.
func Own(name string, ceilings []float64) Map {
	if own[name] == nil {
		return nil
	}
	return own[name](ceilings)
}
