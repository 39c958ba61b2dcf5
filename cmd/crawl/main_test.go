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
			at := time.Now().Add(-time.Duration(k) * time.Hour).UTC().Format(time.RFC1123Z)
			fmt.Fprintf(w, `<item>
				<guid>%d</guid>
				<title>A title as long as they are</title>
				<pubDate>%s</pubDate>
			</item>`, k, at)
		}
		io.WriteString(w, `</channel></rss>`)
	})
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go http.Serve(l, mux)
	text, port := "<opml><body>", l.Addr().(*net.TCPAddr).Port
	for k := range n {
		text += fmt.Sprintf(`<outline xmlUrl="http://127.1.%d.%d:%d/feed"/>`, k/250, k%250+1, port)
	}
	return file(t, "feeds.opml", text+"</body></opml>"), asked
}

// TestDryWithoutFiles: a plan is printed where no file can be written, as in the image, which has no /tmp.
func TestDryWithoutFiles(t *testing.T) {
	opml, _ := feeds(t, 1)
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	dir := filepath.Join(t.TempDir(), "state")
	out, _, err := clitest.Call(t, run, "-opml", opml, "-dry", "-dir", dir)
	if err != nil || !strings.Contains(out, "looks in 24 hours") {
		t.Error(out, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it left a state")
	}
}

func file(t *testing.T, name, text string) (path string) {
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
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
	state := filepath.Join(t.TempDir(), "state")
	args := []string{"-opml", opml, "-dir", state, "-contact", "me@example.org", "-allow-private"}
	out, status := clitest.Output(t, clitest.Process(t, append(args, "-once", "-per-hour", fmt.Sprint(n))...))
	if status != 0 || out != fmt.Sprintf("It made %d requests.\n", n) {
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
	from := strings.TrimPrefix(address, "http://")
	out, status = clitest.Output(t, clitest.Process(t, "-export", log, "-from", from))
	if status != 0 || !strings.HasSuffix(out, fmt.Sprintf("log.csv.gz holds %d items.\n", 20*n)) {
		t.Errorf("an export while it runs: %d %s", status, out)
	}
	if rec, err := env.ReadRecording(context.Background(), log); err != nil || rec.Rows != 20*n {
		t.Errorf("%+v %v", rec, err)
	}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"an export without -from", append(args, "-export", log), "add the address of its page"},
		{"a second one", args, "in use by another crawl"},
	} {
		out, err := clitest.Process(t, tt.args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: %v %s; want an error with %q", tt.name, err, out, tt.want)
		}
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
	if most == 0 || most > 300e6 || share > .02 {
		t.Errorf("%.0f MB, %.1f %% of a core; allowed are 300 MB and 2 %%", most/1e6, 100*share)
	}
}
