package experiments

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
	"ephemera/internal/files"
	"ephemera/learner"
)

// Job is a resolved run: every setting is spelt out, and it is ready to be performed.
// A run is resolved once; under other seeds it is the same job but for the seed.
type Job struct {
	Run
	Scene    *Scene // in which the run takes place
	Entry    *Entry
	Level    env.Level // of knowledge, at which it is performed
	Settings any       // what Entry.Configure returned
}

// Hash names a job but for its seed: it is that of all settings and of what the files
// hold that they name.
func (e *Engine) Hash(c *Job) (string, error) {
	r := c.Run
	r.Seed = 0
	settings, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(settings)
	files := []string{r.World.Trace}
	if dir, ok := strings.CutPrefix(r.Algorithm(), SavedPrefix); ok {
		files = append(files, filepath.Join(dir, learner.StateFile))
	}
	for _, name := range []string{r.Instance.Name, r.Instance.Believe} {
		if strings.HasSuffix(name, ".toml") {
			files = append(files, name)
		}
	}
	for _, name := range slices.DeleteFunc(files, func(name string) bool { return name == "" }) {
		sum, err := e.sums.get(name, func() ([sha256.Size]byte, error) {
			data, err := os.ReadFile(name)
			return sha256.Sum256(data), err
		})
		if err != nil {
			return "", err
		}
		h.Write(sum[:])
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

// Under returns the job under a seed.
func (c *Job) Under(seed uint64) *Job {
	other := *c
	other.Seed = seed
	return &other
}

// play returns the run as its scene plays it.
func (c *Job) play() Play {
	return Play{
		Entry: c.Entry, Settings: c.Settings, Level: c.Level,
		Seed: c.Seed, Epochs: c.Steps, Evaluation: c.Evaluation,
	}
}

// DefaultLearner returns the learner of runs in the scene of the job, with its knowledge, that
// name none: the first that runs there, or, where none does, the first with that knowledge.
func (c *Job) DefaultLearner() (*Entry, error) {
	for _, e := range Learners() {
		if e.WhyNot(*c.Scene, c.Level) == "" {
			return e, nil
		}
	}
	return FindLearner("", c.Level)
}

// Build builds the learner or policy as a run would, for a program that crawls by
// itself under those terms. The learner is nil where nothing learns.
func (c *Job) Build(t env.Terms) (env.Agent, learner.Learner, error) {
	return c.Scene.build(c.play(), t)
}

// SavedConfig returns what [learner.Saved] says of the learner of the run.
func (c *Job) SavedConfig() (string, error) {
	text, err := toml.Marshal(struct {
		Algorithm string       `toml:"algorithm"`
		Knowledge env.Level    `toml:"knowledge"`
		Settings  any          `toml:"settings"`
		Instance  env.Instance `toml:"instance"`
	}{c.Entry.Name, c.Level, c.Settings, c.Scene.Instance})
	return string(text), err
}

// saveTrainee writes what a run has learned to a file, for [learner.Load]. The file
// names the run.
func (c *Job) saveTrainee(t learner.Learner, file, run string) error {
	config, err := c.SavedConfig()
	if err != nil {
		return err
	}
	world, err := c.Scene.Open(c.Seed, c.Level, true)
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
	saved := &learner.Saved{
		Config: config, Start: terms.Start, Length: terms.Length, Objective: terms.Objective, State: state, Run: name,
	}
	data, err := saved.Encode()
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
