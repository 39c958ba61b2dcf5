package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ephemera/cmd/internal/cli"
	"ephemera/cmd/internal/clitest"
	"ephemera/env"
)

var full = flag.Bool("full", false, "measure 5000 feeds")

func TestMain(m *testing.M) { clitest.Main(m, main) }

// feeds serves feeds of 20 items, each at an address of its own, and returns a list of
// them and how often they were asked for.
func feeds(t *testing.T, n int) (opml string, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	mux := http.NewServeMux()
	mux.HandleFunc("/feed", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("ETag", `"1"`)
		fmt.Fprintf(w, `<rss version="2.0"><channel><title>T%s</title>`, r.Host)
		for k := range 20 {
			at := time.Now().Add(-time.Duration(k) * time.Hour)
			fmt.Fprintf(w, `<item><guid>%d</guid><title>A title as long as they are</title><pubDate>%s</pubDate></item>`, k, at.UTC().Format(time.RFC1123Z))
		}
		io.WriteString(w, `</channel></rss>`)
	})
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go http.Serve(l, mux)
	text := "<opml><body>"
	for k := range n {
		text += fmt.Sprintf(`<outline xmlUrl="http://127.1.%d.%d:%d/feed"/>`, k/250, k%250+1, l.Addr().(*net.TCPAddr).Port)
	}
	return file(t, "feeds.opml", text+"</body></opml>"), asked
}

func file(t *testing.T, name, text string) (path string) {
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// One round finds what is there; what it found is a recording, from which another
// crawler learns, and plans. Mistakes have an error that says what is allowed.
func TestRuns(t *testing.T) {
	opml, asked := feeds(t, 2)
	dir := t.TempDir()
	state, other, log := filepath.Join(dir, "state"), filepath.Join(dir, "other"), filepath.Join(dir, "log.csv.gz")
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-opml", opml, "-dry", "-dir", state}, 0, " looks in 24 hours"},
		{[]string{"-opml", opml, "-once", "-dir", filepath.Join(dir, "refused"), "-contact", "me@example.org"}, 0, "2 requests were made."}, // of none: they are private
		{[]string{"-opml", opml, "-once", "-dir", state, "-contact", "me@example.org", "-allow-private"}, 0, "2 requests were made."},
		{[]string{"-opml", opml, "-once", "-dir", state, "-contact", "me@example.org", "-allow-private"}, 0, "0 requests were made."},
		{[]string{"-opml", opml, "-export", log, "-dir", state}, 0, "log.csv.gz holds 40 items."},
		{[]string{"-opml", opml, "-import", log, "-dir", other}, 0, "The learner knows the past of 2 feeds."},
		{[]string{"-opml", opml, "-dry", "-dir", other}, 0, " looks in 24 hours"},
		{nil, cli.Usage, "-opml is missing"},
		{[]string{"-opml", opml}, cli.Usage, `-contact is ""; needed is an address of mail`},
		{[]string{"-opml", opml, "-dry", "-per-hour", "0"}, cli.Usage, "-per-hour is 0; allowed is .001 to 1e6"},
		{[]string{"-opml", opml, "-dry", "-shortest", "1s"}, cli.Usage, "-shortest is 1s; allowed is 1m to 8760h0m0s"},
		{[]string{"-opml", opml, "-dry", "-longest", "5m"}, cli.Usage, "-longest is 5m0s; allowed is -shortest, 15m0s, to 8760h0m0s"},
		{[]string{"-opml", opml, "-dry", "-shortest", "2562047h", "-longest", "2562047h"}, cli.Usage, "-shortest is 2562047h0m0s; allowed is 1m to 8760h0m0s"},
		{[]string{"-opml", opml, "-dry", "-shortest", "8760h", "-longest", "8760h", "-dir", filepath.Join(dir, "rare")}, 0, "2 looks in 24 hours"},
		{[]string{"-opml", opml, "-dry", "-half-life", "0s"}, cli.Usage, "-half-life is 0s; allowed is 1s to 8760h0m0s"},
		{[]string{"-opml", opml, "-dry", "-per-hour", "1e-9"}, cli.Usage, "-per-hour is 1e-09; allowed is .001 to 1e6"},
		{[]string{"-opml", opml, "-dry", "-public-url", "me.example.org"}, cli.Usage, `-public-url is "me.example.org"; allowed is an address with http`},
		{[]string{"-opml", opml, "-dry", "-once"}, cli.Usage, "give one"},
		{[]string{"-opml", opml, "-dry", "-hook", "me.example.org", "-hook-secret", opml}, cli.Usage, `-hook is "me.example.org"; allowed is an address with http`},
		{[]string{"-opml", opml, "-dry", "-hook", "http://me.example.org"}, cli.Usage, "-hook and -hook-secret are given together"},
		{[]string{"-opml", opml, "-dry", "-hook", "http://me.example.org", "-hook-secret", file(t, "secret", "\n")}, cli.Failure, "secret is empty; needed is a secret"},
		{[]string{"-from", "127.0.0.1:1"}, cli.Usage, "-from is given with -export"},
		{[]string{"-from", "127.0.0.1:1", "-export", log}, cli.Failure, "connection refused"},
		{[]string{"-opml", opml, "-dry", "more"}, cli.Usage, "more"},
		{[]string{"-opml", filepath.Join(t.TempDir(), "none"), "-dry"}, cli.Failure, "no such file"},
		{[]string{"-opml", file(t, "torn.opml", "<opml><body>"), "-dry"}, cli.Failure, "torn.opml: it is no OPML"},
		{[]string{"-opml", file(t, "empty.opml", "<opml/>"), "-dry"}, cli.Failure, "empty.opml: no outline has an xmlUrl"},
		{[]string{"-opml", file(t, "file.opml", `<opml><body><outline xmlUrl="file:///x"/></body></opml>`), "-dry"}, cli.Failure, `xmlUrl is "file:///x"; allowed is an address with http or https`},
		{[]string{"-opml", opml, "-dry", "-worth", file(t, "worth.csv", "source,worth\na,11\n")}, cli.Failure, `worth.csv:2: worth is "11"; allowed is a number from 0 to 10`},
		{[]string{"-opml", opml, "-import", file(t, "log.csv", "source,published_unix\nelse,1700000000\n"), "-dir", filepath.Join(t.TempDir(), "state")}, cli.Failure, "no source of it is the address or the title of a feed"},
	} {
		said, _, err := clitest.Call(t, run, c.args...)
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, c.want) || cli.Status(err) != c.status {
			t.Errorf("%q: status %d, %s; want %d and %q", c.args, cli.Status(err), said, c.status, c.want)
		}
	}
	if rec, err := env.ReadRecording(context.Background(), log); err != nil || rec.Rows != 40 || asked.Load() != 2 {
		t.Errorf("%+v %v after %d requests", rec, err, asked.Load())
	}
}

// It crawls until it is ended, shows a page, and no other process takes its state
// meanwhile. 5000 feeds, of which each was looked at, take less than 300 MB and, with
// 600 requests an hour, 5 % of a core.
func TestServe(t *testing.T) {
	n := 2
	if *full {
		n = 5000
	}
	opml, _ := feeds(t, n)
	args := []string{"-opml", opml, "-dir", filepath.Join(t.TempDir(), "state"), "-contact", "me@example.org", "-allow-private"}
	if out, status := clitest.Output(t, clitest.Process(t, append(args, "-once", "-per-hour", fmt.Sprint(n))...)); status != 0 || out != fmt.Sprintf("%d requests were made.\n", n) {
		t.Fatal(status, out)
	}
	args = append(args, "-per-hour", "600", "-page", "127.0.0.1:0")
	c := clitest.Process(t, args...)
	said, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Signal(os.Interrupt)
	var address string
	fmt.Fscanf(said, "Crawling; %s", &address)
	get := func(path string) string {
		res, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return string(text)
	}
	if page := get("/"); !strings.Contains(page, fmt.Sprintf("%d feeds", n)) {
		t.Errorf("%.200s", page)
	}
	log := filepath.Join(t.TempDir(), "log.csv.gz")
	if out, status := clitest.Output(t, clitest.Process(t, "-export", log, "-from", strings.TrimPrefix(address, "http://"))); status != 0 || !strings.HasSuffix(out, fmt.Sprintf("log.csv.gz holds %d items.\n", 20*n)) {
		t.Errorf("an export while it runs: %d %s", status, out)
	}
	if rec, err := env.ReadRecording(context.Background(), log); err != nil || rec.Rows != 20*n {
		t.Errorf("%+v %v", rec, err)
	}
	if out, err := clitest.Process(t, append(args, "-export", log)...).CombinedOutput(); err == nil || !strings.Contains(string(out), "add the address of its page") {
		t.Errorf("an export without -from: %v %s", err, out)
	}
	if out, err := clitest.Process(t, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), "in use by another crawl") {
		t.Errorf("a second one: %v %s", err, out)
	}
	if !*full {
		return
	}
	metric := func(name string) (v float64) {
		_, rest, _ := strings.Cut(get("/metrics"), "\n"+name+" ")
		fmt.Sscan(rest, &v)
		return v
	}
	time.Sleep(30 * time.Second)
	cpu, begin := metric("process_cpu_seconds_total"), time.Now()
	var most float64
	for range 12 {
		time.Sleep(10 * time.Second)
		most = max(most, metric("process_resident_memory_bytes"))
	}
	share := (metric("process_cpu_seconds_total") - cpu) / time.Since(begin).Seconds()
	t.Logf("%d feeds: %.0f MB, %.1f %% of a core, %.1f s until it stood", n, most/1e6, 100*share, cpu)
	if most == 0 || most > 300e6 || share > .05 {
		t.Errorf("%.0f MB, %.1f %% of a core; allowed are 300 MB and 5 %%", most/1e6, 100*share)
	}
}
