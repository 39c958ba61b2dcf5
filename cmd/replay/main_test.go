package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/clitest"
	"ephemera/learner"
)

func TestMain(m *testing.M) { clitest.Main(m, main) }

// written returns the path of a small log without utilities.
func written(t *testing.T) string {
	t.Helper()
	return clitest.Log(t, "source,published_unix", 3000, func(k int) string {
		return fmt.Sprintf("%c,%d", 'a'+k%7*(k%3)%9, k*700)
	})
}

// A log alone is enough; the page, the timetable and the figures are written,
// and the object on stdout is the one in the file.
func TestReplay(t *testing.T) {
	log, dir := written(t), t.TempDir()
	out, progress, err := clitest.Call(t, run, log, "-out", dir, "-format", "json")
	if err != nil {
		t.Fatal(err)
	}
	if want := "wrote " + filepath.Join(dir, "page.html") + "\n"; progress != want {
		t.Errorf("stderr %q; want %q", progress, want)
	}
	kept, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err != nil || string(kept) != out {
		t.Errorf("result.json differs from stdout: %v", err)
	}
	var got struct {
		Instance string
		Results  []struct{ Policy string }
	}
	err = json.Unmarshal(kept, &got)
	if err != nil || got.Instance != "posts" ||
		got.Results[0].Policy != "now" || got.Results[1].Policy != "learning" {
		t.Errorf("%+v, %v", got, err)
	}
	describes(t, kept)
	table, err := os.ReadFile(filepath.Join(dir, "timetable.csv"))
	if err != nil || !strings.HasPrefix(string(table), "weekday,time_utc,source\nMonday,") {
		t.Errorf("timetable.csv: %v\n%.200s", err, table)
	}
	if saved, err := learner.Load(dir); err != nil || saved.Crawls == nil {
		t.Errorf("the state of the learner: %+v, %v", saved, err)
	}
	// The same through a pipe, into the same directory.
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	c := clitest.Process(t, "/dev/stdin", "-out", dir, "-format", "json")
	c.Stdin = strings.NewReader(string(text))
	piped, status := clitest.Output(t, c)
	if status != cli.OK || strings.Replace(piped, `"instance": "stdin"`, `"instance": "posts"`, 1) != out {
		t.Errorf("from a pipe: status %d\n%s", status, piped)
	}
}

// Where nothing can be written the figures are printed all the same, and one error says why.
func TestNoRoomForThePage(t *testing.T) {
	log := written(t)
	out, _, err := clitest.Call(t, run, log, "-out", log)
	if want := "-out: mkdir " + log + ": not a directory"; err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
	if !strings.Contains(out, "\n learning ") {
		t.Errorf("stdout\n%s", out)
	}
}

// describes checks that RUNNING.md names each key of a result, and that rows say over how many
// epochs they are: all of the log, or its second half.
func describes(t *testing.T, data []byte) {
	page, err := os.ReadFile("../../RUNNING.md")
	var all struct {
		Steps   float64
		Results []map[string]any
		Half    []map[string]any `json:"second_half"`
	}
	keys := map[string]any{}
	if err := errors.Join(err, json.Unmarshal(data, &all), json.Unmarshal(data, &keys)); err != nil {
		t.Fatal(err)
	}
	maps.Copy(keys, all.Results[0])
	for key := range keys {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("RUNNING.md does not name the key %s", key)
		}
	}
	if whole, half := all.Results[1]["epochs"], all.Half[1]["epochs"]; whole != all.Steps || half != all.Steps/2 {
		t.Errorf("%v and %v epochs of %v", whole, half, all.Steps)
	}
}

func TestErrors(t *testing.T) {
	log, far := written(t), clitest.Log(t, "source,crawled_unix", 1, func(int) string { return "a,9000000000" })
	refuse := clitest.Refuses(t, "replay", run)
	refuse("", cli.Usage, "no log is named; name one")
	refuse(log+" -every 30m -crawls-per-hour 3", cli.Usage, "-crawls-per-hour and -every both say")
	refuse(log+" -objective freshness", cli.Usage,
		`-objective is "freshness"; allowed are interest, delay and deadline`)
	refuse(log+" -crawls-per-hour -1", cli.Usage, "-crawls-per-hour is -1; allowed is a finite number above 0")
	refuse(log+" -now "+far+" -every 30m", cli.Usage, "the crawls of -now say how many there are")
	refuse(log+" -feedback 48h", cli.Usage, `-feedback is "48h"; allowed are late:`)
	refuse(log+" -longest 1s", cli.Usage, "-longest is 1s; allowed is 1m or more")
	refuse(log+" -longest 2h", cli.Failure, "sources every 2.0 h takes 4 crawls per hour; there are 2")
	refuse(log+" -columns feed", cli.Usage, `-columns: "feed" names no column; allowed are source=NAME`)
	refuse(log+" -columns published=date", cli.Failure, `column "date" is missing`)
	refuse(log+" -columns utility=votes", cli.Failure, `column "votes" is missing`)
	refuse(log+" -from yesterday", cli.Usage, `-from: is "yesterday"; allowed is a date`)
	refuse(log+" -from 2026-01-01", cli.Failure, "nothing was published from 2026-01-01")
	refuse(log+" -format xml", cli.Usage, `-format: allowed are`)
	refuse(log+" -every 30s", cli.Failure, "crawl every source at every decision")
	refuse(log+" -crawls-per-hour 1e300", cli.Failure, "crawl every source at every decision")
	refuse(log+" -now feedly", cli.Usage, `-now is "feedly"; allowed are freshrss, miniflux`)
	refuse(log+" -now "+log, cli.Failure, "crawled_unix")
	refuse(log+" -now "+far, cli.Failure, "none of the crawls that are made now lies from 1970-01-01")
	refuse(log+" -crawls-per-hour 0.005", cli.Failure, "needed are 8 or more")
	refuse("none.csv", cli.Failure, "none.csv")
}

// A log may come from anywhere: what would move the cursor of a terminal or set its title
// is written out, in the answer, in errors and on stderr.
func TestOddNames(t *testing.T) {
	odd := "evil\x1b[2J"
	log := clitest.Log(t, "source,published_unix", 3001, func(k int) string {
		at := k * 700
		if k == 3000 {
			at *= 1000 // far from the rest, and so named
		}
		return fmt.Sprintf("%s%d,%d", odd, k%3*(k%7)%5, at)
	})
	dir := filepath.Join(t.TempDir(), odd)
	for _, format := range []string{"table", "markdown"} {
		out, said, err := clitest.Call(t, run, log, "-out", dir, "-format", format)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out+said, "\x1b") || !strings.Contains(out, `evil\x1b[2J`) ||
			!strings.Contains(said, `evil\x1b[2J`) {
			t.Errorf("%s: stdout %q\nstderr %q", format, out, said)
		}
	}
	crawls := clitest.Log(t, "source,crawled_unix", 1, func(int) string { return odd + ",soon" })
	_, _, err := clitest.Call(t, run, log, "-now", crawls, "-out", dir)
	if err == nil || strings.Contains(cli.Line("replay", err), "\x1b") {
		t.Errorf("%q", err)
	}
}
