package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"ephemera/env"
	"ephemera/experiments"
)

// spec names a world as data.
type spec struct {
	Instance string  // a name or a path, as env.Named takes it
	Budget   float64 // 0 for the instance's own
	experiments.World
	Window    int // epochs of the windows of the fitted part of a recording that are played; 0 to play the rest
	Knowledge env.Level
}

// usual is what a spec leaves out.
func usual() spec {
	return spec{World: experiments.World{Kind: "poisson", Epoch: "1h", Decay: .175, Split: .5}, Knowledge: env.LevelModel}
}

// decode reads JSON strictly.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("settings: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// anySeed in the name of an instance stands for the seed of the world.
const anySeed = "*"

// instance returns the instance that s names, under that seed.
func (s *spec) instance(seed uint64) (env.Instance, error) {
	return env.Named(strings.ReplaceAll(s.Instance, anySeed, strconv.FormatUint(seed, 10)), s.Budget)
}

// scene returns the scene that s describes, under that seed.
func (s *spec) scene(ctx context.Context, seed uint64) (scene experiments.Scene, err error) {
	if s.Knowledge, err = env.ParseLevel(string(s.Knowledge)); err != nil {
		return scene, err
	}
	if s.Window != 0 {
		s.Part = env.PartFitting
	}
	in := env.Instance{Budget: s.Budget}
	if s.Trace == "" {
		if in, err = s.instance(seed); err != nil {
			return scene, err
		}
	}
	scene, err = s.Open(ctx, in, s.Knowledge)
	if err == nil && (s.Window < 0 || s.Window > 0 && s.Window >= scene.Epochs) {
		err = fmt.Errorf("window is %d; allowed are 1 to %d epochs, those of the part on which the model is fitted", s.Window, scene.Epochs-1)
	}
	return scene, err
}
