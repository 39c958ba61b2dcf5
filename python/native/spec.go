package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments"
)

// Spec names a world as data.
type Spec struct {
	Instance string  `json:"instance"` // a name or a path, as env.Named takes it
	TOML     string  `json:"toml"`     // an instance file's contents; goes before Instance
	Budget   float64 `json:"budget"`   // 0 for the instance's own

	World      string   `json:"world"` // mean, poisson or replay
	Marks      string   `json:"marks"`
	Sigma      float64  `json:"sigma"`
	Unobserved []string `json:"unobserved"`

	Trace string  `json:"trace"` // path of a recording
	Epoch float64 `json:"epoch"` // its length, seconds
	Decay float64 `json:"decay"` // 1/hour
	Split float64 `json:"split"`

	Knowledge string `json:"knowledge"`
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

// instance returns the instance that s names.
func (s *Spec) instance() (env.Instance, error) {
	if b := s.Budget; b < 0 || math.IsNaN(b) || math.IsInf(b, 0) {
		return env.Instance{}, fmt.Errorf("budget is %v; allowed is a finite number of budget units above 0, or 0 for the instance's own", b)
	}
	if s.TOML == "" {
		return env.Named(s.Instance, s.Budget)
	}
	in, err := env.Unmarshal("instance", []byte(s.TOML))
	if err == nil && s.Budget != 0 {
		in.Budget = s.Budget
		err = in.Validate()
	}
	return in, err
}

// scene returns the scene that s describes and the level of knowledge in it.
func (s *Spec) scene(ctx context.Context) (experiments.Scene, env.Level, error) {
	level, err := env.ParseLevel(s.Knowledge)
	if err != nil {
		return experiments.Scene{}, "", err
	}
	scene, err := s.open(ctx, level)
	return scene, level, err
}

func (s *Spec) open(ctx context.Context, level env.Level) (none experiments.Scene, err error) {
	if (s.Trace != "") != (s.World == "replay") {
		return none, fmt.Errorf("world is %q and trace is %q; world replay takes the path of a recording, the others none", s.World, s.Trace)
	}
	if s.World == "replay" {
		return s.replay(ctx)
	}
	in, err := s.instance()
	if err != nil {
		return none, err
	}
	switch s.World {
	case "mean":
		if s.Marks != "" || s.Unobserved != nil {
			return none, fmt.Errorf("marks and unobserved belong to world poisson, not mean")
		}
		return experiments.MeanScene(in), nil
	case "poisson":
		marks := env.MarksConstant
		if s.Marks != "" {
			if marks, err = env.ParseMarks(s.Marks); err != nil {
				return none, err
			}
		}
		if !(s.Sigma > 0) || s.Sigma > env.MaxSigma {
			return none, fmt.Errorf("sigma is %v; allowed is above 0 and at most %v", s.Sigma, env.MaxSigma)
		}
		hidden, err := s.hidden(in, level)
		return experiments.MixedScene(in, marks, s.Sigma, hidden), err
	}
	return none, fmt.Errorf("unknown world %q; allowed are mean, poisson and replay", s.World)
}

// hidden marks the unobserved sources, nil where there are none.
func (s *Spec) hidden(in env.Instance, level env.Level) ([]bool, error) {
	if s.Unobserved == nil {
		return nil, nil
	}
	if level != env.LevelObserved {
		return nil, fmt.Errorf("unobserved belongs to knowledge observed; with %s no state is seen", level)
	}
	hidden := make([]bool, len(in.Sources))
	for _, name := range s.Unobserved {
		i := slices.IndexFunc(in.Sources, func(x env.Source) bool { return x.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unobserved names %q; %s has no such source", name, in.ID)
		}
		hidden[i] = true
	}
	return hidden, nil
}

func (s *Spec) replay(ctx context.Context) (experiments.Scene, error) {
	if !(s.Epoch >= 1) || s.Epoch > 1e9 {
		return experiments.Scene{}, fmt.Errorf("epoch is %v; allowed is 1 to 1e9 seconds", s.Epoch)
	}
	rec, err := env.ReadRecording(ctx, s.Trace)
	if err != nil {
		return experiments.Scene{}, err
	}
	o := env.ReplayOptions{Epoch: time.Duration(s.Epoch * float64(time.Second)), Decay: s.Decay, Split: s.Split, Budget: s.Budget}
	if o.Budget == 0 {
		o.Budget = 1
	}
	return experiments.ReplayScene(rec, o)
}
