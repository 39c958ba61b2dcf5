package learner

import (
	"testing"

	"ephemera/env"
	"ephemera/env/stream"
)

// Which learners read the items of crawls; what was learned reads nothing.
func TestWhoReadsItems(t *testing.T) {
	reads := map[string]bool{"lspe": false, "forecast": true, "paper": true}
	for _, k := range Kinds {
		for _, level := range k.Levels {
			in := env.Paper(1)
			inputs := Inputs{Instance: in, Terms: in.Terms(), Level: level, Rand: stream.New(1, stream.Test)}
			l, err := k.New(inputs, k.Settings(level))
			if err != nil {
				t.Fatal(err)
			}
			if want := reads[k.Name] || level == env.LevelObserved; l.Agent().ReadsItems() != want {
				t.Errorf("%s, %s: it reads items is %v; want %v", k.Name, level, !want, want)
			}
			if l.Frozen().ReadsItems() {
				t.Errorf("%s, %s: what was learned reads items", k.Name, level)
			}
		}
	}
}
