package native

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"ephemera/env"
	"ephemera/experiments"
)

// Spec names a world as data. What is left out is the default.
type Spec struct {
	Instance string  // a name or a path, as env.Named takes it
	TOML     string  // an instance file's contents; goes before Instance
	Budget   float64 // 0 for the instance's own

	World      string // mean (default), poisson or replay
	Marks      string // default constant
	Sigma      float64
	Unobserved []string

	Trace string  // path of a recording
	Epoch float64 // its length, seconds; default an hour
	Decay float64 // 1/hour; default 0.175
	Split float64 // default 0.5

	Knowledge env.Level // default model
}

// decode reads JSON strictly.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s is %s; needed is %s", strings.ToLower(wrong.Field), strings.TrimPrefix(wrong.Value, "number "), wrong.Type)
	}
	if err != nil {
		return fmt.Errorf("settings: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// instance returns the instance that s names.
func (s *Spec) instance() (env.Instance, error) {
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

// scene returns the scene that s describes, and fills in the defaults.
func (s *Spec) scene(ctx context.Context) (none experiments.Scene, err error) {
	if s.Knowledge, err = env.ParseLevel(cmp.Or(string(s.Knowledge), string(env.LevelModel))); err != nil {
		return none, err
	}
	w := experiments.World{
		World: cmp.Or(s.World, "mean"), Marks: s.Marks, Sigma: cmp.Or(s.Sigma, 1), Unobserved: s.Unobserved,
		Decay: cmp.Or(s.Decay, .175), Split: cmp.Or(s.Split, .5),
	}
	switch w.World {
	case "mean", "poisson":
		in, err := s.instance()
		if err != nil {
			return none, err
		}
		return w.Scene(in, s.Knowledge)
	case "replay":
		return s.replay(ctx, w)
	}
	return none, fmt.Errorf("unknown world %q; allowed are mean, poisson and replay", s.World)
}

func (s *Spec) replay(ctx context.Context, w experiments.World) (none experiments.Scene, err error) {
	if s.Trace == "" {
		return none, errors.New("world replay takes the path of a recording as trace")
	}
	epoch := cmp.Or(s.Epoch, 3600)
	if !(epoch >= 1) || epoch > 1e9 {
		return none, fmt.Errorf("epoch is %v; allowed is 1 to 1e9 seconds", epoch)
	}
	w.Trace, w.Epoch = s.Trace, time.Duration(epoch*float64(time.Second)).String()
	return w.Open(ctx, env.Instance{Budget: s.Budget}, s.Knowledge)
}

// Player is an entry of the catalogue, or a guest: a policy in Python.
type Player struct {
	Name     string
	As       string // its name in the table; empty for Name
	Settings map[string]any
	Guest    bool
	Updates  bool // the guest is told what crawls bring
}

// row returns the name in the table.
func (p *Player) row() string { return cmp.Or(p.As, p.Name) }

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
	if c.Settings, err = c.Entry.Configure(level, p.Settings); err == nil && p.As != "" {
		named := *c.Entry
		named.Name, c.Entry = p.As, &named
	}
	return c, err
}
