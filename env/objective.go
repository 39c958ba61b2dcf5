package env

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Objective is what a program that crawls is to bring about. It is a law of interest:
// what an item, or a page that has changed, is worth by its age when it is crawled.
//
//	interest:4h    an item loses half of its interest in four hours: the papers'
//	delay          an item costs the time d until it is found: the mean delay
//	delay:k        an item costs dᵏ: k below 1 favours most items, k above 1 those that wait longest
//	deadline:24h   an item is worth 1 if it is found within 24 hours
//	freshness      a page is worth its importance while the copy is as the page is
//
// The zero value is none: sources keep their own laws.
type Objective struct {
	Law      Law
	Exponent float64       // k of delay
	Time     time.Duration // half-life of interest, deadline
}

// Delay is the mean time until an item is found, the default of programs that crawl.
var Delay = Objective{Law: LawDelay, Exponent: 1}

// ObjectivesAllowed lists the objectives as they are written.
const ObjectivesAllowed = "interest:HALF-LIFE such as interest:4h, delay, delay:K such as delay:2, " +
	"deadline:TIME such as deadline:24h, and freshness"

// ParseObjective reads an objective as it is written; "" is none.
func ParseObjective(text string) (o Objective, err error) {
	name, value, given := strings.Cut(text, ":")
	wrong := func() (Objective, error) {
		return Objective{}, fmt.Errorf("objective is %.60q; allowed are %s", text, ObjectivesAllowed)
	}
	switch {
	case text == "":
		return Objective{}, nil
	case name == "interest" || name == "deadline":
		o.Law = map[string]Law{"interest": LawExponential, "deadline": LawDeadline}[name]
		o.Time, err = time.ParseDuration(value)
		if err != nil || o.Time < time.Second {
			return wrong()
		}
	case name == "delay":
		o.Law, o.Exponent = LawDelay, 1
		if given {
			o.Exponent, err = strconv.ParseFloat(value, 64)
		}
		if err != nil || !(o.Exponent > 0 && o.Exponent <= maxExponent) {
			return wrong()
		}
	case text == "freshness":
		o.Law = LawFreshness
	default:
		return wrong()
	}
	return o, nil
}

// maxExponent bounds k: at 8 a source is crawled nearly in turn.
const maxExponent = 8

// String returns the objective as it is written.
func (o Objective) String() string {
	switch {
	case o.Law == LawExponential:
		return "interest:" + brief(o.Time)
	case o.Law == LawDelay && o.Exponent != 1:
		return fmt.Sprintf("delay:%v", o.Exponent)
	case o.Law == LawDeadline:
		return "deadline:" + brief(o.Time)
	}
	return string(o.Law)
}

// brief writes a length of time without minutes and seconds of 0: 4h, not 4h0m0s.
func brief(d time.Duration) string {
	text := d.String()
	for _, zero := range []struct{ unit, end string }{{"m", "0s"}, {"h", "0m"}} {
		if short, ok := strings.CutSuffix(text, zero.unit+zero.end); ok {
			text = short + zero.unit
		}
	}
	return text
}

// MarshalText implements encoding.TextMarshaler.
func (o Objective) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: an objective stands in flags, files and
// states as it is written.
func (o *Objective) UnmarshalText(text []byte) (err error) {
	*o, err = ParseObjective(string(text))
	return err
}

// Unseen reports whether no crawl shows what it was worth, since that is delay, or time for
// which a copy is fresh.
func (o Objective) Unseen() bool { return o.Law == LawDelay || o.Law == LawFreshness }

// Of returns a source under the objective, where an epoch takes so long. Rate, mean
// interest and cost stay, but under freshness: a page changes when an item arrives, and
// its importance is the mean interest of an item.
func (o Objective) Of(s Source, epoch time.Duration) Source {
	if o.Law == "" {
		return s
	}
	if o.Law == LawFreshness && s.Law != LawFreshness {
		s.Decay, s.Rate = s.Rate/float64(max(1, s.Batch)), 1
		if s.Decay == 0 { // the copy is fresh for ever, and no crawl changes that
			s.Decay, s.Interest = 1, 0
		}
		s.Batch = 0
	}
	s.Law, s.Shape, s.Window = o.Law, 0, math.Inf(1)
	epochs := o.Time.Seconds() / epoch.Seconds()
	switch o.Law {
	case LawExponential:
		s.Decay = math.Ln2 / epochs
	case LawDelay:
		s.Decay, s.Shape = 1, o.Exponent
	case LawDeadline:
		s.Decay = 1 / epochs
	}
	return s
}

// WithObjective returns the instance under an objective, where an epoch takes so long.
// Its ID names the objective.
func (in Instance) WithObjective(o Objective, epoch time.Duration) Instance {
	if o.Law == "" {
		return in
	}
	changed := func(sources []Source) []Source {
		sources = slices.Clone(sources)
		for i, s := range sources {
			sources[i] = o.Of(s, epoch)
		}
		return sources
	}
	in.ID += "/" + o.String()
	in.Objective = o
	in.Sources, in.Changes = changed(in.Sources), slices.Clone(in.Changes)
	for k := range in.Changes {
		in.Changes[k].Sources = changed(in.Changes[k].Sources)
	}
	return in
}
