package env

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"ephemera/env/stream"
)

// Instance is a set of sources and a budget.
type Instance struct {
	ID      string   `toml:"id"`
	Budget  float64  `toml:"budget"` // what the crawls of one epoch may cost together, budget units
	Sources []Source `toml:"source"`
	Changes []Change `toml:"change,omitempty"` // in the order of time

	// PerHost is how many crawls of one host an epoch has room for: what is crawled there
	// beyond it fails. 0 stands for any number.
	PerHost int `toml:"per_host,omitempty"`

	Objective Objective `toml:"-"` // that the laws of the sources are of; see WithObjective
}

// Change gives sources other parameters from an epoch on: what is published in
// epoch At and later follows them, and what was published before keeps its law.
type Change struct {
	At int `toml:"at"` // epoch, 1 or more
	// Shuffle deals the parameters of all sources out among them anew; names, costs
	// and hosts stay. The permutation depends on At and the number of sources alone.
	Shuffle bool `toml:"shuffle,omitempty"`
	// Sources are new parameters of sources of these names, whose costs and hosts stay.
	Sources []Source `toml:"source,omitempty"`
}

// Phase is the time from one change to the next.
type Phase struct {
	From     int      // its first epoch
	Instance Instance // the parameters in force, without changes
}

// Phases returns the parameters in force from epoch 0 on and from each change on.
func (in Instance) Phases() []Phase {
	phases, _ := in.validPhases()
	return phases
}

// validPhases returns the phases before the first change that is wrong, and what is
// wrong with it.
func (in Instance) validPhases() ([]Phase, error) {
	now := in
	now.Changes = nil
	phases := []Phase{{From: 0, Instance: now}}
	if len(in.Changes) == 0 {
		return phases, nil
	}
	place := make(map[string]int, len(in.Sources))
	for i, s := range in.Sources {
		place[s.Name] = i
	}
	for k, c := range in.Changes {
		if before := phases[k].From; c.At <= before {
			return phases, fmt.Errorf("change %d: at is %d; allowed are epochs above %d, in the order of time",
				k+1, c.At, before)
		}
		if c.Shuffle == (len(c.Sources) > 0) {
			return phases, fmt.Errorf("change %d: needed is either shuffle = true or new values of sources", k+1)
		}
		before := now.Sources
		now.Sources = slices.Clone(before)
		if c.Shuffle {
			for i, j := range stream.New(uint64(c.At), stream.Family, drawShuffle).Perm(len(before)) {
				stays := before[i]
				now.Sources[i] = before[j]
				now.Sources[i].Name, now.Sources[i].Cost, now.Sources[i].Host = stays.Name, stays.Cost, stays.Host
			}
		}
		for _, s := range c.Sources {
			i, ok := place[s.Name]
			err := s.Validate()
			if !ok {
				err = errors.New("there is no source of this name")
			} else if cost := before[i].Cost; err == nil && s.Cost != cost {
				err = fmt.Errorf("cost is %v; allowed is %v, as costs do not change", s.Cost, cost)
			} else if host := before[i].Host; err == nil && s.Host != host {
				err = fmt.Errorf("host is %.60q; allowed is %.60q, as hosts do not change", s.Host, host)
			}
			if err != nil {
				return phases, fmt.Errorf("change %d, source %.60q: %w", k+1, s.Name, err)
			}
			now.Sources[i] = s
		}
		phases = append(phases, Phase{From: c.At, Instance: now})
	}
	return phases, nil
}

// Paper returns Table I, the reference example of both papers, with the mean
// interests ξ̄ that Allerton leaves out and TCNS gives.
func Paper(budget float64) Instance {
	return Instance{
		ID: "paper",
		Sources: []Source{
			NewSource("1", 250, 0.70, 1.00),
			NewSource("2", 250, 0.35, 0.70),
			NewSource("3", 250, 0.70, 0.20),
			NewSource("4", 250, 0.21, 0.08),
		},
		Budget: budget,
	}
}

// TotalCost returns ΣC, what crawling every source costs.
func (in Instance) TotalCost() float64 {
	var sum float64
	for _, s := range in.Sources {
		sum += s.Cost
	}
	return sum
}

// Cheapest returns the least cost of a crawl.
func (in Instance) Cheapest() float64 {
	least := math.Inf(1)
	for _, s := range in.Sources {
		least = math.Min(least, s.Cost)
	}
	return least
}

// MeanDynamics returns the instance of [Source.MeanDynamics].
func (in Instance) MeanDynamics() Instance {
	from := in.Sources
	in.Sources = make([]Source, len(from))
	for i, s := range from {
		in.Sources[i] = s.MeanDynamics()
	}
	return in
}

// Validate reports the first thing that is wrong, with the source and the
// field, what was found and what is allowed.
func (in Instance) Validate() error {
	if len(in.Sources) == 0 {
		return fmt.Errorf("instance %.60q has no source; at least one is needed", in.ID)
	}
	for i, s := range in.Sources {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("instance %.60q, source %d (%.60q): %w", in.ID, i+1, s.Name, err)
		}
	}
	total := in.TotalCost()
	if !(in.Budget > 0) || in.Budget > total*(1+1e-12) {
		return fmt.Errorf("instance %.60q: budget is %v; "+
			"allowed is above 0 and at most %v, the cost of crawling every source",
			in.ID, in.Budget, total)
	}
	if cheapest := in.Cheapest(); in.Budget < cheapest {
		return fmt.Errorf("instance %.60q: budget is %v, but the cheapest crawl costs %v; "+
			"nothing could ever be crawled", in.ID, in.Budget, cheapest)
	}
	if in.PerHost < 0 {
		return fmt.Errorf("instance %.60q: per_host is %d; allowed are crawls of a host and epoch, or 0 for any number",
			in.ID, in.PerHost)
	}
	if _, err := in.validPhases(); err != nil {
		return fmt.Errorf("instance %.60q, %w", in.ID, err)
	}
	return nil
}

// Terms returns what every crawler knows of the instance beforehand.
func (in Instance) Terms() Terms {
	n := len(in.Sources)
	t := Terms{Names: make([]string, n), Costs: make([]float64, n), Budget: in.Budget, Objective: in.Objective}
	for i, s := range in.Sources {
		t.Names[i], t.Costs[i] = s.Name, s.Cost
		if in.Objective.Law == LawFreshness {
			t.Importance = append(t.Importance, s.HarvestRate(0))
		}
	}
	if in.PerHost > 0 {
		t.PerHost, t.Hosts = in.PerHost, in.hosts()
	}
	return t
}

// hosts returns the number of each source's host, from 1; 0 for one without.
func (in Instance) hosts() []int32 {
	number, of := map[string]int32{}, make([]int32, len(in.Sources))
	for i, s := range in.Sources {
		if s.Host == "" {
			continue
		}
		if number[s.Host] == 0 {
			number[s.Host] = int32(len(number) + 1)
		}
		of[i] = number[s.Host]
	}
	return of
}

// alwaysSucceeds returns an error where crawls of the instance may fail, which is for world
// poisson alone.
func (in Instance) alwaysSucceeds(world string) error {
	if in.PerHost > 0 {
		return fmt.Errorf("instance %.60q: per_host is %d; allowed in world %s is 0", in.ID, in.PerHost, world)
	}
	for i, s := range in.Sources {
		if s.Fails > 0 {
			return fmt.Errorf("instance %.60q, source %d (%.60q): fails is %v; allowed in world %s is 0",
				in.ID, i+1, s.Name, s.Fails, world)
		}
	}
	return nil
}

const (
	sourceKeys = "name, rate, decay, interest, window, cost, law, shape, batch, fails and host, " +
		"or of a page name, change, importance, cost, recall and false"
	fileKeys = "id, budget, per_host, [[source]] with " + sourceKeys +
		", and [[change]] with at, shuffle and [[change.source]]"
)

// Load reads an instance file: TOML with the keys of [Instance], [Source] and
// [Change] and no others. A source may leave out window (inf), cost (1), law, shape,
// batch, fails and host; one of a change keeps what the file leaves out. The ID is the file's
// name if it is left out. Errors are one line with the file, the key, what was found,
// and what is allowed.
func Load(path string) (Instance, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Instance{}, err
	}
	return Unmarshal(path, data)
}

// Unmarshal is Load for the contents of a file; path is what errors call it.
func Unmarshal(path string, data []byte) (in Instance, err error) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if in, err = decodeFile(path, data); err != nil {
		return Instance{}, err
	}
	var has struct { // what the file has, which tells what is absent from what is 0
		ID, Budget any
		PerHost    any `toml:"per_host"`
		Source     []map[string]any
		Change     []struct{ Source []map[string]any }
	}
	if err := toml.Unmarshal(data, &has); err != nil {
		return Instance{}, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case len(has.Source) == 0:
		return Instance{}, fmt.Errorf("%s: there is no [[source]]; needed is one at least", path)
	case has.Budget == nil:
		return Instance{}, fmt.Errorf("%s: budget is missing; needed is what the crawls of an epoch may cost", path)
	}
	if has.ID == nil {
		in.ID = strings.TrimSuffix(filepath.Base(path), ".toml")
	}
	seen := make(map[string]int, len(in.Sources))
	for i, given := range has.Source {
		s := &in.Sources[i]
		if err := complete(given); err != nil {
			return Instance{}, fmt.Errorf("%s: source %d %w", path, i+1, err)
		}
		if j, ok := seen[s.Name]; ok {
			return Instance{}, fmt.Errorf("%s: sources %d and %d have the same name, %.60q; each name is allowed once",
				path, j+1, i+1, s.Name)
		}
		seen[s.Name] = i
		if given["window"] == nil && s.Window == 0 {
			s.Window = math.Inf(1)
		}
		if given["cost"] == nil && s.Cost == 0 {
			s.Cost = 1
		}
	}
	switch hosts := slices.ContainsFunc(in.Sources, func(s Source) bool { return s.Host != "" }); {
	case hosts && has.PerHost == nil:
		return Instance{}, fmt.Errorf("%s: a source has a host, and per_host is missing; "+
			"needed are the crawls of a host for which an epoch has room, or 0 for any number", path)
	case !hosts && in.PerHost > 0:
		return Instance{}, fmt.Errorf("%s: per_host is %d, and no source has a host; needed is a host of a source",
			path, in.PerHost)
	}
	changes := in.Changes
	in.Changes = nil
	for k, c := range changes {
		phases := in.Phases()
		before := phases[len(phases)-1].Instance.Sources
		named := make(map[string]bool, len(c.Sources))
		for j, s := range c.Sources {
			given := has.Change[k].Source[j]
			if named[s.Name] {
				return Instance{}, fmt.Errorf("%s: change %d has two [[change.source]] of the name %.60q; "+
					"allowed is one", path, k+1, s.Name)
			}
			named[s.Name] = true
			page := isPage(given)
			if i, ok := seen[s.Name]; ok {
				c.Sources[j], page = before[i], isPage(has.Source[i])
				if len(given) == 1 {
					return Instance{}, fmt.Errorf("%s: change %d, source %.60q: there is no new value; "+
						"needed is one at least", path, k+1, s.Name)
				}
			}
			if err := fits(given, page); err != nil {
				return Instance{}, fmt.Errorf("%s: change %d, source %.60q %w", path, k+1, s.Name, err)
			}
			if err := overlay(&c.Sources[j], given); err != nil {
				return Instance{}, fmt.Errorf("%s: %w", path, err)
			}
		}
		in.Changes = append(in.Changes, c)
	}
	if err := in.Validate(); err != nil {
		return Instance{}, fmt.Errorf("%s: %w", path, err)
	}
	page := slices.IndexFunc(has.Source, isPage)
	other := slices.IndexFunc(has.Source, func(given map[string]any) bool { return !isPage(given) })
	if page >= 0 && other >= 0 {
		return Instance{}, fmt.Errorf("%s: source %d is a page, and source %d is not; allowed are pages alone, or none",
			path, page+1, other+1)
	}
	if page >= 0 {
		in = in.Pages()
	}
	return in, nil
}

// byteOrderMark stands at the beginning of files that some editors save.
var byteOrderMark = []byte("\ufeff")

// DecodeTOML reads TOML strictly into a pointer to a struct, without a byte order mark. Its errors are one line
// with where, line, column and key, and say of a value of the wrong type which is needed;
// allowed says what a file may hold.
func DecodeTOML(where string, text []byte, into any, allowed string) error {
	err := toml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, byteOrderMark))).DisallowUnknownFields().Decode(into)
	if err == nil {
		return nil
	}
	what, bad, unknown := "unknown key", new(toml.DecodeError), new(toml.StrictMissingError)
	allowed = "allowed are " + allowed
	if errors.As(err, &unknown) {
		bad = &unknown.Errors[0]
	} else if errors.As(err, &bad) {
		var field string
		what, field, _ = strings.Cut(strings.TrimPrefix(bad.Error(), "toml: "), " into struct field")
		if _, kind, ok := strings.Cut(field, " of type "); ok && typesTOML[kind] != "" {
			allowed = "needed is " + typesTOML[kind]
		}
	} else {
		return fmt.Errorf("%s: %w", where, err)
	}
	line, column := bad.Position()
	key := ""
	if len(bad.Key()) > 0 {
		key = fmt.Sprintf("key %.60q: ", strings.Join(bad.Key(), "."))
	}
	if what = fmt.Sprintf("%.250s", what); !strings.Contains(what, "; allowed ") { // it is cut, as it may be a megabyte
		what += "; " + allowed
	}
	return fmt.Errorf("%s:%d:%d: %s%s", where, line, column, key, what)
}

// typesTOML says in words what a value of TOML must be for a type of Go.
var typesTOML = map[string]string{
	"float64": "a number", "int": "a whole number", "bool": "true or false",
	"string": "a text in quotes", "[]string": "a list of texts in quotes",
}
