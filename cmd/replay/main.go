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

// settings are the flags and the log.
type settings struct {
	q               replay.Question
	log, now, out   string
	period, longest time.Duration
	feedback        string
	columns         env.Columns
	format          result.Format
}

func (s *settings) parse(args []string, stdout io.Writer) (done bool, err error) {
	f := cli.NewFlags("replay", `
Tells what a better crawl schedule would bring on a log of what sources published.

  replay [flags] LOG     LOG is CSV, plain or compressed by gzip, or a pipe, with the
                         columns source, published and, if items differ in worth,
                         utility`)
	f.First = "objective"
	f.TextVar(&s.q.Objective, "objective", env.Delay,
		"`aim` of the learner whose timetable and state are written: delay is the mean time until an item is found, "+
			"and all items are alike; others are interest:HALF-LIFE such as interest:4h, delay:K and deadline:TIME. "+
			"The learner is played with this aim, and with delay and interest:4h unless it is another of these")
	f.Float64Var(&s.q.Rate, "crawls-per-hour", 0, "`number` of crawls per hour "+
		"(default as many as are made now, by -now, or as every source every 4h needs)")
	f.DurationVar(&s.period, "every", 0, "`time`, such as 30m: as many crawls as it takes "+
		"to crawl every source once in that time, in place of -crawls-per-hour")
	f.StringVar(&s.now, "now", "", "`schedule` that is used now: "+
		"freshrss, which is every source every 60 minutes and also what Miniflux does by default, "+
		"miniflux with its entry frequency, commafeed, nutch or stormcrawler, "+
		"or one of the last four with -relative behind it, "+
		"with as many crawls as it makes of itself unless a number is given; "+
		"or a file of the crawls that were made, with the columns source and crawled "+
		"(default every source in turn)")
	f.StringVar(&s.feedback, "feedback", experiments.DefaultFeedbackDelay,
		"`when` the utility of an item becomes known: "+
			"late:48h is 48 hours after it was published; now is when it is crawled; with never each item counts 1")
	f.Count(&s.q.Shows, "shows", 0, 0, "`number` of items that a source shows; a crawl misses older ones. "+
		"0 stands for all new ones, and for the last 20 at the first crawl")
	f.DurationVar(&s.longest, "longest", 0, "`time` that passes at most between two crawls of a source, "+
		"but with rules of software (default a week, or the time of eight rounds if that is longer)")
	f.Func("columns", "`names` of the columns of LOG where they are others than source, published and utility: "+
		"source=feed,published=date,utility=votes", func(text string) error { return name(&s.columns, text) })
	f.Func("from", "`date` from which items are looked at; what was published before is shown by first crawls "+
		"(default the first item that is not far from the rest)",
		func(text string) error { return date(&s.q.First, text) })
	f.Func("to", "`date` until which items are looked at (default the last item that is not far from the rest)",
		func(text string) error { return date(&s.q.Last, text) })
	f.Uint64Var(&s.q.Seed, "seed", 1, "`seed` of the learner's draws")
	f.Count(&s.q.Workers, "workers", 0, 0,
		"`number` of runs at once; 0 is one per core; the results do not depend on it")
	comparison.DefineFormat(f, &s.format)
	f.StringVar(&s.out, "out", "", "`directory` of the page, the timetable and the state of the learner "+
		"(default results/replay-LOG)")
	operands, done, err := f.ParseAll(args, 1, stdout)
	if done || err != nil {
		return done, err
	}
	if operands == nil {
		return false, cli.Usagef("no log is named; name one, such as posts.csv.gz")
	}
	s.log = operands[0]
	s.out = cmp.Or(s.out, filepath.Join("results", "replay-"+replay.Name(s.log)))
	isRule := slices.Contains(replay.Rules, s.now)
	switch {
	case f.IsSet("crawls-per-hour") && f.IsSet("every"):
		return false, cli.Usagef("-crawls-per-hour and -every both say how many crawls there are; give one")
	case s.now != "" && !isRule && (f.IsSet("crawls-per-hour") || f.IsSet("every")):
		return false, cli.Usagef("the crawls of -now say how many there are; leave out -crawls-per-hour and -every")
	case f.IsSet("crawls-per-hour") && !(s.q.Rate > 0 && s.q.Rate <= math.MaxFloat64):
		return false, cli.Usagef("-crawls-per-hour is %v; allowed is a finite number above 0", s.q.Rate)
	case f.IsSet("every") && s.period < time.Second:
		return false, cli.Usagef("-every is %v; allowed is 1s or more", s.period)
	case s.q.Objective.Law == "" || s.q.Objective.Law == env.LawFreshness:
		return false, cli.Usagef("-objective is %q; allowed are interest, delay and deadline, as logs have items",
			s.q.Objective)
	case f.IsSet("longest") && s.longest < time.Minute:
		return false, cli.Usagef("-longest is %v; allowed is 1m or more", s.longest)
	}
	if s.q.Late, err = experiments.ParseFeedbackDelay(s.feedback); err != nil {
		return false, cli.Usagef("-feedback %w", err)
	}
	s.q.Longest = s.longest.Hours()
	s.q.HalfLife, s.q.Workers = 4, cmp.Or(s.q.Workers, cli.Cores)
	if s.q.Objective.Law == env.LawExponential {
		s.q.HalfLife = s.q.Objective.Time.Hours()
	}
	return false, nil
}

// read reads the log, and the schedule that is used now.
func (s *settings) read(ctx context.Context) (err error) {
	if s.q.Log, err = s.columns.Read(ctx, s.log); err != nil {
		return err
	}
	if s.period > 0 {
		s.q.Rate = float64(len(s.q.Log.Names)) / s.period.Hours()
	}
	if s.now == "" {
		return nil
	}
	if slices.Contains(replay.Rules, s.now) {
		s.q.Rule = s.now
		return nil
	}
	err = s.q.ReadCrawls(ctx, s.now)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("-now is %q; allowed are %s, or a file with the columns source and crawled",
			s.now, strings.Join(replay.Rules, ", "))
	}
	if err != nil {
		return fmt.Errorf("-now: %w", err)
	}
	return nil
}

// write writes the page, the timetable and the state, each even if another fails, and returns
// the path of the page and the first error.
func (s *settings) write(a *replay.Answer, command string) (path string, err error) {
	page := a.Page()
	page.Command = command
	path = filepath.Join(s.out, "page.html")
	_, err = page.Write(path, s.out)
	return path, cmp.Or(err, files.Put(filepath.Join(s.out, learner.StateFile), a.State),
		result.Put(s.out, map[string]result.Printed{"result.json": a, "timetable.csv": a.Week()}))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s := settings{columns: env.PublishedColumns}
	if done, err := s.parse(args, stdout); done || err != nil {
		return err
	}
	show, clear := cli.Progress(stderr, "decisions")
	s.q.Progress = show
	if err := s.read(ctx); err != nil {
		return err
	}
	a, err := s.q.Ask(ctx)
	clear()
	if err != nil {
		return err
	}
	path, err := s.write(a, "go run ./cmd/replay "+cli.Quote(args...))
	if err != nil { // the figures, which may have taken minutes, are printed all the same
		err = fmt.Errorf("-out: %w", err)
	} else {
		fmt.Fprintf(stderr, "wrote %s\n", plain.Text(path))
	}
	return errors.Join(result.Print(stdout, a, s.format), err)
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
