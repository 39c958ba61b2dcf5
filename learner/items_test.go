package learner

import (
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// Where worlds have items, with knowledge online, those learners read them that learn from items;
// what was learned reads nothing.
func TestWhoReadsItems(t *testing.T) {
	for _, k := range Kinds {
		for _, level := range k.Levels {
			in := env.Paper(1)
			inputs := Inputs{Instance: in, Terms: in.Terms(), Level: level, Rand: stream.New(1, stream.Test)}
			l, err := k.New(inputs, k.Settings(level))
			if err != nil {
				t.Fatal(err)
			}
			if want := k.FromItems || level != env.LevelOnline; l.Agent().ReadsItems() != want {
				t.Errorf("%s, %s: it reads items is %v; want %v", k.Name, level, !want, want)
			}
			if l.Frozen().ReadsItems() {
				t.Errorf("%s, %s: what was learned reads items", k.Name, level)
			}
		}
	}
}
