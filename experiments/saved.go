package experiments

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
	"ephemera/experiments/files"
	"ephemera/learner"
)

// SavedConfig returns what [learner.Saved] says of the learner of the run.
func (c *Resolved) SavedConfig() (string, error) {
	text, err := toml.Marshal(struct {
		Algorithm string       `toml:"algorithm"`
		Knowledge env.Level    `toml:"knowledge"`
		Settings  any          `toml:"settings"`
		Instance  env.Instance `toml:"instance"`
	}{c.play.Entry.Name, c.play.Level, c.play.Settings, c.Scene.Instance})
	return string(text), err
}

// saveTrainee writes what a run has learned to a file, for [learner.Load]. The file
// names the run.
func (c *Resolved) saveTrainee(t learner.Learner, file, run string) error {
	config, err := c.SavedConfig()
	if err != nil {
		return err
	}
	world, err := c.Scene.Open(c.Seed, c.play.Level, true)
	if err != nil {
		return err
	}
	terms := world.Terms()
	name, err := json.Marshal(run)
	if err != nil {
		return err
	}
	state, err := json.Marshal(t.State())
	if err != nil {
		return fmt.Errorf("state of the learner: %w", err)
	}
	data, err := (&learner.Saved{Config: config, Start: terms.Start, Length: terms.Length, State: state, Run: name}).Encode()
	if err != nil {
		return err
	}
	return files.Put(file, data)
}

// holdsRun reports whether the learner in a file is that of the run.
func holdsRun(file, run string) bool {
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	saved, err := learner.Decode(data)
	var name string
	return err == nil && json.Unmarshal(saved.Run, &name) == nil && name == run
}
