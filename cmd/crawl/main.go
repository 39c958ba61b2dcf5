// Crawl crawls feeds politely, learns when each is worth a look, and shows it on a
// page.
//
//	go run ./cmd/crawl -opml feeds.opml -per-hour 60 -contact me@example.org
//	go run ./cmd/crawl -miniflux https://reader.example -token-file FILE -per-hour 60
//	go run ./cmd/crawl -freshrss https://me@reader.example -token-file FILE -per-hour 60
//	go run ./cmd/crawl -opml feeds.opml -dry
//	go run ./cmd/crawl -opml feeds.opml -export log.csv.gz
//	go run ./cmd/crawl -export log.csv.gz -from 127.0.0.1:7080
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
	_ "time/tzdata" // zones that a page is shown in, where the machine has none

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/web"
	"ephemera/env"
	"ephemera/internal/plain"
	"ephemera/live/clock"
	"ephemera/live/crawl"
	"ephemera/live/store"
)

func main() { cli.Main("crawl", run) }

const year = 365 * 24 * time.Hour // the longest time that a flag gives

// settings are the flags.
type settings struct {
	opt crawl.Options
	log cli.LogFormat

	miniflux, freshrss string // addresses
	token, hookSecret  string // files
	worth              string
	contact, page      string

	once, dry               bool
	export, from, recording string
}

func (s *settings) parse(args []string, stdout io.Writer) (done bool, err error) {
	f := cli.NewFlags("crawl", `
Crawls the feeds of an OPML file, learns when each is worth a look, and shows it on a
page, where readers find what was found as a feed (/items.json, /items.atom) and the list
(/opml). The file may be edited while it runs. Ctrl-C ends it; the next start goes on.

  crawl -opml feeds.opml -contact you@example.org [flags]
  crawl -miniflux https://reader.example -token-file FILE [flags]
  crawl -freshrss https://me@reader.example -token-file FILE [flags]`)
	f.Service(&s.log)
	f.TextVar(&s.opt.Objective, "objective", env.Delay,
		"`aim` of the looks: delay is the mean time until an item is found; others are interest:HALF-LIFE "+
			"such as interest:2h, delay:K with the Kth power of the time, and deadline:TIME such as deadline:24h")
	f.StringVar(&s.opt.OPML, "opml", "", "`file` of the feeds; readers of feeds export it")
	f.StringVar(&s.miniflux, "miniflux", "",
		"`address` of a Miniflux that fetches its own feeds, in place of -opml, when it is asked to")
	f.StringVar(&s.freshrss, "freshrss", "",
		"`address` of a FreshRSS, with the name of its user before an @, that fetches its own feeds, "+
			"in place of -opml, when it is asked to")
	f.StringVar(&s.token, "token-file", "",
		"`file` of the token of an API key of Miniflux, or of the authentication token of FreshRSS "+
			"and, in a second line, the API password")
	f.BoolVar(&s.opt.Shadow, "shadow", false,
		"let -miniflux or -freshrss fetch when it wants, learn from that, and compare: nothing is changed there")
	f.Float64Var(&s.opt.PerHour, "per-hour", 60, "`number` of requests for feeds in an hour")
	f.StringVar(&s.contact, "contact", "",
		"`address` of mail or of a page that is sent to servers, so that people can complain")
	f.StringVar(&s.worth, "worth", "",
		"`file` with the columns source, the address of a feed, and worth, 0 to 10: "+
			"what its items are worth; 1 without")
	f.DurationVar(&s.opt.Shortest, "shortest", 15*time.Minute, "`time` between two requests for a feed, at least")
	f.DurationVar(&s.opt.Longest, "longest", 24*time.Hour,
		"`time` between two requests for a feed, at most, as far as -per-hour goes")
	f.DurationVar(&s.opt.Unvalidated, "without-validators", time.Hour,
		"`time` between two requests, at least, for feeds that cannot be asked for changes alone; "+
			"for those above 250 kB so many times as long")
	f.StringVar(&s.opt.PublicURL, "public-url", "",
		"`address` at which hubs (WebSub) reach /websub/ of -page: "+
			"feeds that name one are looked at once a day, and the hub sends what is new")
	f.BoolVar(&s.opt.AllowPrivate, "allow-private", false, "crawl addresses of private networks too")
	f.StringVar(&s.opt.Dir, "dir", "crawl-state", "`directory` of the state")
	f.StringVar(&s.page, "page", "127.0.0.1:7080", "`address` of the page and of /metrics; empty for none")
	f.StringVar(&s.opt.Hook, "hook", "", "`address` that each new item is posted to, as JSON, signed with -hook-secret")
	f.StringVar(&s.hookSecret, "hook-secret", "", "`file` of the secret of -hook")
	f.BoolVar(&s.once, "once", false, "make one round, the requests that are left of this hour, and end")
	f.BoolVar(&s.dry, "dry", false, "print the looks of the next 24 hours as they are planned, and ask for nothing")
	f.StringVar(&s.export, "export", "",
		"write what was found to a `file`, the recording that replay reads, and end; - is standard output")
	f.StringVar(&s.from, "from", "",
		"with -export: `address` of the page of a crawler that runs, which gives what it found")
	f.StringVar(&s.recording, "import", "",
		"learn from a `recording` whose sources are addresses or titles of the feeds, and end")
	if _, done, err := f.ParseAll(args, 0, stdout); done || err != nil {
		return done, err
	}
	return false, s.check()
}

// asks reports whether feeds are asked for.
func (s *settings) asks() bool { return !s.dry && s.export == "" && s.recording == "" }

// check reports flags that do not go together, or are missing.
func (s *settings) check() error {
	o := &s.opt
	switch {
	case s.from != "" && s.export == "":
		return cli.Usagef("-from is given with -export")
	case s.from != "":
		return nil
	case count(o.OPML, s.miniflux, s.freshrss) == 0:
		return cli.Usagef("-opml is missing; needed is the file of the feeds, or -miniflux or -freshrss")
	case count(o.OPML, s.miniflux, s.freshrss) > 1:
		return cli.Usagef("-opml, -miniflux and -freshrss are lists of feeds; give one")
	case s.miniflux != "" && !isAddress(s.miniflux):
		return cli.Usagef("-miniflux is %q; allowed is an address with http or https", s.miniflux)
	case s.freshrss != "" && (!isAddress(s.freshrss) || userOf(s.freshrss) == ""):
		return cli.Usagef("-freshrss is %q; allowed is an address with http or https and the name of a user, "+
			"such as https://me@reader.example", s.freshrss)
	case (o.OPML != "") != (s.token == ""):
		return cli.Usagef("-token-file is given with -miniflux and -freshrss, and not with -opml")
	case o.OPML != "" && o.Shadow:
		return cli.Usagef("-shadow is for feeds that -miniflux or -freshrss fetches")
	case o.OPML == "" && o.PublicURL != "":
		return cli.Usagef("-public-url is for feeds that are fetched here, and not by a reader")
	case s.asks() && o.OPML != "" && !strings.ContainsAny(s.contact, "@/"):
		return cli.Usagef("-contact is %q; needed is an address of mail, or of a page, at which you can be reached",
			s.contact)
	case (o.Hook == "") != (s.hookSecret == ""):
		return cli.Usagef("-hook and -hook-secret are given together")
	case s.dry && s.once || s.dry && s.export != "" || s.dry && s.recording != "" ||
		s.once && !s.asks() || s.export != "" && s.recording != "":
		return cli.Usagef("-dry, -once, -export and -import are runs of their own; give one")
	}
	return inRange(o)
}

// inRange reports the first option that is out of its range.
func inRange(o *crawl.Options) error {
	switch {
	case !(o.PerHour >= .001 && o.PerHour <= 1e6):
		return cli.Usagef("-per-hour is %v; allowed is .001 to 1e6", o.PerHour)
	case o.Shortest < time.Minute || o.Shortest > year:
		return cli.Usagef("-shortest is %v; allowed is 1m to %v", o.Shortest, year)
	case o.Longest < o.Shortest || o.Longest > year:
		return cli.Usagef("-longest is %v; allowed is -shortest, %v, to %v", o.Longest, o.Shortest, year)
	case o.Unvalidated < 0 || o.Unvalidated > year:
		return cli.Usagef("-without-validators is %v; allowed is 0 to %v", o.Unvalidated, year)
	case o.Objective.Law == "" || o.Objective.Law == env.LawFreshness:
		return cli.Usagef("-objective is %q; allowed are interest, delay and deadline, as feeds have items",
			o.Objective)
	case o.PublicURL != "" && !isAddress(o.PublicURL):
		return cli.Usagef("-public-url is %q; allowed is an address with http or https", o.PublicURL)
	case o.Hook != "" && !isAddress(o.Hook):
		return cli.Usagef("-hook is %q; allowed is an address with http or https", o.Hook)
	}
	return nil
}

// read reads the files that flags name.
func (s *settings) read() (err error) {
	if s.opt.Worth, err = readWorth(s.worth); err != nil {
		return err
	}
	if s.hookSecret != "" {
		if s.opt.HookSecret, err = readSecret(s.hookSecret); err != nil {
			return err
		}
	}
	if s.token != "" {
		secret, err := readSecret(s.token)
		if err != nil {
			return err
		}
		if s.opt.Reader, err = reader(s.miniflux, s.freshrss, s.token, string(secret)); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s := settings{opt: crawl.Options{Now: time.Now, Uptime: clock.Now}}
	if done, err := s.parse(args, stdout); done || err != nil {
		return err
	}
	if s.from != "" {
		said, err := s.writeExport(stdout, func(w io.Writer) (int, error) { return crawl.ExportFrom(ctx, w, s.from) })
		if err == nil {
			_, err = io.WriteString(stdout, said)
		}
		return err
	}
	if err := s.read(); err != nil {
		return err
	}
	s.opt.Log = slog.New(s.log.Handler(stderr, nil))
	s.opt.Agent = "ephemera/1.0 (feed crawler; " + s.contact + ")"
	if _, err := os.Stat(s.opt.Dir); errors.Is(err, os.ErrNotExist) {
		s.opt.InMemory = s.dry
	}
	if s.export != "" {
		if err := cli.NeedState("-export", s.opt.Dir); err != nil {
			return err
		}
	}
	c, err := crawl.Open(ctx, s.opt)
	if errors.Is(err, store.ErrInUse) && s.export != "" {
		return fmt.Errorf("%s is in use by another crawl; "+
			"to export from it, add the address of its page: -export %s -from %s",
			s.opt.Dir, s.export, s.page)
	}
	if err != nil {
		return err
	}
	c.LimitMemory()
	said, err := s.use(ctx, c, stdout)
	if err = errors.Join(err, c.Close()); err == nil {
		_, err = io.WriteString(stdout, said)
	}
	return err
}

// use does what is asked for, and returns what to say when all of it is kept.
func (s *settings) use(ctx context.Context, c *crawl.Crawler, stdout io.Writer) (said string, err error) {
	n := 0
	switch {
	case s.dry:
		n, err = c.Plan(stdout, 24*time.Hour)
		return plain.Count(n, "look") + " in 24 hours, as far as is known now.\n", err
	case s.export != "":
		return s.writeExport(stdout, c.WriteRecording)
	case s.recording != "":
		rec, err := env.ReadRecording(ctx, s.recording)
		if err != nil {
			return "", err
		}
		n, err = c.Import(rec)
		return "The learner knows the past of " + plain.Count(n, "feed") + ".\n", err
	case s.once:
		n, err = c.Once()
		return "It made " + plain.Count(n, "request") + ".\n", err
	}
	return "", serve(c, s.page, stdout)
}

// count returns how many texts are not empty.
func count(texts ...string) (n int) {
	for _, s := range texts {
		if s != "" {
			n++
		}
	}
	return n
}

// userOf returns the name that stands before the @ of an address.
func userOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return ""
	}
	return u.User.Username()
}

// reader returns the Miniflux or the FreshRSS at an address, with what a file of its secrets holds.
func reader(miniflux, freshrss, path, secret string) (crawl.Reader, error) {
	lines := strings.Split(secret, "\n")
	if miniflux != "" {
		if len(lines) != 1 {
			return nil, fmt.Errorf("%s has %d lines; needed is one, the token of an API key of Miniflux",
				path, len(lines))
		}
		return crawl.NewMiniflux(miniflux, secret), nil
	}
	if len(lines) != 2 {
		return nil, fmt.Errorf("%s has %d of the two lines that are needed: the authentication token of FreshRSS, "+
			"and the API password", path, len(lines))
	}
	token, password := lines[0], lines[1]
	u, err := url.Parse(freshrss)
	if err != nil {
		return nil, err
	}
	user := u.User.Username()
	u.User = nil
	return crawl.NewFreshRSS(u.String(), user, strings.TrimSpace(token), strings.TrimSpace(password)), nil
}

func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// writeExport writes an export to its file, or to standard output, and returns what to say of it.
func (s *settings) writeExport(stdout io.Writer, write func(io.Writer) (rows int, err error)) (said string, err error) {
	if s.export == "-" {
		_, err = write(stdout)
		return "", err
	}
	n, err := crawl.ExportTo(s.export, write)
	return s.export + " holds " + plain.Count(n, "item") + ".\n", err
}

// readSecret reads a file that has a secret and perhaps the end of its line.
func readSecret(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if text = bytes.TrimSpace(text); err == nil && len(text) == 0 {
		err = fmt.Errorf("%s is empty; needed is a secret", path)
	}
	return text, err
}

// readWorth reads what the items of feeds are worth.
func readWorth(path string) (map[string]float64, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	worth := map[string]float64{}
	return worth, env.ReadTable(path, f, []string{"source", "worth"}, nil, func(_, row, _ []string) (err error) {
		worth[strings.Clone(row[0])], err = crawl.ParseWorth(row[1])
		return err
	})
}

// serve crawls and shows the page until its context ends.
func serve(c *crawl.Crawler, page string, stdout io.Writer) error {
	if page != "" {
		l, err := net.Listen("tcp", page)
		if err != nil {
			return fmt.Errorf("-page: %w", err)
		}
		s := web.Server(page, c.Handler(), "/websub/")
		go s.Serve(l)
		defer s.Close()
		fmt.Fprintf(stdout, "Crawling; http://%s shows what is found. Ctrl-C ends it.\n", l.Addr())
	}
	return c.Run()
}
