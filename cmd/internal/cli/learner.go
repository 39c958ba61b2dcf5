package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ephemera/env"
	"ephemera/experiments"
)

// Algorithm are the flags that choose a learner and its settings.
type Algorithm struct {
	name, knowledge string
	keys            map[string]any
}

// Levels are the names of the levels of knowledge.
var Levels = []string{string(env.LevelModel), string(env.LevelObserved), string(env.LevelOnline)}

// Define adds the flags to f as a group.
func (a *Algorithm) Define(f *Flags) {
	a.keys = map[string]any{}
	by := map[string]string{} // which flag gave a key
	give := func(flag, key string, v any) error {
		switch was := by[key]; {
		case was == "set" && flag == "set":
			return fmt.Errorf("setting %q is given twice", key)
		case was != "" && was != flag:
			return fmt.Errorf("setting %q is given by -set and by -%[1]s; give it once", key)
		}
		a.keys[key], by[key] = v, flag
		return nil
	}
	f.Group("Learner (a setting that is not given has the algorithm's default; docs/lspe.md and docs/paper-learner.md list them)", func() {
		var about []string
		for _, x := range experiments.Learners() {
			about = append(about, x.Name+" ("+x.About+")")
		}
		f.StringVar(&a.name, "algorithm", "", "`name` of the learner: "+strings.Join(about, ", ")+"; default forecast with knowledge online, else lspe")
		f.Choice(&a.knowledge, "knowledge", "model", "`level`: model (parameters known), observed (true state seen too) or online (only what crawls bring back)", Levels...)
		for name, usage := range map[string]string{
			"kappa": "`κ`, steepness of the logit, above 0",
			"gamma": "`γ`, step of the critic, above 0 and below 2",
			"a":     "`step` a(n) of the actor, as c/ceil(n/block)^power or c/(n+shift)^power",
			"b":     "`step` b(n) of the critic's averages, as those of -a",
			"d":     "`step` d(n) of the price of lspe, as those of -a",
			"act":   "`way` to act of paper: probabilistic (each source by its logit) or budget (by index within the budget)",
		} {
			f.Func(name, usage, func(text string) error {
				if name == "kappa" || name == "gamma" {
					return give(name, name, parseValue(text))
				}
				return give(name, name, text)
			})
		}
		f.Func("set", "`key=value` of any other setting of the algorithm; may be repeated", func(text string) error {
			key, value, ok := strings.Cut(text, "=")
			if !ok || key == "" {
				return fmt.Errorf("%q is not of the form key=value", text)
			}
			return give("set", key, parseValue(value))
		})
	})
}

// parseValue reads a value as TOML would: an integer, a number, a truth value,
// or else a string.
func parseValue(text string) any {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v
	}
	if v, err := strconv.ParseBool(text); err == nil {
		return v
	}
	return text
}

// Level returns the level of knowledge that was asked for.
func (a *Algorithm) Level() env.Level { return env.Level(a.knowledge) }

// Named reports whether a learner was asked for by its name.
func (a *Algorithm) Named() bool { return a.name != "" }

// Keys returns the settings that were given.
func (a *Algorithm) Keys() map[string]any { return a.keys }

// Learner returns the learner that was asked for, or without a name the first
// that works at that level.
func (a *Algorithm) Learner(level env.Level) (*experiments.Entry, error) {
	e, err := experiments.FindLearner(a.name, level)
	if err != nil {
		return nil, Usagef("-algorithm: %w", err)
	}
	return e, nil
}

// Configure returns the settings of each entry: what is given goes to all that
// have it. What none has is refused.
func (a *Algorithm) Configure(level env.Level, entries ...*experiments.Entry) ([]any, error) {
	reached := map[string]bool{}
	settings := make([]any, len(entries))
	for i, e := range entries {
		own := map[string]any{}
		for key, v := range a.keys {
			if len(entries) == 1 || e.Has(level, key) {
				own[key], reached[key] = v, true
			}
		}
		var err error
		if settings[i], err = e.Configure(level, own); err != nil {
			return nil, AsUsage(err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a.keys)) {
		if !reached[key] {
			return nil, Usagef("setting %q reaches none of the compared policies", key)
		}
	}
	return settings, nil
}
