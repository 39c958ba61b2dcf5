package replay

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"ephemera/env"
)

// Now is what the user does today: one of three.
type Now struct {
	Every  time.Duration // every source that often
	Rule   string        // a scheduler of the catalogue, under the budget
	Crawls []crawl       // a log of crawls, sorted by time
	Name   string        // in tables
}

// inTurn is the name of the schedule where none is told.
const inTurn = "in turn"

// NowError says that a text names no schedule.
type NowError struct{ text string }

func (e NowError) Error() string { return e.text }

// rules are the schedulers of feed readers and crawlers that the learner is
// compared with.
var rules = []string{"miniflux", "miniflux-relative", "nutch", "nutch-relative", "stormcrawler", "stormcrawler-relative"}

// ParseNow reads every=D, the name of a rule, or the name of a CSV file with the
// columns source and crawled_unix. Sources of such a file that published
// nothing are added to the recording, which is returned: crawls went there too.
func ParseNow(ctx context.Context, text string, rec *env.Recording) (Now, *env.Recording, error) {
	if d, ok := strings.CutPrefix(text, "every="); ok {
		every, err := time.ParseDuration(d)
		if err != nil || every < time.Second {
			return Now{}, nil, NowError{fmt.Sprintf("%.40q; allowed after every= is a length of time of 1s or more, such as 30m", d)}
		}
		return Now{Every: every, Name: text}, rec, nil
	}
	if slices.Contains(rules, text) {
		return Now{Rule: text, Name: text}, rec, nil
	}
	if _, err := os.Stat(text); err != nil {
		return Now{}, nil, NowError{fmt.Sprintf("%.200q is no file; allowed are every=D such as every=30m, %s, or a file with the columns source and crawled_unix", text, strings.Join(rules, ", "))}
	}
	made, err := env.ReadTimes(ctx, text, "crawled_unix")
	if err != nil {
		return Now{}, nil, err
	}
	rec = rec.With(made.Names)
	number := make([]int, len(made.Names))
	for k, name := range made.Names {
		number[k], _ = slices.BinarySearch(rec.Names, name)
	}
	now := Now{Name: "now", Crawls: make([]crawl, 0, made.Rows)}
	made.Each(func(i int, at int64, _ float64) {
		now.Crawls = append(now.Crawls, crawl{number[i], float64(at)})
	})
	return now, rec, nil
}

// every crawls each of n sources once per period of that many seconds, spread
// evenly over the period.
func every(n int, period, from, to float64) []crawl {
	var all []crawl
	for start := from; ; start += period {
		for i := range n {
			at := start + period*float64(i+1)/float64(n)
			if at > to {
				return all
			}
			all = append(all, crawl{i, at})
		}
	}
}

// About tells what is done now.
func (w Now) About() string {
	switch {
	case w.Every > 0 && w.Name == inTurn:
		return "every source in turn"
	case w.Every > 0:
		return "every source every " + w.Every.String()
	case w.Rule != "":
		return "intervals as " + w.Rule + " sets them"
	}
	return "the crawls of the file"
}

// perHour returns how many crawls an hour the present schedule makes in that
// part, or 0 where it takes what it is given.
func (w Now) perHour(n int, from, to float64) float64 {
	switch {
	case w.Every > 0:
		return float64(n) / w.Every.Hours()
	case w.Crawls != nil:
		var made float64
		for _, c := range w.Crawls {
			if c.At >= from && c.At <= to {
				made++
			}
		}
		return made / ((to - from) / 3600)
	}
	return 0
}
