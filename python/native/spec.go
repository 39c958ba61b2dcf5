package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments"
)

// Spec names a world as data.
type Spec struct {
	Instance string  // a name or a path, as env.Named takes it
	TOML     string  // an instance file's contents; goes before Instance
	Budget   float64 // 0 for the instance's own

	World      string // mean, poisson or replay
	Marks      string
	Sigma      float64
	Unobserved []string

	Trace string  // path of a recording
	Epoch float64 // its length, seconds
	Decay float64 // 1/hour
	Split float64

	Knowledge env.Level
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

// scene returns the scene that s describes.
func (s *Spec) scene(ctx context.Context) (none experiments.Scene, err error) {
	if _, err := env.ParseLevel(string(s.Knowledge)); err != nil {
		return none, err
	}
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
	if s.World != "mean" && s.World != "poisson" {
		return none, fmt.Errorf("unknown world %q; allowed are mean, poisson and replay", s.World)
	}
	if s.World == "mean" && (s.Marks != "" || s.Unobserved != nil) {
		return none, fmt.Errorf("marks and unobserved belong to world poisson, not mean")
	}
	return experiments.World{World: s.World, Marks: s.Marks, Sigma: s.Sigma, Unobserved: s.Unobserved}.Scene(in, s.Knowledge)
}

func (s *Spec) replay(ctx context.Context) (none experiments.Scene, err error) {
	if !(s.Epoch >= 1) || s.Epoch > 1e9 {
		return none, fmt.Errorf("epoch is %v; allowed is 1 to 1e9 seconds", s.Epoch)
	}
	o, err := experiments.World{Epoch: fmt.Sprint(time.Duration(s.Epoch * float64(time.Second))), Decay: s.Decay, Split: s.Split}.Replay(s.Budget)
	if err != nil {
		return none, err
	}
	rec, err := env.ReadRecording(ctx, s.Trace)
	if err != nil {
		return none, err
	}
	return experiments.ReplayScene(rec, o)
}

// Player is an entry of the catalogue, or a guest: a policy in Python.
type Player struct {
	Name     string
	Settings map[string]any
	Guest    bool
	Updates  bool // the guest is told what crawls bring
}

// contender finds an entry of the catalogue and reads its settings.
func (p *Player) contender(scene experiments.Scene, level env.Level) (c experiments.Contender, err error) {
	if c.Entry, err = experiments.Find(p.Name); err != nil {
		return c, err
	}
	if why := c.Entry.WhyNot(scene, level); why != "" {
		return c, fmt.Errorf("%q does not apply to %s with knowledge %s: %s", p.Name, scene.Instance.ID, level, why)
	}
	for key, v := range p.Settings {
		if x, ok := v.(float64); ok && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			p.Settings[key] = int64(x) // JSON does not tell whole numbers from others
		}
	}
	c.Settings, err = c.Entry.Configure(level, p.Settings)
	return c, err
}
