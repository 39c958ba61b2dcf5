package forecast

import (
	"testing"

	"ephemera/env"
)

// TestBadSettings: a setting that is out of its range is an error of both
// constructors.
func TestBadSettings(t *testing.T) {
	for name, spoil := range map[string]func(s *Settings){
		"optimism": func(s *Settings) { s.Optimism = 11 },
		"horizon":  func(s *Settings) { s.Horizon = -1 },
	} {
		s := DefaultSettings()
		spoil(&s)
		if l, err := New(env.Paper(1).Terms(), &s); err == nil || l != nil {
			t.Errorf("%s: taken", name)
		}
	}
	s := DefaultActorSettings()
	s.Optimism = -1
	if _, err := NewActor(env.Paper(1).Terms(), &s, nil); err == nil {
		t.Error("optimism of the actor: taken")
	}
}
