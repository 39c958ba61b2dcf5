package learner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env"
	"ephemera/env/stream"
)

// StateFile is the name of the file of a saved learner in a directory of
// results.
const StateFile = "state.json"

// config says what a learner is. It is the part of config.toml that a saved
// learner needs.
type config struct {
	Algorithm string         `toml:"algorithm"`
	Knowledge env.Level      `toml:"knowledge"`
	Settings  map[string]any `toml:"settings"`
	Instance  env.Instance   `toml:"instance"`
}

// Saved is a learner as data. A state file is one line of JSON that holds it; that of
// a [Crawler] has lines of its sources below. Learners look at the numbers that they
// take up.
type Saved struct {
	// Format is that of [Saved.Encode], and Version that of the learner's kind.
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Config is the text of config.toml. Of its keys algorithm, knowledge,
	// settings and, but for a crawler's, instance are looked at.
	Config string `json:"config"`
	// Start and Length are those of the terms: the Unix time of the first
	// decision and the seconds between decisions, 0 without dates.
	Start  int64   `json:"start,omitempty"`
	Length float64 `json:"length,omitempty"`
	// Objective is that of the terms.
	Objective env.Objective `json:"objective,omitzero"`
	// State is the learner's, as encoding/json writes it.
	State json.RawMessage `json:"learner"`
	// Crawls is what a [Crawler] holds in addition to its learner.
	Crawls *CrawlerState `json:"crawler,omitempty"`
	// Run is what else the program that saved it wants to know again.
	Run json.RawMessage `json:"run,omitempty"`

	config   config
	kind     *Kind
	settings any
	sources  []byte // lines of a crawler's sources
}

// Load reads the learner that train saved in a directory. Its error says what
// is wrong with the file.
func Load(dir string) (*Saved, error) {
	path := filepath.Join(dir, StateFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

const format = "ephemera learner"

// Encode returns the contents of a state file, of the version of its learner.
func (s *Saved) Encode() ([]byte, error) {
	if err := s.readConfig(); err != nil {
		return nil, err
	}
	s.Format, s.Version = format, s.kind.version(s.config.Knowledge)
	return json.Marshal(s)
}

// Decode reads the contents of a state file.
func Decode(data []byte) (*Saved, error) {
	var s Saved
	begin := fmt.Sprintf("{%q:%q", "format", format)
	data, s.sources, _ = bytes.Cut(data, []byte("\n"))
	switch err := json.Unmarshal(data, &s); {
	case err != nil && bytes.HasPrefix(data, []byte(begin)):
		return nil, fmt.Errorf("the file is damaged: %w", err)
	case err != nil || s.Format != format:
		return nil, fmt.Errorf("this is no saved learner, which begins with %s", begin)
	}
	if err := s.readConfig(); err != nil {
		return nil, err
	}
	if reads := s.kind.version(s.config.Knowledge); s.Version != reads {
		return nil, fmt.Errorf("the version of the learner %s is %d; this program reads version %d; "+
			"the program that wrote it goes on with it",
			s.config.Algorithm, s.Version, reads)
	}
	if err := s.readSettings(); err != nil {
		return nil, err
	}
	if s.Crawls != nil {
		return &s, nil
	}
	return &s, s.config.Instance.Validate()
}

// readConfig finds out which learner it is.
func (s *Saved) readConfig() (err error) {
	s.config = config{}
	if err := toml.Unmarshal([]byte(s.Config), &s.config); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	s.kind, err = find(s.config.Algorithm, s.config.Knowledge)
	return err
}

func (s *Saved) readSettings() error {
	s.settings = s.kind.Settings(s.config.Knowledge)
	text, err := toml.Marshal(s.config.Settings)
	if err == nil {
		err = toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(s.settings)
	}
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

// What the learner is.
func (s *Saved) Algorithm() string      { return s.config.Algorithm }
func (s *Saved) Level() env.Level       { return s.config.Knowledge }
func (s *Saved) Instance() env.Instance { return s.config.Instance }

// Overruns reports whether its crawls may cost more than the budget.
func (s *Saved) Overruns() bool { return s.kind.Overruns != nil && s.kind.Overruns(s.settings) }

// Terms returns the terms under which it learned. A program that goes on
// elsewhere changes Start to the time of its own first decision.
func (s *Saved) Terms() env.Terms {
	t := s.config.Instance.Terms()
	t.Start, t.Length, t.Objective = s.Start, s.Length, s.Objective
	return t
}

// Learner returns the learner as it was saved. The terms must have the sources
// and costs that it learned with. It draws from the stream that it had.
func (s *Saved) Learner(t env.Terms) (Learner, error) {
	own := s.Terms()
	if !slices.Equal(t.Names, own.Names) || !slices.Equal(t.Costs, own.Costs) {
		return nil, fmt.Errorf("the learner is one of the %d sources of %q, with their costs; here are %d others",
			len(own.Names), s.config.Instance.ID, len(t.Names))
	}
	in := s.config.Instance
	in.Budget = t.Budget
	inputs := Inputs{Instance: in, Terms: t, Level: s.config.Knowledge, Rand: stream.New(0, stream.Policy)}
	l, err := s.kind.New(inputs, s.settings)
	if err != nil {
		return nil, err
	}
	if err := l.SetState(s.State); err != nil {
		return nil, fmt.Errorf("state of the learner: %w", err)
	}
	return l, nil
}

// Policy returns what was learned, as a policy that learns no more; see
// Learner.
func (s *Saved) Policy(t env.Terms) (env.Agent, error) {
	l, err := s.Learner(t)
	if err != nil {
		return env.Agent{}, err
	}
	return l.Frozen().Fixed(), nil
}
