// Replay tells what a better crawl schedule would bring on a log of what sources
// published.
//
//	go run ./cmd/replay posts.csv.gz
//	go run ./cmd/replay -every 30m -now miniflux posts.csv.gz
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/comparison"
	"ephemera/env"
	"ephemera/experiments"
	"ephemera/experiments/replay"
	"ephemera/experiments/result"
	"ephemera/internal/files"
	"ephemera/internal/plain"
	"ephemera/learner"
)

func main() { cli.Main("replay", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := cli.NewFlags("replay", `
Tells what a better crawl schedule would bring on a log of what sources published.

  replay [flags] LOG     LOG is CSV, plain or compressed by gzip, or a pipe, with the
                         columns source, published and, if items differ in worth,
                         utility`)
	f.First = "objective"
	var (
		q        replay.Question
		format   result.Format
		period   time.Duration
		now, out string
		feedback = experiments.DefaultFeedbackDelay
		longest  time.Duration
		columns  = env.PublishedColumns
	)
	f.TextVar(&q.Objective, "objective", env.Delay,
		"`aim` of the learner whose timetable and state are written: delay is the mean time until an item is found, "+
			"and all items are alike; others are interest:HALF-LIFE such as interest:4h, delay:K and deadline:TIME. "+
			"The learner is always played with delay and with interest, by interest:4h unless another is named")
	f.Float64Var(&q.Rate, "crawls-per-hour", 0, "`number` of crawls per hour "+
		"(default as many as are made now, by -now, or as every source every 4h needs)")
	f.DurationVar(&period, "every", 0, "`time`, such as 30m: as many crawls as it takes "+
		"to crawl every source once in that time, in place of -crawls-per-hour")
	f.StringVar(&now, "now", "", "`schedule` that is used now: "+
		"freshrss, which is every source every 60 minutes and also what Miniflux does by default, "+
		"miniflux with its entry frequency, commafeed, nutch or stormcrawler, "+
		"or one of the last four with -relative behind it, "+
		"with as many crawls as it makes of itself unless a number is given; "+
		"or a file of the crawls that were made, with the columns source and crawled "+
		"(default every source in turn)")
	f.StringVar(&feedback, "feedback", feedback, "`when` the utility of an item becomes known: "+
		"late:48h is 48 hours after it was published; now is when it is crawled; with never each item counts 1")
	f.Count(&q.Shows, "shows", 0, 0, "`number` of items that a source shows; a crawl misses older ones. "+
		"0 stands for all new ones, and for the last 20 at the first crawl")
	f.DurationVar(&longest, "longest", 0, "`time` that passes at most between two crawls of a source, "+
		"but with rules of software (default a week, or the time of eight rounds if that is longer)")
	f.Func("columns", "`names` of the columns of LOG where they are others than source, published and utility: "+
		"source=feed,published=date,utility=votes", func(text string) error { return name(&columns, text) })
	f.Func("from", "`date` from which items are looked at; what was published before is shown by first crawls "+
		"(default the first item that is not far from the rest)",
		func(text string) error { return date(&q.First, text) })
	f.Func("to", "`date` until which items are looked at (default the last item that is not far from the rest)",
		func(text string) error { return date(&q.Last, text) })
	f.Uint64Var(&q.Seed, "seed", 1, "`seed` of the learner's draws")
	f.Count(&q.Workers, "workers", 0, 0, "`number` of runs at once; 0 is one per core; the results do not depend on it")
	comparison.DefineFormat(f, &format)
	f.StringVar(&out, "out", "", "`directory` of the page, the timetable and the state of the learner "+
		"(default results/replay-LOG)")
	operands, done, err := f.ParseAll(args, 1, stdout)
	if done || err != nil {
		return err
	}
	if operands == nil {
		return cli.Usagef("no log is named; name one, such as posts.csv.gz")
	}
	log := operands[0]
	switch {
	case f.IsSet("crawls-per-hour") && f.IsSet("every"):
		return cli.Usagef("-crawls-per-hour and -every both say how many crawls there are; give one")
	case now != "" && !slices.Contains(replay.Rules, now) && (f.IsSet("crawls-per-hour") || f.IsSet("every")):
		return cli.Usagef("the crawls of -now say how many there are; leave out -crawls-per-hour and -every")
	case f.IsSet("crawls-per-hour") && !(q.Rate > 0 && q.Rate <= math.MaxFloat64):
		return cli.Usagef("-crawls-per-hour is %v; allowed is a finite number above 0", q.Rate)
	case f.IsSet("every") && period < time.Second:
		return cli.Usagef("-every is %v; allowed is 1s or more", period)
	case q.Objective.Law == "" || q.Objective.Law == env.LawFreshness:
		return cli.Usagef("-objective is %q; allowed are interest, delay and deadline, as logs have items", q.Objective)
	case f.IsSet("longest") && longest < time.Minute:
		return cli.Usagef("-longest is %v; allowed is 1m or more", longest)
	}
	if q.Late, err = experiments.ParseFeedbackDelay(feedback); err != nil {
		return cli.Usagef("-feedback %w", err)
	}
	q.Longest = longest.Hours()
	out = cmp.Or(out, filepath.Join("results", "replay-"+replay.Name(log)))
	q.HalfLife, q.Workers = 4, cmp.Or(q.Workers, cli.Cores)
	if q.Objective.Law == env.LawExponential {
		q.HalfLife = q.Objective.Time.Hours()
	}
	show, clear := cli.Progress(stderr, "decisions")
	q.Progress = show
	if q.Log, err = columns.Read(ctx, log); err != nil {
		return err
	}
	switch {
	case now == "":
	case slices.Contains(replay.Rules, now):
		q.Rule = now
	default:
		err = q.ReadCrawls(ctx, now)
		if errors.Is(err, fs.ErrNotExist) {
			return cli.Usagef("-now is %q; allowed are %s, or a file with the columns source and crawled",
				now, strings.Join(replay.Rules, ", "))
		}
		if err != nil {
			return fmt.Errorf("-now: %w", err)
		}
	}
	if period > 0 {
		q.Rate = float64(len(q.Log.Names)) / period.Hours()
	}
	a, err := q.Ask(ctx)
	clear()
	if err != nil {
		return err
	}
	page := a.Page()
	page.Command = "go run ./cmd/replay " + cli.Quote(args...)
	path := filepath.Join(out, "page.html")
	_, err = page.Write(path, out)
	err = errors.Join(err, files.Put(filepath.Join(out, learner.StateFile), a.State),
		result.Put(out, map[string]result.Printed{"result.json": a, "timetable.csv": a.Week()}))
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	fmt.Fprintf(stderr, "wrote %s\n", plain.Text(path))
	return result.Print(stdout, a, format)
}

// name sets what columns are called.
func name(c *env.Columns, text string) error {
	for part := range strings.SplitSeq(text, ",") {
		column, heading, _ := strings.Cut(part, "=")
		field := map[string]*string{"source": &c.Source, "published": &c.Time, "utility": &c.Utility}[column]
		if field == nil || heading == "" {
			return fmt.Errorf("%q names no column; allowed are source=NAME, published=NAME and utility=NAME", part)
		}
		*field = heading
	}
	return nil
}

// date sets a Unix time.
func date(at **int64, text string) error {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		text = day.Format(time.RFC3339)
	}
	unix, err := env.ParseTime(text)
	*at = &unix
	return err
}
